"""What a routing decision of Eddies costs: compiled, and as packets of one tuple.

Both ways route the same tuples over the same windows, in turn, in one process: a decision, a lookup
and what it finds. What counts is the processor time of the routing, divided by its decisions.
Beside it stands that of the whole run, in which storing and dropping rows and handing results out
are the same for both. The policy draws by tickets (`random`, `lottery`: compiled with the rest) or
is asked for every tuple (`ordered`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import pyarrow as pa

from plait.engine.states import Tuples
from plait.engine.tactics.eddy import EddyTactic
from plait.kernels.jit import Positions
from plait.local.host import LocalRun
from plait.plan.routed import POLICIES, Eddies
from plait.query.query import Query
from plait_lab.reporting.report import Note, Report, Series, at_least, equal, ratio_spread, spread
from plait_lab.workloads.keyed import keyed_query, keyed_tables

_FASTER = {"lottery": 10.0, "random": 10.0, "ordered": 3.0}
"""How many times faster a decision must be, by policy."""
_CHAIN = [["a"], ["a", "b"], ["b"]]


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 2_000
    """Rows per stream."""
    keys: int = 1_000
    window_seconds: int = 5
    intake: int = 64
    repeats: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class _Run:
    routing: float
    """Microseconds per decision inside the router."""
    whole: float
    """Microseconds per decision of the whole run."""
    decisions: int
    results: int


def eddies_decision(options: Options, note: Note) -> Report:
    """Processor time per routing decision of Eddies, compiled and as packets of one."""
    report = Report("eddies-decision", asdict(options))
    query = keyed_query(_CHAIN, options.window_seconds * 1_000_000)
    tables = keyed_tables(query, options.rows, options.keys, options.seed)
    for policy in POLICIES:
        runs: dict[bool, list[_Run]] = {True: [], False: []}
        for repeat in range(options.repeats + 1):
            note(f"{policy}: " + (f"pair {repeat} of {options.repeats}" if repeat else "warm-up"))
            for compiled in (True, False) if repeat % 2 else (False, True):
                found = _measure(query, tables, policy, compiled, options)
                if repeat:
                    runs[compiled].append(found)
        costs = {way: [r.routing for r in found] for way, found in runs.items()}
        whole = {way: [r.whole for r in found] for way, found in runs.items()}
        for way, name in ((True, "compiled"), (False, "packets of one")):
            report.systems[f"{policy}, {name}"] = {
                "µs per decision": spread(costs[way]),
                "whole run": spread(whole[way]),
                "decisions": runs[way][-1].decisions,
                "results": runs[way][-1].results,
            }
        faster = [b / a for a, b in zip(costs[True], costs[False], strict=True)]
        report.ratios[f"{policy}: packets of one / compiled"] = spread(faster)
        report.ratios[f"{policy}: packets of one / compiled, whole run"] = ratio_spread(
            whole[False], whole[True]
        )
        report.claims += [
            at_least(
                f"{policy}-faster",
                f"{policy}: a compiled decision is so many times faster",
                spread(faster)["median"],
                _FASTER[policy],
                "times",
            ),
            equal(
                f"{policy}-results",
                f"{policy}: both find as many results",
                [r.results for found in runs.values() for r in found],
            ),
        ]
        x = list(range(1, options.repeats + 1))
        for way, name in ((True, "compiled"), (False, "packets of one")):
            report.series.append(
                Series(f"{policy}, {name}", x, costs[way], "µs per decision", "pair", y_scale="log")
            )
    return report


def _measure(
    query: Query, tables: dict[str, pa.Table], policy: str, compiled: bool, options: Options
) -> _Run:
    run = LocalRun(query, Eddies(policy=policy, seed=options.seed, intake=options.intake))
    router = run.engine.tactic
    assert isinstance(router, EddyTactic)
    router.compiled = compiled
    timed = _Timed(router.probe)
    router.probe = timed  # type: ignore[method-assign]  # to time it
    began = time.process_time()
    for _ in run.stream(tables):
        pass
    spent = time.process_time() - began
    decisions = router.decisions
    return _Run(
        1e6 * timed.seconds / decisions, 1e6 * spent / decisions, decisions, run.counts.results
    )


class _Timed:
    """A router's `probe` that takes the time between what it yields."""

    def __init__(self, probe: Callable[[int, Positions], Iterator[Tuples]]) -> None:
        self._probe = probe
        self.seconds = 0.0

    def __call__(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        began = time.process_time()
        for found in self._probe(stream, positions):
            self.seconds += time.process_time() - began
            yield found
            began = time.process_time()
        self.seconds += time.process_time() - began
