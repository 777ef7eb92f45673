"""Seed 001, figures 4 and 5: what adapting the plan saves, and what it costs.

The settings of section 5: streams of 100 tuples/s at a site each, of which one switches between 50
and 200 tuples/s every two seconds from 1.5 s on; tuples of 150 bytes, links of 1024 Kbps and 5 ms,
selectivity factor 0.01, windows of 500 ms. The same rows are run with the first plan kept, with
central and with distributed updates, on sites in virtual time (`plait_lab.virtual.sites`).

*Execution cost* is the time that all sites spend processing and sending tuples, per interval of
200 ms. *Overhead* of a change is the time all sites spend on its messages and on copies of windows:
modification is what leads to the new plan, migration the copies and the switch-over.

*What differs from the paper's prototype.* Processing takes what the prices of
`plait.sites.planner.cost.NESTED_LOOP` say; the paper does not give its own. Sites exchange a packet
per step and neighbour, and rows come in ticks, so there are fewer, larger packets. The time that
planning itself takes is not counted: only messages are. Sites take a few measurements to notice a
change, as those of the paper do. When the rate is low again, costs are compared from one interval
after the plan was changed back: copies of windows are the spike of which the paper speaks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.sites.planner.assumptions import site_setting
from plait.sites.planner.cost import NESTED_LOOP, paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.plans.plan import Jep
from plait.sites.site.setup import SiteSetup
from plait_lab.reporting.comparisons import Limit, Near, Smaller
from plait_lab.reporting.report import (
    Claim,
    Note,
    PlotMark,
    Report,
    Series,
    by_paper,
    equal,
    spread,
)
from plait_lab.virtual.sites import Entry, VirtualSites

SEED = "001"
_MICROS = 1_000_000
_CHANGED = "S1"
_PAYLOAD = 130
"""Characters beside time, key and offset, so that a tuple has 150 bytes."""
_TUPLE_BYTES = 150.0
_SAME = 0.1
_SLOWLY = (
    "the messages of a distributed update of eight streams pass one after the other, so it ends "
    "about a second after the rate has changed"
)
_SIGMAS = 2.9
"""Rows come evenly, so three standard errors of a rate are a change; those of a factor are not."""
_BEHIND = (
    "both follow the same plan then, but with eight streams the kept one still sends tuples that "
    "waited while the rate was high"
)
WAYS: tuple[UpdateWay, ...] = ("central", "distributed")
_SHORT = {"central": "CNU", "distributed": "DNU"}
_NAMES = {None: "non-adaptive", "central": "adaptive-CNU", "distributed": "adaptive-DNU"}


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    streams: int = 0
    """How many there are; 0 means as many as in the figure."""
    low: float = 50.0
    """Tuples per second of the stream that changes."""
    high: float = 200.0
    rate: float = 100.0
    """Tuples per second of the others."""
    first: float = 1.5
    """Seconds to the first change."""
    every: float = 2.0
    """Seconds between changes."""
    changes: int = 4
    window: float = 0.5
    values: int = 100
    """Values of the join attribute, drawn uniformly: the selectivity factor is one over that."""
    interval: float = 0.2
    """Seconds over which sites measure, and over which costs are shown."""
    ticks: int = 1
    """How often rows come in an interval."""
    seeds: int = 2
    """Streams drawn."""
    seed: int = 1

    @property
    def seconds(self) -> float:
        """How long the streams last."""
        return self.first + self.every * self.changes

    def is_high(self, time: float) -> bool:
        """Whether the rate of the stream that changes is high."""
        return time >= self.first and int((time - self.first) / self.every) % 2 == 0


Time: TypeAlias = tuple[float, float]
"""From when to when, in seconds."""


@dataclass(frozen=True, slots=True)
class SitesRun:
    """What a run has spent, and the plans it has followed."""

    entries: list[Entry]
    plans: list[tuple[float, Jep]]
    results: int

    def cost(self, begin: float, end: float) -> float:
        """Seconds of processing and of sending tuples in a time."""
        spent = (e.seconds for e in self.entries if begin <= e.time < end
                 and e.what in ("work", "data", "window"))  # fmt: skip
        return sum(spent)

    def overhead(self, begin: float, end: float) -> tuple[float, float]:
        """Seconds of plan modification and of migration in a time."""
        inside = [e for e in self.entries if begin <= e.time < end]
        change = sum(e.seconds for e in inside if e.what in ("modification", "turn"))
        return change, sum(e.seconds for e in inside if e.what in ("window", "synchronization"))

    def since_switch(self, time: Time, settled: float, step: float) -> Time:
        """The part of a round in which the rate has settled, and the last switch is over."""
        begin, end = time
        last = max((at for at, _ in self.plans if begin <= at < end), default=begin)
        return max(begin + settled, last + step), end

    def plan_at(self, time: float) -> str:
        """The plan that was followed at a time."""
        return str([plan for since, plan in self.plans if since <= time][-1])


def question(streams: int, window: float) -> Query:
    """A clique of equal streams with one key."""
    names = [f"S{n}" for n in range(1, streams + 1)]
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("v", pa.string()))
    return make_query(
        [Stream(name, fields, "ts") for name in names],
        [Call("eq", (Column(names[0], "k"), Column(name, "k"))) for name in names[1:]],
        global_window(streams, round(window * _MICROS)),
        [Output(f"v{name}", Column(name, "v")) for name in names],
    )


def set_up(streams: int, options: Options, update: UpdateWay | None) -> SiteSetup:
    """The sites, with the plan for the low rate."""
    setting = paper_setting(streams, {_CHANGED: options.low})
    policy = PlacementPolicy(
        threshold=0.5,
        update=update or "central",
        interval=round(options.interval * _MICROS),
        sigmas=_SIGMAS,
        sample=256,
    )
    query = question(streams, options.window)
    known = site_setting(query, setting.sites, setting.statistics, NESTED_LOOP)
    return SiteSetup(
        query,
        setting.sites,
        greedy(known),
        policy=None if update is None else policy,
        statistics=known.statistics,
        prices=NESTED_LOOP,
    )


def run(streams: int, options: Options, update: UpdateWay | None, draw: int) -> SitesRun:
    """One run in virtual time."""
    host = VirtualSites(set_up(streams, options, update), tuple_bytes=_TUPLE_BYTES)
    tick = options.interval / options.ticks
    due: dict[str, float] = dict.fromkeys(host.setup.query.names, 0.0)
    chance = np.random.default_rng([options.seed, draw])
    for n in range(1, 1 + round(options.seconds / tick)):
        end = n * tick
        for stream in host.setup.query.names:
            rate = options.rate
            if stream == _CHANGED:
                rate = options.high if options.is_high(end - tick / 2) else options.low
            times = []
            while due[stream] < end:
                times.append(round(due[stream] * _MICROS))
                due[stream] += 1 / rate
            keys = chance.integers(options.values, size=len(times))
            rows = pa.table({
                "ts": pa.array(times, pa.timestamp("us")),
                "k": keys,
                "v": ["x" * _PAYLOAD] * len(times),
            })  # fmt: skip
            if times:
                host.arrive(end, stream, rows)
    host.run(options.seconds + options.every)
    first = host.setup.sites.names[0]
    switched = [(one.time, one.plan) for one in host.switches if one.site == first]
    plans = [(0.0, host.setup.jep), *switched]
    return SitesRun(host.entries, plans, sum(rows.num_rows for rows in host.results))


Runs = dict[UpdateWay | None, list[SitesRun]]
"""For each way to adapt, or none, a run for each draw of the streams."""


def _all_runs(streams: int, options: Options, note: Note) -> Runs:
    found: Runs = {}
    for way in (None, *WAYS):
        found[way] = []
        for draw in range(options.seeds):
            note(f"{streams} streams, {_NAMES[way]}, streams {draw + 1} of {options.seeds}")
            found[way].append(run(streams, options, way, draw))
    return found


def _rounds(options: Options) -> list[Time]:
    """When each rate begins and ends, from the first change on."""
    begins = [options.first + n * options.every for n in range(options.changes)]
    return [(begin, begin + options.every) for begin in begins]


def fig4a(options: Options, note: Note) -> Report:
    """Execution cost with and without adaptation, four streams."""
    return _fig4("sites/fig4a", "4(a)", 4, options, note)


def fig4b(options: Options, note: Note) -> Report:
    """Execution cost with and without adaptation, eight streams."""
    return _fig4("sites/fig4b", "4(b)", 8, options, note)


def fig5a(options: Options, note: Note) -> Report:
    """Overhead of central and distributed updates, four streams."""
    return _fig5("sites/fig5a", "5(a)", 4, (1.4, 2.5), options, note)


def fig5b(options: Options, note: Note) -> Report:
    """Overhead of central and distributed updates, eight streams."""
    return _fig5("sites/fig5b", "5(b)", 8, (2.1, 2.7), options, note)


def _fig4(name: str, figure: str, streams: int, options: Options, note: Note) -> Report:
    runs = _all_runs(options.streams or streams, options, note)
    report = Report(name, asdict(options), seed=SEED, runtime="virtual")
    step = options.interval
    starts = [n * step for n in range(round(options.seconds / step))]
    for way, found in runs.items():
        means = [fmean(one.cost(at, at + step) for one in found) for at in starts]
        unit = f"s of cost in {step:g} s"
        report.series.append(Series(_NAMES[way], starts, means, unit, "s since the start"))
    report.marks = [PlotMark("rate changes", begin) for begin, _ in _rounds(options)]
    place = f"section 5.2, on figure {figure}"
    settled = options.window + 2 * step
    high, low = ([(begin + settled, end) for begin, end in _rounds(options)[odd::2]]
                 for odd in (0, 1))  # fmt: skip

    def costs(way: UpdateWay | None, times: Sequence[Time]) -> list[float]:
        return [sum(one.cost(*time) for time in times) for one in runs[way]]

    def costs_again(way: UpdateWay) -> tuple[list[float], list[float]]:
        """While the rate is low and the plan is that for it: the costs, and those without."""
        times = [[one.since_switch(time, settled, step) for time in _rounds(options)[1::2]]
                 for one in runs[way]]  # fmt: skip
        mine, kept = ([sum(one.cost(*time) for time in its)
                       for one, its in zip(runs[which], times, strict=True)]
                      for which in (way, None))  # fmt: skip
        return mine, kept

    for way in WAYS:
        short = _SHORT[way]
        report.claims += [
            by_paper(f"below-{short.lower()}", place,
                     f"while the rate is high, the cost of adaptive-{short} is below that of "
                     "non-adaptive processing", Smaller(costs(way, high), costs(None, high)),
                     _SLOWLY,
                     theirs="much lower"),
            by_paper(f"equal-{short.lower()}", place,
                     "when the rate is low again they have the same cost",
                     Near(*costs_again(way), _SAME), _BEHIND, theirs="same"),
        ]  # fmt: skip
    report.claims += [*_plan_claims(runs, options, place), _same_results(runs)]
    for way, found in runs.items():
        report.systems[_NAMES[way]] = {
            "cost while high": spread(costs(way, high)),
            "cost while low": spread(costs(way, low)),
            "plans": [str(plan) for _, plan in found[0].plans],
        }
    return report


def _plan_claims(runs: Runs, options: Options, place: str) -> list[Claim]:
    """In every round both updates end in the same plan, and it is the one for the rates."""
    pairs = list(zip(runs["central"], runs["distributed"], strict=True))
    ends = [end - options.interval / 2 for _, end in _rounds(options)]
    same = [a.plan_at(end) == b.plan_at(end) for a, b in pairs for end in ends]
    return [
        by_paper("identical-plans", place, "CNU and DNU always produce identical execution plans",
                 Limit(fmean(same), 1.0, least=True), _SLOWLY,
                 theirs="identical", measured=f"{sum(same)} of {len(same)} rounds"),
        equal("no-other-plans", "every plan that one update ends in is a plan of the other",
              [True, *({str(p) for _, p in a.plans} == {str(p) for _, p in b.plans}
                       for a, b in pairs)]),
    ]  # fmt: skip


def _same_results(runs: Runs) -> Claim:
    draws = zip(*runs.values(), strict=True)
    counts = [[one.results for one in draw] for draw in draws]
    every = all(len(set(draw)) == 1 for draw in counts)
    return equal("same-results", "all ways find as many results", [True, every])


def _fig5(
    name: str,
    figure: str,
    streams: int,
    theirs: tuple[float, float],
    options: Options,
    note: Note,
) -> Report:
    runs = _all_runs(options.streams or streams, options, note)
    report = Report(name, asdict(options), seed=SEED, runtime="virtual")
    rounds = _rounds(options)
    numbers = [float(n + 1) for n in range(len(rounds))]
    parts = {way: [[one.overhead(*time) for one in runs[way]] for time in rounds] for way in WAYS}
    totals = {way: [[sum(both) for both in draws] for draws in parts[way]] for way in WAYS}
    for way in WAYS:
        for n, part in enumerate(("modification", "migration")):
            seconds = [fmean(both[n] for both in draws) for draws in parts[way]]
            label, unit = f"{_SHORT[way]} {part}", "s of overhead"
            report.series.append(Series(label, numbers, seconds, unit, "round"))
    place = f"section 5.2, on figure {figure}"
    factors = [
        d / c
        for ds, cs in zip(totals["distributed"], totals["central"], strict=True)
        for d, c in zip(ds, cs, strict=True)
        if c
    ]
    least, most = theirs
    middle = (least + most) / 2
    shown = f"{min(factors):.2g} to {max(factors):.2g}"
    up, down = ([fmean(both[0] for draws in parts[way][odd::2] for both in draws) for way in WAYS]
                for odd in (0, 1))  # fmt: skip
    modification = {way: [both[0] for draws in parts[way] for both in draws] for way in WAYS}
    report.claims = [
        by_paper("overhead-factor", place,
                 f"the overhead of DNU is larger than that of CNU by a factor of {least} to {most}",
                 Near(factors, [middle] * len(factors), (most - least) / (most + least)),
                 "turns and acknowledgements are counted, which the paper does not have; the time "
                 "that planning takes at a site is not",
                 theirs=f"{least} to {most}", measured=shown),
        by_paper("dnu-modification", place, "the plan modification cost is higher with DNU",
                 Smaller(modification["central"], modification["distributed"]), "",
                 theirs="higher"),
        by_paper("higher-when-rising", place,
                 "the modification cost is higher when the rate increases than when it decreases",
                 Smaller(down, up), "with these prices as many places change in both directions",
                 theirs="higher"),
        *_plan_claims(runs, options, place),
        _same_results(runs),
    ]  # fmt: skip
    for way in WAYS:
        report.systems[_SHORT[way]] = {
            f"round {n + 1}": {
                "modification": spread([both[0] for both in draws]),
                "migration": spread([both[1] for both in draws]),
            }
            for n, draws in enumerate(parts[way])
        }
    return report
