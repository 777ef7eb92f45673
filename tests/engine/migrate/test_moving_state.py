"""Moving state: what is shared, what is computed, and what may be discarded."""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.migrate.moving_state import all_tuples, move_state
from plait.engine.states import CombinedState
from plait.engine.tactics.tree import TreeTactic
from plait.errors import MemoryExceeded
from plait.kernels.ring import first_positions, ids_of
from plait.local.host import LocalRun
from plait.plan.jtree import parse_shape
from plait.query.query import Query
from plait.testing.oracle.checksum import checksum
from plait_lab.workloads.keyed import keyed_query, keyed_tables

SECOND = 1_000_000
CHAIN = [["k1"], ["k1", "k2"], ["k2", "k3"], ["k3"]]
ROWS, BATCHES = 600, 12
Batches = list[dict[str, pa.Table]]


def workload(
    keys: list[list[str]] = CHAIN, *, domain: int = 12, window: int = SECOND // 10, delay: int = 0
) -> tuple[Query, Batches]:
    """A few windows' worth of rows, some of them out of order if there is a delay."""
    query = keyed_query(keys, window, delay)
    share = 0.3 if delay else 0.0
    tables = keyed_tables(query, ROWS, domain, 3, disorder=max(1, delay), share=share)
    size = ROWS // BATCHES
    return query, [
        {name: table.slice(b * size, size) for name, table in tables.items()}
        for b in range(BATCHES)
    ]


def run_to(query: Query, shape: str, batches: Batches) -> LocalRun:
    run = LocalRun(query, parse_shape(query, shape))
    for batch in batches:
        run.push(batch)
    return run


def tree(run: LocalRun) -> TreeTactic:
    assert isinstance(run.engine.tactic, TreeTactic)
    return run.engine.tactic


def live(tree: TreeTactic) -> dict[frozenset[int], Counter[tuple[int, ...]]]:
    """The live combinations of every state, as ids of base rows."""
    found = {}
    for state in tree.combined:
        tuples = all_tuples(state)
        keep = state.alive(tuples, tree.windows.watermarks).astype(bool)
        ids = [
            ids_of(tree.windows.bases[s].window.ring.header, tuples[s][keep]).tolist()
            for s in sorted(tuples)
        ]
        found[state.streams] = Counter(zip(*ids, strict=True))
    return found


@pytest.mark.slow
def test_matching_states_are_handed_over_and_not_copied() -> None:
    query, batches = workload()
    run = run_to(query, "(((s0 s1) s2) s3)", batches)
    old = tree(run)
    states = {state.streams: state for state in old.combined}
    columns = {k: dict(s.window.ring.columns) for k, s in states.items()}
    moved = move_state(old, old.windows, parse_shape(query, "((s0 s1) (s2 s3))"))
    new = moved.tactic
    assert isinstance(new, TreeTactic)
    kept = frozenset({0, 1})
    (shared,) = (state for state in new.combined if state.streams == kept)
    assert shared is states[kept]
    for name, column in shared.window.ring.columns.items():
        if name in columns[kept]:
            assert column is columns[kept][name], "a column was copied"
    assert moved.shared == {kept: len(shared)} and len(shared)
    assert set(moved.recomputed) == {frozenset({2, 3})}
    assert set(moved.discarded) == {frozenset({0, 1, 2})}
    assert new.windows is old.windows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(((s0 s1) s2) s3)", "(s0 (s1 (s2 s3)))"),
        ("(s0 s1 s2 s3)", "((s0 s1) (s2 s3))"),
        ("((s0 (s1 s2)) s3)", "(s0 ((s1 s2) s3))"),
        ("(s0 (s1 (s2 s3)))", "((s0 s1 s2) s3)"),
    ],
)
@pytest.mark.parametrize("delay", [0, SECOND // 50])
def test_differential_states_are_those_of_a_plan_that_ran_all_the_time(
    old: str, new: str, delay: int
) -> None:
    query, batches = workload(delay=delay)
    run, other = run_to(query, old, batches), run_to(query, new, batches)
    done = run.migrate(parse_shape(query, new))
    assert live(tree(run)) == live(tree(other))
    assert sum(c.total() for c in live(tree(run)).values())
    fresh = {s: len(x) for s, x in ((s.streams, s) for s in tree(run).combined)}
    assert sum(fresh.values()) == done.shared + done.recomputed


def test_only_combinations_with_a_future_are_recomputed() -> None:
    query, batches = workload(delay=SECOND // 50)
    run = run_to(query, "(s0 s1 s2 s3)", batches)
    done = run.migrate(parse_shape(query, "(s0 (s1 (s2 s3)))"))
    assert done.recomputed == sum(c.total() for c in live(tree(run)).values())
    rows = [len(base) for base in run.engine.bases]
    assert done.probes < sum(rows) + done.recomputed, "an input was looked up from both sides"


def test_recomputed_rows_stand_in_the_order_of_time() -> None:
    query, batches = workload()
    run = run_to(query, "(s0 s1 s2 s3)", batches)
    run.migrate(parse_shape(query, "((s0 s1) (s2 s3))"))
    for state in tree(run).combined:
        latest, _ = state.span(all_tuples(state))
        behind = np.maximum.accumulate(latest) - latest
        assert behind.max() <= np.ptp(latest) / (len(latest) // 4) * 2


@pytest.mark.slow
def test_a_shared_state_gets_the_index_it_lacks_and_loses_the_one_it_does_not_need() -> None:
    """b⋈c is looked up by a with one key, and by d with another."""
    query, batches = workload()
    shapes = ("((s0 (s1 s2)) s3)", "(s0 ((s1 s2) s3))")
    run = run_to(query, shapes[0], batches[:6])
    (state,) = (s for s in tree(run).combined if s.streams == {1, 2})
    for number in range(6, BATCHES):
        before = set(state.window.indexes)
        run.migrate(parse_shape(query, shapes[(number + 1) % 2]))
        assert state in tree(run).combined
        assert len(state.window.indexes) == 1 and set(state.window.indexes) != before
        run.push(batches[number])
    other = run_to(query, shapes[0], batches)
    assert run.counts.results == other.counts.results > 0


def test_base_windows_keep_only_the_indexes_that_the_plan_needs() -> None:
    query, batches = workload()
    run = run_to(query, "(s0 s1 s2 s3)", batches[:6])
    plan = parse_shape(query, "((s0 s1) (s2 s3))")
    run.migrate(plan)
    there = [set(base.window.indexes) for base in run.engine.bases]
    fresh = [set(base.window.indexes) for base in Engine(query, plan).bases]
    assert there == fresh


@pytest.mark.slow
def test_nothing_is_emitted_and_the_root_looks_nothing_up() -> None:
    query, batches = workload()
    run = run_to(query, "(((s0 s1) s2) s3)", batches)
    results = run.counts.results
    run.migrate(parse_shape(query, "(s0 (s1 (s2 s3)))"))
    assert run.counts.results == results and not list(run.finish())
    for operator in tree(run).counters:
        assert operator.outputs == 0
        assert all(step.probes == 0 for i in operator.inputs for step in i.steps)


# --- safe discarding (CAPE 4.1.3) ----------------------------------------------------------------


def parts_gone(state: CombinedState) -> npt.NDArray[np.bool_]:
    gone = np.zeros(len(state), np.bool_)
    for positions in all_tuples(state).values():
        gone |= positions < 0
    return gone


def test_a_combination_whose_part_was_purged_has_no_future() -> None:
    """Such combinations exist in the old state, and by their own times nothing can join them."""
    query, batches = workload([["k"]] * 3, domain=60)
    width = query.bounds.uniform
    assert width is not None
    run = LocalRun(query, parse_shape(query, "((s0 s1) s2)"))
    seen = 0
    for batch in batches:
        run.push(batch)
        (state,) = tree(run).combined
        gone = parts_gone(state)
        rows = first_positions(state.window.ring.header, 0, len(state))
        earliest = state.window.earliest[rows[gone]]
        reached = tree(run).windows.watermarks[2]
        assert np.all(earliest + width < reached), "the base windows lost a tuple too early"
        seen += int(gone.sum())
    assert seen, "no combination outlived its parts: the case was not met"


@pytest.mark.slow
@pytest.mark.parametrize("new", ["(s0 (s1 s2))", "((s0 s2) s1)", "(s0 s1 s2)"])
def test_oracle_discarding_a_state_with_purged_parts_loses_nothing(new: str) -> None:
    query, batches = workload([["k"]] * 3, domain=60)
    wanted = LocalRun(query, parse_shape(query, "(s0 s1 s2)"))
    answer = pa.concat_tables([wanted.push(batch) for batch in batches])
    checked = 0
    for instant in range(1, BATCHES):
        run = LocalRun(query, parse_shape(query, "((s0 s1) s2)"))
        found = [run.push(batch) for batch in batches[:instant]]
        (state,) = tree(run).combined
        checked += bool(parts_gone(state).any())
        done = run.migrate(parse_shape(query, new))
        assert done.discarded == len(state)
        found += [run.push(batch) for batch in batches[instant:]]
        results = pa.concat_tables(found)
        assert (len(results), checksum(results)) == (len(answer), checksum(answer))
    assert checked, "no state with purged parts was discarded: the case was not met"


# --- memory --------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_plan_that_does_not_fit_is_refused_and_the_old_one_runs_on() -> None:
    query, batches = workload([["k"]] * 3, domain=6, window=SECOND // 5)
    free = run_to(query, "(s0 s1 s2)", batches)
    limit = free.engine.nbytes + 10_000
    run = LocalRun(query, parse_shape(query, "(s0 s1 s2)"), memory_limit=limit)
    for number, batch in enumerate(batches):
        if number == 8:
            before = run.engine.tactic
            indexes = [set(b.window.indexes) for b in run.engine.bases]
            with pytest.raises(MemoryExceeded, match="s0⋈s1"):
                run.migrate(parse_shape(query, "((s0 s1) s2)"))
            assert run.engine.tactic is before and run.migrations == []
            assert [set(b.window.indexes) for b in run.engine.bases] == indexes
        run.push(batch)
    assert run.counts.results == free.counts.results
