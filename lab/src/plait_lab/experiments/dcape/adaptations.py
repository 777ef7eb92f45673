"""Seed 002, figures 7, 8 and 13: what load balancing and local re-optimisation give, and when.

Each run is one cluster over one draw of the streams (`settings.py`). All streams begin with
100 tuples/s; after 30 s B and C have 5. *No adaptation*, local re-optimisation (*LM*), load
balancing (*LB*, by PTLB as in the paper's figures; MSLB stands beside it) and both are run over the
same rows.

*The window* of section 5.2 and the length of its runs are not told. Here they are the longest
window of section 5.3, 60 s, and seven windows: PTLB takes two, and the paper sees tuples become
fewer after it. *The machines* are so slow that the first one, with the old plan, falls behind as
long as tuples from before the change are in the windows. Throughput is compared after four windows:
later the better settings have caught up with the streams, and all settings end with the same
results. When the streams have ended, all run on until every queue is empty, to see that they do.

*What is possible at all.* One machine has half of the groups, and the others keep up. So without
adaptation at least half of the results come out, and nothing can have more than twice as many. If
the others did not keep up, balancing would help less. So the factor 4.3 of the paper cannot come
from processor time alone; its machines may also have lost time to the memory they ran out of.

*What re-optimisation can do.* As long as all rates are the same, ((A B) C) and (A (B C)) compare as
many pairs, and a machine that is behind when the rates change has to work off such tuples first.
Most results are made of these.

*What depends on these choices.* The share of a processor, the length and the time of comparison
were chosen after runs with others. The order of the settings is not the same everywhere: until
about 190 s LM is behind no adaptation, because computing the state BC pauses the machine that is
behind already. On machines twice as fast, compared after 90 s, LM gave 0.83 to 0.87 times the
results, PTLB 1.1, MSLB 1.3 to 1.5, and LM and PTLB together fewer than PTLB alone. In no run did
any setting come near twice the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from plait.groups.moves.move import Protocol
from plait_lab.experiments.dcape.settings import NONE, Adaptation, Phase, Run, Scenario
from plait_lab.reporting.comparisons import Near, Same, Smaller
from plait_lab.reporting.report import Claim, Note, PlotMark, Report, Series, by_paper, by_project

SEED = "002"
NO, LM, PTLB, MSLB = "no adaptation", "LM", "PTLB", "MSLB"
LM_PTLB, LM_MSLB = "LM and PTLB", "LM and MSLB"
SPEED = 0.001
"""The share of a processor that each machine has in section 5.2."""
_FIG_7, _FIG_8 = "section 5.2, on figure 7", "section 5.2, on figure 8"
_FIG_13 = "section 5.3, on figure 13"
_ABOUT = 0.2
"""What is called about as much."""
_MUCH = 0.7
"""What is called much less."""
_AHEAD = 0.98
"""What is called better, of results."""
_PAUSE = (
    "MSLB pauses only for the groups that move, and the receivers, which have little else to do, "
    "recompute and make up for it within seconds: PTLB is ahead, but hardly"
)
_CLOCK = "virtual time (s)"
_LIMIT = (
    "the other machines keep up and put out half of the results in every setting, so nothing can "
    "have more than twice as many"
)
_BEHIND = (
    "most results are made of tuples from before the change, for which both plans cost the same, "
    "and the machine that is behind works these off first"
)
_TWICE = (
    "until the last old tuple is purged, after 2W, the sender goes on joining all that it has, and "
    "moved groups are kept twice"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    window: float = 60.0
    fast: float = 100.0
    """Tuples per second of each stream at first."""
    slow: float = 5.0
    """Of B and C after the change."""
    change: float = 30.0
    """When the rates change, in seconds."""
    every: float = 5.0
    """Seconds between two looks of the manager, and of the machines at their plans."""
    windows: float = 7.0
    """How long the streams last, in windows."""
    compared: float = 4.0
    """After how many windows throughput is compared."""
    slices: int = 15
    """Ticks of virtual time per window."""
    speed: float = SPEED
    bin: float = 4.0
    """Seconds between two points of a figure."""
    machines: int = 7
    groups: int = 100
    seeds: int = 3
    """Streams drawn."""
    seed: int = 1

    @property
    def end(self) -> float:
        """When the streams end."""
        return self.windows * self.window

    @property
    def scenario(self) -> Scenario:
        """The streams and the cluster."""
        phases = (
            Phase(0.0, (self.fast,) * 3),
            Phase(self.change, (self.fast, self.slow, self.slow)),
        )
        tick = self.window / self.slices
        return Scenario(self.window, phases, self.end, self.speed, self.machines, self.groups, tick)

    @property
    def settings(self) -> dict[str, Adaptation]:
        """The settings of figures 7 and 8, and those with MSLB."""
        return {
            NO: NONE,
            LM: Adaptation(local=True, every=self.every),
            PTLB: Adaptation("PTLB", every=self.every),
            LM_PTLB: Adaptation("PTLB", local=True, every=self.every),
            MSLB: Adaptation("MSLB", every=self.every),
            LM_MSLB: Adaptation("MSLB", local=True, every=self.every),
        }


@dataclass(frozen=True, slots=True)
class Drawn:
    """What the settings found over one draw of the streams."""

    times: list[float]
    results: dict[str, list[float]]
    """Up to each time."""
    tuples: dict[str, list[float]]
    """In the system at each time."""
    totals: dict[str, int]
    """Results when all was worked off."""
    tallies: dict[str, dict[str, object]]

    def after(self, time: float, name: str) -> float:
        """Results up to a time."""
        return float(np.interp(time, self.times, self.results[name]))

    def most(self, name: str) -> float:
        """The largest ratio to no adaptation at any time in the second half."""
        half = len(self.times) // 2
        pairs = zip(self.results[name][half:], self.results[NO][half:], strict=True)
        return max(a / b if b else 1.0 for a, b in pairs)

    def peak(self, name: str) -> float:
        """The most tuples in the system."""
        return max(self.tuples[name])


def fig7(options: Options, note: Note) -> Report:
    """Accumulated throughput without adaptation, with either, and with both."""
    drawn = _drawn(options, options.settings, note)
    report = _report("dcape/fig7", options, drawn)
    for name in options.settings:
        report.series.append(
            Series(name, drawn[0].times, _mean([d.results[name] for d in drawn]), "results",
                   _CLOCK, dashed="MSLB" in name)
        )  # fmt: skip
    time = options.compared * options.window
    ends = {name: [d.after(time, name) for d in drawn] for name in options.settings}
    report.marks.append(PlotMark("compared", time))
    for name in options.settings:
        report.ratios[f"{name} / {NO}"] = [a / b for a, b in zip(ends[name], ends[NO], strict=True)]
        report.ratios[f"{name} / {NO}, at most"] = [d.most(name) for d in drawn]
    best_alone = [max(pair) for pair in zip(ends[LM], ends[PTLB], strict=True)]
    best_alone_ms = [max(pair) for pair in zip(ends[LM], ends[MSLB], strict=True)]

    def times(name: str, factor: float) -> Smaller:
        return Smaller(ends[NO], ends[name], (1 + _ABOUT) / factor, "results")

    least = [min(some) for some in zip(ends[LM], ends[PTLB], ends[LM_PTLB], strict=True)]
    report.claims = [
        by_paper("none-worst", _FIG_7, "without adaptation fewer results come out than with any",
                 Smaller(ends[NO], least, unit="results"), _BEHIND, theirs="the worst"),
        by_paper("lb-doubles", _FIG_7, "load balancing by PTLB gives about 100 % more results",
                 times(PTLB, 2.0), _TWICE, theirs="2 times"),
        by_paper("lm-doubles", _FIG_7, "local re-optimisation alone gives about twice the results",
                 times(LM, 2.0), _BEHIND, theirs="2 times"),
        by_paper("both-330", _FIG_7, "both together give about 330 % more results than none",
                 times(LM_PTLB, 4.3), _LIMIT, theirs="4.3 times"),
        by_paper("both-best", _FIG_7, "both together give more results than either alone, with "
                 "PTLB", Smaller(best_alone, ends[LM_PTLB], unit="results"), _BEHIND,
                 theirs="2.2 times"),
        by_paper("both-best-ms", "section 5.2, on MSLB", "the patterns are very similar with MSLB: "
                 "both together give more results than either alone",
                 Smaller(best_alone_ms, ends[LM_MSLB], unit="results"), _BEHIND,
                 theirs="very similar"),
        by_project("ms-more", "load balancing by MSLB gives more results than none",
                   Smaller(ends[NO], ends[MSLB], unit="results")),
        *_exact(drawn),
    ]  # fmt: skip
    return report


def fig8(options: Options, note: Note) -> Report:
    """Tuples in the whole system without adaptation, with either, and with both."""
    drawn = _drawn(options, options.settings, note)
    report = _report("dcape/fig8", options, drawn)
    for name in options.settings:
        report.series.append(
            Series(name, drawn[0].times, _mean([d.tuples[name] for d in drawn]), "tuples", _CLOCK,
                   dashed="MSLB" in name)
        )  # fmt: skip
    peaks = {name: [d.peak(name) for d in drawn] for name in options.settings}
    late = {
        name: [float(np.mean(d.tuples[name][-len(d.times) // 3 :])) for d in drawn]
        for name in options.settings
    }
    few = (
        "a tuple that waits counts as much as one that is stored, and of all tuples few are "
        "combinations, which is all that re-optimisation saves"
    )
    report.claims = [
        by_paper("lm-lower", _FIG_8, "LM has a much lower build-up of tuples than no adaptation",
                 Smaller(peaks[LM], peaks[NO], _MUCH, "tuples"), few, theirs="much lower"),
        by_paper("both-lower-lb", _FIG_8, "LM and PTLB have a much lower build-up than PTLB alone",
                 Smaller(peaks[LM_PTLB], peaks[PTLB], _MUCH, "tuples"), few, theirs="much lower"),
        by_paper("both-lower-none", _FIG_8, "LM and PTLB have a much lower build-up than no "
                 "adaptation", Smaller(peaks[LM_PTLB], peaks[NO], _MUCH, "tuples"), _TWICE,
                 theirs="much lower"),
        by_paper("same-peak", _FIG_8, "no adaptation has about the same highest build-up as PTLB",
                 Near(peaks[NO], peaks[PTLB], _ABOUT), _TWICE, theirs="about the same"),
        by_paper("drops", _FIG_8, "without adaptation the tuples become fewer in the end, because "
                 "the streams are slower: in the last window against the one before",
                 Smaller(_around(drawn, NO, 0, options), _around(drawn, NO, 1, options),
                         unit="tuples"),
                 "the queue of the first machine is still growing", theirs="slowly"),
        by_paper("lm-sooner", _FIG_8, "with LM fewer tuples are left in the last third than with "
                 "PTLB alone", Smaller(late[LM], late[PTLB], unit="tuples"), _TWICE,
                 theirs="much more behind"),
        *_exact(drawn),
    ]  # fmt: skip
    return report


@dataclass(frozen=True, slots=True)
class CaseOptions(Options):
    """What can be varied."""

    balance: float = 35.0
    """When the manager begins to look, in seconds: after the machine has changed its plan."""


def fig13(options: CaseOptions, note: Note) -> Report:
    """PTLB against MSLB when states are large and the streams have just become slow."""
    hot = frozenset({0})

    def by(protocol: Protocol) -> Adaptation:
        return Adaptation(
            protocol,
            local=True,
            only=hot,
            every=options.every,
            balance_from=options.balance,
            rounds=1,
        )

    settings = {PTLB: by("PTLB"), MSLB: by("MSLB")}
    drawn = _drawn(options, settings, note)
    report = _report("dcape/fig13", options, drawn)
    report.marks.append(PlotMark("balancing begins", options.balance))
    for name in settings:
        report.series.append(
            Series(name, drawn[0].times, _mean([d.results[name] for d in drawn]), "results", _CLOCK)
        )
    time = options.compared * options.window
    since = [i for i, t in enumerate(drawn[0].times) if options.balance <= t <= time]
    after = {
        name: [float(np.mean([d.results[name][i] for i in since])) for d in drawn]
        for name in settings
    }
    before = [d.results[name][since[0] - 1] for d in drawn for name in settings if since[0] > 0]
    pairs = list(zip(before[::2], before[1::2], strict=True))
    report.claims = [
        by_paper("ptlb-ahead", _FIG_13, "PTLB performs better than MSLB after the balancing has "
                 "begun: results, on average over that time",
                 Smaller(after[MSLB], after[PTLB], _AHEAD, "results"), _PAUSE, theirs="better"),
        by_paper("ptlb-end", _FIG_13, f"PTLB has put out more results after {time:g} s",
                 Smaller([d.after(time, MSLB) for d in drawn],
                         [d.after(time, PTLB) for d in drawn], _AHEAD, "results"),
                 _PAUSE, theirs="more"),
        by_project("same-before", "before the balancing begins there is no difference",
                   Same([True, *(a == b for a, b in pairs)])),
        *_exact(drawn),
    ]  # fmt: skip
    return report


def _exact(drawn: Sequence[Drawn]) -> list[Claim]:
    """That all settings find the same number of results in the end."""
    return [
        by_project("exact", "when all is worked off, every setting has found as many results",
                   Same([len(set(d.totals.values())) for d in drawn] + [1]),
                   measured=", ".join(str(max(d.totals.values())) for d in drawn)),
    ]  # fmt: skip


def _report(name: str, options: Options, drawn: Sequence[Drawn]) -> Report:
    report = Report(name, asdict(options), seed=SEED, runtime="virtual")
    report.marks.append(PlotMark("B and C slow down", options.change))
    for number, one in enumerate(drawn):
        for setting, tally in one.tallies.items():
            report.systems[f"{setting}, draw {number + 1}"] = dict(tally)
    return report


def _around(drawn: Sequence[Drawn], name: str, before: int, options: Options) -> list[float]:
    """Tuples on average in a window that ends so many windows before the end."""
    end = options.end - before * options.window
    return [
        float(np.mean([n for t, n in zip(d.times, d.tuples[name], strict=True)
                       if end - options.window < t <= end]))
        for d in drawn
    ]  # fmt: skip


def _mean(lines: Sequence[Sequence[float]]) -> list[float]:
    return [float(v) for v in np.mean(np.array(lines), axis=0)]


def _drawn(options: Options, settings: Mapping[str, Adaptation], note: Note) -> list[Drawn]:
    return [
        _run_all(options, options.seed + k, tuple(settings.items()), _Quiet(note))
        for k in range(options.seeds)
    ]


class _Quiet:
    """Where a run says what it does; all are equal, so that figures 7 and 8 share their runs."""

    def __init__(self, note: Note) -> None:
        self.note = note

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Quiet)

    def __hash__(self) -> int:
        return 0


@lru_cache(maxsize=8)
def _run_all(
    options: Options, seed: int, settings: tuple[tuple[str, Adaptation], ...], quiet: _Quiet
) -> Drawn:
    scenario = options.scenario
    tables = scenario.tables(seed)
    count = round(options.end / options.bin)
    times = [options.bin * (k + 1) for k in range(count)]
    found = Drawn(times, {}, {}, {}, {})
    for name, adaptation in settings:
        quiet.note(f"draw {seed}: {name}")
        run = Run(scenario, adaptation, tables).through()
        found.results[name] = run.results(times)
        known = dict(run.tuples)
        found.tuples[name] = [float(known[min(known, key=lambda k: abs(k - t))]) for t in times]
        moves = [m for m in run.cluster.moves.values() if m.done]
        found.tallies[name] = {
            "results": round(run.total),
            "busy, first machine": run.cluster.busy[0] / options.end,
            "busy, others": float(np.mean(run.cluster.busy[1:])) / options.end,
            "moves completed": len(moves),
            "rows moved": sum(m.moved.rows for m in moves),
            "combinations matched": sum(m.moved.matched for m in moves),
            "combinations recomputed": sum(m.moved.recomputed for m in moves),
            "plans changed": 0 if run.local is None else len(run.local.changes),
            "messages": sum(run.cluster.network.sent.values()),
        }
        found.totals[name] = run.worked_off()
    return found
