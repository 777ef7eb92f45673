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

Here a routing decision is interpreted and a lookup compiled, so a decision is dear from the start,
as it is at the right end of figure 8. Packets therefore pay at a lower selectivity than in the
paper; figure 6 begins below 1 to show where they do not.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
import pyarrow as pa

from plait.engine.tactics.policies import Choice, History, Policy
from plait.engine.tactics.routed import Waited
from plait.engine.times import BEFORE_ALL_TIMES
from plait.hosts.local.host import LocalRun
from plait.kernels.memory import Saved
from plait.plan.routed import Eddies, Routed, Teddies
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.workshop.bench.report import (
    Claim,
    Note,
    Report,
    Series,
    at_most,
    equal,
    ratio_spread,
    spread,
)

SEED = "004"
_TICK = 1_000
_UNLIMITED = 1 << 24
_FLAT = 1.25
_LINEAR = (0.8, 1.2)
_NAMES = ("eddies", "teddies")


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
    repeats: int = 15
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
    repeats: int = 19
    seed: int = 1


@dataclass(slots=True)
class _Run:
    seconds: float
    results: int
    decisions: int
    queues: list[Waited] = field(default_factory=list)


class Dear:
    """A policy whose every decision costs so many more instructions, each of them an increment."""

    def __init__(self, policy: Policy, instructions: int) -> None:
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

    def run(name: str, sigma: float) -> _Run:
        rows = max(16, int(options.decisions / (3 * (1 + sigma))))
        router = _systems(options.new_tuples, options.seed)[name]
        return _measure(router, options.keys, sigma, rows, options.seed)

    raced = _race(run, sigmas, options.repeats, "selectivity {:g}", note)
    medians = _report_ratios(report, raced, sigmas, "selectivity {:g}", "selectivity")
    later = [i for i in range(len(medians)) if max(medians[i:]) < 1]
    above = [s for s, m in zip(sigmas, medians, strict=True) if m >= 1]
    ours = "below 1 nowhere" if not later else f"below 1 from selectivity {sigmas[later[0]]:g} on"
    ours += f", at least 1 at {', '.join(f'{s:g}' for s in above)}" if above else ", nowhere above"
    report.claims = [
        _falls("falls", "the ratio falls as the selectivity grows", medians),
        Claim(
            "below-1",
            "the ratio passes below 1 (paper: above 1 at selectivities from 1 to 16, where there "
            "is little to put into packets, and below 1 above 32)",
            f"{ours}; {medians[0]:.2f} at {sigmas[0]:g}, {medians[-1]:.2f} at {sigmas[-1]:g}",
            medians[-1],
            "below 1 from some selectivity on",
            bool(later),
        ),
        _same_results(raced, sigmas, "both find as many results at every selectivity"),
    ]
    return report


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
    slopes = [_slope(sigmas, y) for y in later]
    fits = [float(np.corrcoef(sigmas, y)[0, 1]) for y in later]
    low, high = _LINEAR
    report.claims = [
        equal("five", "there are five metaqueues: three for new tuples, two for partial results",
              [(len(inputs), len(later)), (3, 2)]),
        at_most("inputs-flat", "the occupancy of the metaqueues of new tuples does not depend on "
                "the selectivity: largest / smallest", max(max(y) / min(y) for y in inputs), _FLAT),
        Claim(
            "later-linear",
            "the occupancy of the later metaqueues is linear in the selectivity",
            f"power of the selectivity {', '.join(f'{s:.2f}' for s in slopes)}, "
            f"correlation {', '.join(f'{f:.3f}' for f in fits)}",
            min(fits),
            f"power within {low} and {high}, correlation at least 0.98",
            all(low <= s <= high for s in slopes) and min(fits) >= 0.98,
        ),
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
    report.claims = [
        _falls("falls", "the ratio falls as a routing decision gets dearer, at selectivity 1",
               medians),
        at_most("below-1", "Teddies are faster when decisions are dear", medians[-1], 0.999),
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
    router: Routed, keys: int, sigma: float, rows: int, seed: int, instructions: int = 0
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
    if instructions:
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
    times = pa.array(np.arange(window + rows) * _TICK).cast(pa.timestamp("us"))
    tables = {}
    for i, stream in enumerate(query.streams):
        rng = np.random.default_rng([seed, i])
        columns = {
            f.name: times if f.name == "ts" else pa.array(rng.integers(0, keys, window + rows))
            for f in stream.fields
        }
        tables[stream.name] = pa.table(columns)
    return tables


def _batch(table: pa.Table) -> pa.RecordBatch:
    return table.combine_chunks().to_batches()[0]


def _doubled(least: float, most: float) -> list[float]:
    found = [least]
    while 2 * found[-1] <= most:
        found.append(2 * found[-1])
    return found


def _falls(id_: str, claim: str, ratios: Sequence[float]) -> Claim:
    """That a series goes down: by rank, and from its first to its last third."""
    ranks = np.argsort(np.argsort(ratios))
    order = round(float(np.corrcoef(np.arange(len(ratios)), ranks)[0, 1]), 12)
    measured = f"from {ratios[0]:.2f} to {ratios[-1]:.2f}, rank correlation {order:.2f}"
    holds = order <= -0.8 and ratios[-1] < ratios[0]
    return Claim(id_, claim, measured, order, "rank correlation at most -0.8", holds)


def _slope(x: Sequence[float], y: Sequence[float]) -> float:
    """The power of x that y grows with."""
    return float(np.polyfit(np.log2(x), np.log2(y), 1)[0])
