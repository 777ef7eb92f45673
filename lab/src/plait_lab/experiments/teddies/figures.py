"""Seed 004, figures 6 to 8: Teddies beside Eddies on the three-way join R.1 = S.1, S.2 = T.1.

Both systems run the same code but for the queueing: the same windows, lookups, routing policy
(random, the cheapest) and output. The keys are uniform, so that every way costs the same. The
selectivity, the matches that a lookup finds on average, is doubled by doubling the window. The
windows are filled beforehand. `new_tuples` is the paper's back-pressure, the number of new tuples
that enter when a system has nothing else to do: with few of them, packets are made by selectivity
alone, which is what figure 6 is about.

*What is measured* is processor time, of short runs. The two systems take turns, and who begins
changes from pair to pair; a ratio is the median of the ratios of the pairs, so that what else the
machine does in the meantime meets both.

Eddies route single tuples by compiled code, Teddies route packets by interpreted code over compiled
lookups: a packet has a price, a tuple hardly any. So figure 6 is shown for several intakes: the
more new tuples enter at a time, the larger the packets are from the start. In figure 8 the policy
is interpreted in both, and asked for every tuple or for every packet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.tactics.policies import Choice, History, RoutingPolicy
from plait.engine.tactics.routed import QueueCounts
from plait.kernels.jit import Ints
from plait.kernels.memory import Saved
from plait.local.host import LocalRun
from plait.plan.routed import Eddies, Routed, Teddies
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait_lab.reporting.comparisons import Crosses, Degree, Falls, Flat, Same, Smaller
from plait_lab.reporting.report import (
    Claim,
    Note,
    Report,
    Series,
    by_paper,
    by_project,
    equal,
    ratio_spread,
    spread,
)
from plait_lab.workloads.drawing import drawn_tables

SEED = "004"
_TICK = 1_000
_UNLIMITED = 1 << 24
_FLAT = 1.25
_LINEAR = (0.8, 1.2)
_NAMES = ("eddies", "teddies")
_SIGNIFICANT = 0.8
"""A ratio of run times that is called significant."""


@dataclass(frozen=True, slots=True)
class Fig6Options:
    """What can be varied."""

    keys: int = 16
    """Values of each key; the window is this many rows times the selectivity."""
    most: int = 256
    """The highest selectivity."""
    least: float = 0.125
    """The lowest selectivity."""
    decisions: int = 1_500
    """About how many routing decisions Eddies make at each selectivity."""
    new_tuples: int = 3
    """The intake that the claims are about; it is also multiplied by 8 and by 64."""
    repeats: int = 7
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Fig7Options:
    """What can be varied."""

    keys: int = 16
    most: int = 256
    decisions: int = 40_000
    """About how many tuples are routed at each selectivity."""
    new_tuples: int = 24
    seed: int = 1


@dataclass(frozen=True, slots=True)
class Fig8Options:
    """What can be varied."""

    keys: int = 16
    rows: int = 80
    """Rows per stream."""
    most: int = 32_768
    """The most instructions added to a routing decision."""
    new_tuples: int = 3
    repeats: int = 9
    seed: int = 1


@dataclass(slots=True)
class _Run:
    seconds: float
    results: int
    decisions: int
    queues: list[QueueCounts] = field(default_factory=list)


class Dear:
    """A policy whose every decision costs so many more instructions, each of them an increment."""

    def __init__(self, policy: RoutingPolicy, instructions: int) -> None:
        self._policy = policy
        self._instructions = instructions
        self.counter = 0

    def choose(self, history: History, ready: Sequence[int], waiting: int = 1) -> Choice:
        """What the policy chooses, later."""
        counter = self.counter
        for _ in range(self._instructions):
            counter += 1
        self.counter = counter
        return self._policy.choose(history, ready, waiting)

    def observe(
        self, history: History, target: int, consumed: int, produced: int, work: int
    ) -> None:
        """Pass it on."""
        self._policy.observe(history, target, consumed, produced, work)

    def to_state(self) -> Saved:
        """What the policy has learnt."""
        return self._policy.to_state()

    def set_state(self, saved: Saved) -> None:
        """Let the policy go on from there."""
        self._policy.set_state(saved)


def fig6(options: Fig6Options, note: Note) -> Report:
    """The run time of Teddies divided by that of Eddies, as the selectivity grows."""
    report = Report("teddies/fig6", asdict(options), seed=SEED)
    sigmas = _doubled(options.least, options.most)

    def at(intake: int) -> Callable[[str, float], _Run]:
        def run(name: str, sigma: float) -> _Run:
            rows = max(16, int(options.decisions / (3 * (1 + sigma))))
            router = _systems(intake, options.seed)[name]
            return _measure(router, options.keys, sigma, rows, options.seed)

        return run

    raced = _race(at(options.new_tuples), sigmas, options.repeats, "selectivity {:g}", note)
    medians = _report_ratios(report, raced, sigmas, "selectivity {:g}", "selectivity")
    crossings = {options.new_tuples: _below_one(sigmas, medians)}
    for intake in (8 * options.new_tuples, 64 * options.new_tuples):
        text = f"intake {intake}: selectivity {{:g}}"
        other = _race(at(intake), sigmas, max(1, options.repeats // 3), text, note)
        line = [_median_ratio(other, s) for s in sigmas]
        crossings[intake] = _below_one(sigmas, line)
        label = f"Teddies, intake {intake}"
        unit = report.series[0].unit
        report.series.append(Series(label, sigmas, line, unit, "selectivity", "log"))
    report.ratios["Teddies ahead from selectivity, by intake"] = {
        str(intake): at_sigma for intake, at_sigma in crossings.items()
    }

    def times(name: str, low: float, high: float) -> list[float]:
        chosen = [s for s in sigmas if low <= s <= high]
        return [r.seconds for s in chosen for r in raced[name, s]]

    place = "section 4.2, on figure 6"
    report.claims = [
        by_paper("low", place, "Eddies have the better run time for selectivities from 1 to 16",
                 Smaller(times("eddies", 1, 16), times("teddies", 1, 16), unit="CPU s"),
                 "packets pay from the start where a decision is dear", theirs="better"),
        by_paper("high", place, "Teddies outperform Eddies at selectivities greater than 32",
                 Smaller(times("teddies", 33, options.most), times("eddies", 33, options.most),
                         unit="CPU s"),
                 "with so few new tuples at a time the two meet only at about 64; with larger "
                 "intakes Teddies are ahead earlier", theirs="better"),
        by_paper("falls", place, "higher selectivities trade the overhead off: the ratio falls as "
                 "the selectivity grows", Falls(medians),
                 "below selectivity 32 packets hold a few tuples and the ratio stays level",
                 theirs="falls"),
        by_paper("crossover", place, "there is a selectivity from which on Teddies are ahead "
                 "(theirs lies between 16 and 32)",
                 Crosses(sigmas, [1 / m for m in medians], [1.0] * len(sigmas)),
                 "they do not cross in the range that was measured", theirs="16 to 32"),
        _same_results(raced, sigmas, "both find as many results at every selectivity"),
    ]  # fmt: skip
    return report


def _below_one(sigmas: Sequence[float], ratios: Sequence[float]) -> float | None:
    """The selectivity from which on a ratio stays below 1, if there is one.

    >>> _below_one([1, 2, 4], [1.2, 0.9, 0.8]), _below_one([1, 2], [0.5, 1.5])
    (2, None)
    """
    later = [s for k, s in enumerate(sigmas) if max(ratios[k:]) < 1]
    return later[0] if later else None


def _median_ratio(raced: _Raced, x: float) -> float:
    pairs = zip(raced["teddies", x], raced["eddies", x], strict=True)
    return spread([t.seconds / e.seconds for t, e in pairs])["median"]


def fig7(options: Fig7Options, note: Note) -> Report:
    """The mean occupancy of the five metaqueues at their turns, as the selectivity grows."""
    report = Report("teddies/fig7", asdict(options), seed=SEED)
    sigmas = _doubled(1, options.most)
    lines: dict[str, list[float]] = {}
    for sigma in sigmas:
        note(f"selectivity {sigma:g}")
        rows = max(12 * options.new_tuples, int(options.decisions / (3 * (1 + sigma))))
        router = _teddies(options.new_tuples, options.seed)
        run = _measure(router, options.keys, sigma, rows, options.seed)
        for queue in run.queues:
            lines.setdefault("".join(queue.streams), []).append(queue.occupancy)
        for queue in run.queues:
            name = f"selectivity {sigma:g}, metaqueue {''.join(queue.streams)}"
            report.systems[name] = asdict(queue) | {"streams": ", ".join(queue.streams)}
    report.series = [
        Series(f"metaqueue {name}", sigmas, y, "tuples at a turn", "selectivity", "log", "log")
        for name, y in lines.items()
    ]
    inputs = [y for name, y in lines.items() if len(name) == 1]
    later = [y for name, y in lines.items() if len(name) > 1]
    low, high = _LINEAR
    place = "section 4.2, on figure 7"
    report.claims = [
        by_project("five", "there are five metaqueues: three for new tuples, two for partial "
                   "results", Same([(len(inputs), len(later)), (3, 2)])),
        *(by_paper(f"input-flat-{k}", place, "the average occupancy of the metaqueues of new "
                   f"tuples is independent of the selectivity (metaqueue {k + 1})",
                   Flat(y, _FLAT - 1), "intakes are not worked off at once",
                   theirs="independent") for k, y in enumerate(inputs)),
        *(by_paper(f"later-linear-{k}", place, "the average occupancy of the later metaqueues is "
                   f"linear in the selectivity: its power (metaqueue {k + 4})",
                   Degree(sigmas, y, low, high), "few tuples at the lowest selectivities",
                   theirs="linear") for k, y in enumerate(later)),
    ]  # fmt: skip
    return report


def fig8(options: Fig8Options, note: Note) -> Report:
    """The run time of Teddies divided by that of Eddies, as a routing decision gets dearer."""
    report = Report("teddies/fig8", asdict(options), seed=SEED)
    delays = [0.0, *_doubled(options.most / 64, options.most)[::2]]

    def run(name: str, delay: float) -> _Run:
        router = _systems(options.new_tuples, options.seed)[name]
        return _measure(router, options.keys, 1, options.rows, options.seed, int(delay))

    raced = _race(run, delays, options.repeats, "{:g} instructions", note)
    x_unit = "instructions added per decision"
    medians = _report_ratios(report, raced, delays, "{:g} instructions", x_unit)
    place = "section 4.2, on figure 8"
    dear = {name: [r.seconds for r in raced[name, delays[-1]]] for name in _NAMES}
    report.claims = [
        by_paper("falls", place, "as the cost per tuple of the scheduler increases, Teddies gain: "
                 "the ratio falls, at selectivity 1", Falls(medians),
                 "decisions are a small part of the time", theirs="falls"),
        by_paper("significant", place, "even at selectivity 1 Teddies achieve significant "
                 "performance benefits when decisions are dear",
                 Smaller(dear["teddies"], dear["eddies"], _SIGNIFICANT, "CPU s"),
                 "packets at selectivity 1 hold few tuples, so few decisions are saved",
                 theirs="significant"),
        _same_results(raced, delays, "both find as many results"),
    ]  # fmt: skip
    return report


_Raced = dict[tuple[str, float], list[_Run]]
"""The runs of each system at each point, in the order of the pairs."""


def _race(
    run: Callable[[str, float], _Run],
    points: Sequence[float],
    repeats: int,
    label: str,
    note: Note,
) -> _Raced:
    """Both systems at every point, by turns; who begins changes from pair to pair."""
    raced: _Raced = {(name, x): [] for name in _NAMES for x in points}
    for name in _NAMES:
        run(name, points[0])  # compiles what is not compiled yet
    for repeat in range(repeats):
        for x in points:
            note(f"pair {repeat + 1} of {repeats}: {label.format(x)}")
            for name in _NAMES if repeat % 2 else reversed(_NAMES):
                raced[name, x].append(run(name, x))
    return raced


def _report_ratios(
    report: Report, raced: _Raced, points: Sequence[float], label: str, x_unit: str
) -> list[float]:
    """Put the ratios and what is behind them into the report; the median ratio at each point."""
    times = {key: [r.seconds for r in runs] for key, runs in raced.items()}
    ratios = [ratio_spread(times["teddies", x], times["eddies", x]) for x in points]
    medians = [r["median"] for r in ratios]
    unit = "processor time, Eddies = 1"
    report.series = [
        Series("Teddies", points, medians, unit, x_unit, "log"),
        Series("Eddies", points, [1.0] * len(points), unit, x_unit, "log"),
    ]
    report.ratios = {label.format(x): r for x, r in zip(points, ratios, strict=True)}
    for x in points:
        report.systems[label.format(x)] = {
            f"{name}, {what}": value
            for name in _NAMES
            for what, value in {
                "CPU seconds": spread(times[name, x]),
                "decisions": raced[name, x][-1].decisions,
            }.items()
        } | {"results": raced["teddies", x][-1].results}
    return medians


def _same_results(raced: _Raced, points: Sequence[float], claim: str) -> Claim:
    same = [raced["teddies", x][-1].results == raced["eddies", x][-1].results for x in points]
    return equal("results", claim, [all(same), True])


def _systems(new_tuples: int, seed: int) -> dict[str, Routed]:
    return {
        "eddies": Eddies(policy="random", seed=seed, intake=new_tuples),
        "teddies": _teddies(new_tuples, seed),
    }


def _teddies(new_tuples: int, seed: int) -> Teddies:
    """Teddies as in the paper, where nothing limits thresholds and packets."""
    return Teddies(
        policy="random",
        seed=seed,
        intake=new_tuples,
        threshold_limit=_UNLIMITED,
        packet_limit=_UNLIMITED,
    )


def _measure(
    router: Routed, keys: int, sigma: float, rows: int, seed: int, instructions: int | None = None
) -> _Run:
    """Run `rows` rows of each stream through full windows."""
    pa.set_cpu_count(1)
    window = round(keys * sigma)
    query = three_way(window * _TICK)
    tables = _tables(query, window, rows, keys, seed)
    run = LocalRun(query, router)
    engine = run.engine
    at_work = engine.router
    assert at_work is not None, "the plan is a router"
    full = {
        s: engine.admit(s, _batch(tables[n].slice(0, window)), BEFORE_ALL_TIMES).arrivals
        for s, n in enumerate(query.names)
    }
    engine.restore(full, [BEFORE_ALL_TIMES] * len(query.names))
    if instructions is not None:
        at_work.policy = Dear(at_work.policy, instructions)
    began = time.process_time()
    for _ in run.stream({n: t.slice(window) for n, t in tables.items()}):
        pass
    seconds = time.process_time() - began
    return _Run(seconds, run.counts.results, at_work.decisions, at_work.metaqueues())


def three_way(window: int) -> Query:
    """R joined with S by one key and S with T by another, all within a window.

    >>> three_way(5).names
    ('R', 'S', 'T')
    """
    columns = {"R": ("a",), "S": ("a", "b"), "T": ("b",)}
    streams = [
        Stream(
            name,
            (Field("ts", pa.timestamp("us")), *(Field(k, pa.int64()) for k in own)),
            "ts",
        )
        for name, own in columns.items()
    ]
    keys = [
        Call("eq", (Column("R", "a"), Column("S", "a"))),
        Call("eq", (Column("S", "b"), Column("T", "b"))),
    ]
    select = [Output("a", Column("R", "a")), Output("b", Column("T", "b"))]
    return make_query(streams, keys, global_window(3, window), select)


def _tables(query: Query, window: int, rows: int, keys: int, seed: int) -> dict[str, pa.Table]:
    """One row of each stream per tick: `window` rows to begin with, and `rows` to be timed."""

    def draw(_: int, stream: Stream, rng: np.random.Generator) -> dict[str, Ints]:
        count = window + rows
        return {
            name: np.arange(count) * _TICK if name == "ts" else rng.integers(0, keys, count)
            for name in stream.schema.names
        }

    return drawn_tables(query, [seed], draw)


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _doubled(least: float, most: float) -> list[float]:
    found = [least]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return found
