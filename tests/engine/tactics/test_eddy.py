"""Eddies: one queue, one tuple at a time."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.engine.tactics.eddy import EddyTactic
from plait.local.host import LocalRun
from plait.plan.routed import Eddies
from plait.testing.examples import clique


def table(times: list[int], *keys: list[int]) -> pa.Table:
    names = ["k"] if len(keys) == 1 else [f"k{i}" for i in range(len(keys))]
    columns = dict(zip(names, keys, strict=True))
    return pa.table({"ts": pa.array(times).cast(pa.timestamp("us")), **columns})


@pytest.mark.parametrize("policy", ["random", "lottery", "ordered"])
def test_eddies_route_one_tuple_at_a_time(policy: str) -> None:
    run = LocalRun(clique(3), Eddies(policy=policy, intake=2))
    rows = table([1, 2, 3], [7, 7, 8])
    assert run.push({"a": rows, "b": rows, "c": rows}).num_rows == 9
    eddy = run.engine.tactic
    assert isinstance(eddy, EddyTactic)
    probes = sum(visit.counters.probes for visit in eddy.visits())
    assert eddy.decisions == probes
    (counters,) = eddy.counters
    assert [i.inserts for i in counters.inputs] == [3, 3, 3]
    assert counters.outputs == 9
    assert sum(s.probes for i in counters.inputs for s in i.steps) == probes
    assert eddy.longest_queue >= 2
    assert not eddy.waiting and list(run.finish()) == []


def test_restored_tuples_are_found_but_find_nothing() -> None:
    rows = table([1, 2], [7, 7])
    first = LocalRun(clique(2), Eddies())
    engine = first.engine
    batch = rows.to_batches()[0]
    arrivals = {s: engine.admit(s, batch, -(2**62)).arrivals for s in (0, 1)}
    engine.restore(arrivals, [1, 1])
    assert first.counts.results == 0
    assert first.push({"a": table([2], [7])}).num_rows == 2


def test_rows_expire() -> None:
    run = LocalRun(clique(2), Eddies())
    for second in range(40):
        start = second * 1_000_000
        rows = table([start, start + 1], [1, 2])
        run.push({"a": rows, "b": rows})
    assert [len(base) for base in run.engine.bases] == [21, 21]
