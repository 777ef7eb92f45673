"""Contests: who is in the finals, what hindsight is, and when a run is stopped."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import partial

import pyarrow as pa
import pytest

from plait.local.host import LocalRun, Rows
from plait.plan.jtree import parse_shape
from plait_lab.bench.contest import Contest, ContestOutcome, Course, measure, measure_in_turn
from plait_lab.workloads.keyed import keyed_query, keyed_tables


def course(batches: int = 4, starts: tuple[int, ...] = (0,)) -> Course:
    query = keyed_query([["k"], ["k"], ["k"]], 1_000_000)
    tables = keyed_tables(query, 400 * batches, 50, seed=1)
    cut = [{n: t.slice(400 * b, 400) for n, t in tables.items()} for b in range(batches)]
    return Course(query, cut, tuple(b // 2 for b in range(batches)), starts=starts)


def outcome(*phases: float, results: int = 1) -> ContestOutcome:
    stopped = math.inf in phases
    return ContestOutcome(
        tuple(p for p in phases if p < math.inf), phases, results, (1,), "", stopped=stopped
    )


def contest(**runs: list[ContestOutcome]) -> Contest:
    return Contest(course(), {}, runs=runs)


def test_hindsight_is_the_best_of_each_phase_round_by_round() -> None:
    found = contest(
        a=[outcome(1, 9), outcome(3, 9), outcome(2, 9)],
        b=[outcome(5, 2), outcome(5, 4), outcome(5, 3)],
        c=[outcome(4, 4), outcome(4, 4), outcome(4, 4)],
    )
    best, seconds = found.hindsight(["a", "b", "c"])
    assert best == ["a", "b"]
    assert seconds == [1 + 2, 3 + 4, 2 + 3]


def test_finalists_are_the_first_of_each_phase_and_of_all() -> None:
    found = contest(a=[outcome(1, 9)], b=[outcome(9, 1)], c=[outcome(3, 3)], d=[outcome(8, 8)])
    assert found.finalists("abcd", phase_places=1) == ["a", "b", "c"]
    assert set(found.finalists("abcd", phase_places=2)) == {"a", "b", "c"}


def test_a_stopped_run_counts_for_the_phases_it_finished() -> None:
    found = contest(a=[outcome(1, math.inf)], b=[outcome(2, 2)])
    assert found.finalists("ab", phase_places=1) == ["a", "b"]
    assert found.total("a") == math.inf and found.by_phase("a").tolist() == [1, math.inf]
    assert "stopped after 1 batches" in found.figures("a")["seconds"]


@pytest.mark.slow
def test_measuring_sums_up_by_phase_and_counts_results() -> None:
    given = course()
    plan = parse_shape(given.query, "((s0 s1) s2)")
    found = measure(given, partial(LocalRun, given.query, plan))
    assert len(found.seconds) == len(found.bytes) == 4 and not found.stopped
    assert sum(found.phases) == pytest.approx(found.total)
    assert found.phases[0] == pytest.approx(sum(found.seconds[:2]))
    assert found.plan == "((s0 s1) s2)" and not found.moves and not found.events
    run = LocalRun(given.query, plan)
    assert found.results == sum(run.push(batch).num_rows for batch in given.batches) > 0


@pytest.mark.slow
def test_a_partition_begins_with_a_run_of_its_own() -> None:
    whole, parts = course(), course(starts=(0, 2))
    runs = []

    def make() -> LocalRun:
        runs.append(LocalRun(whole.query))
        return runs[-1]

    assert measure(parts, make).results < measure(whole, make).results
    assert [run.counts.batches for run in runs] == [2, 2, 4]


@pytest.mark.slow
def test_a_migration_is_a_move_at_its_batch() -> None:
    given = course(starts=(0, 2))
    plans = [parse_shape(given.query, text) for text in ("(s0 s1 s2)", "((s0 s1) s2)")]

    class Moving(LocalRun):
        def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
            if self.counts.batches == 1:
                self.migrate(plans[1])
            yield from super().stream(batch)

    found = measure(given, partial(Moving, given.query, plans[0]))
    assert [(m.batch, m.plan) for m in found.moves] == [(1, "((s0 s1) s2)"), (3, "((s0 s1) s2)")]
    assert found.plan == "((s0 s1) s2), ((s0 s1) s2)"


@pytest.mark.slow
def test_what_takes_too_long_is_stopped() -> None:
    given = course()
    assert measure(given, partial(LocalRun, given.query), limit=0.0).stopped
    found = Contest(given, {n: partial(LocalRun, given.query) for n in "ab"})
    found.round("ab", "heat", stop=1e-9)
    assert [len(found.runs[n][0].seconds) for n in "ab"] == [4, 1]
    assert found.runs["b"][0].phases[1] == math.inf


@pytest.mark.slow
def test_in_turn_each_system_is_first_and_all_take_every_batch() -> None:
    given = course(batches=6)
    took: list[str] = []

    class Told(LocalRun):
        def __init__(self, name: str) -> None:
            super().__init__(given.query)
            self.name = name

        def stream(self, batch: Mapping[str, Rows]) -> Iterator[pa.RecordBatch]:
            took.append(self.name)
            yield from super().stream(batch)

    found = measure_in_turn(given, {name: partial(Told, name) for name in "abc"})
    assert [took[i : i + 3] for i in range(0, 9, 3)] == [list("bca"), list("cab"), list("abc")]
    assert len(took) == 18 and len({o.results for o in found.values()}) == 1
    assert all(len(o.seconds) == 6 and not o.stopped for o in found.values())
