"""Tens of thousands of rows: the engine and DuckDB agree, batch size and plan notwithstanding.

Large enough for rings to wrap, indexes to grow, states to be compacted and keys to be forgotten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest

from plait.local.host import LocalRun
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.oracle.checksum import checksum
from plait.testing.oracle.duck import count_and_checksum
from plait.testing.streams.generate import generate
from plait.testing.streams.specs import Burst, Key, Payload, StreamSpec
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.strategies.tunings import drawn_tuning
from plait_lab.workloads.feeds import batches

SECOND = 1_000_000
NUMBER = Payload("n", "sequence")


def _query(
    specs: Sequence[StreamSpec],
    equal: Sequence[str],
    constraints: Sequence[Constraint],
    *conditions: Expr,
) -> Query:
    """The query over generated streams that selects which rows met."""
    streams = [
        Stream(
            spec.name,
            tuple(Field(f.name, f.type) for f in spec.schema),
            spec.time,
            round(spec.disorder * SECOND),
        )
        for spec in specs
    ]
    pairs = [[Column(*side.split(".")) for side in e.split("=")] for e in equal]
    outputs = [Output(s.name, Column(s.name, "n")) for s in specs]
    return make_query(
        streams, [*(Call("eq", tuple(p)) for p in pairs), *conditions], constraints, outputs
    )


def _clique() -> tuple[list[StreamSpec], Query]:
    """One string key, skewed; a third of the rows out of order."""
    specs = [
        StreamSpec(
            name,
            keys=(Key("k", 300, 0.5, "string", nulls=0.02),),
            payload=(NUMBER,),
            rate=200,
            disorder=2.0,
            out_of_order=0.3,
            null_times=0.01,
        )
        for name in "abc"
    ]
    return specs, _query(specs, ["a.k=b.k", "b.k=c.k"], global_window(3, SECOND))


def _chain() -> tuple[list[StreamSpec], Query]:
    """Another key at each link, of mixed types, and intervals that lie apart."""
    specs = [
        StreamSpec("a", (Key("x", 150, type="int32"),), (NUMBER,), 150, disorder=1, out_of_order=1),
        StreamSpec("b", (Key("x", 150), Key("y", 90, type="decimal")), (NUMBER,), 150, grain=0.01),
        StreamSpec("c", (Key("y", 90, type="int32"), Key("z", 60, type="date")), (NUMBER,), 150),
        StreamSpec("d", (Key("z", 60, type="date"),), (NUMBER,), 150, silences=((20.0, 40.0),)),
    ]
    bounds = []
    for i, j in pairwise(range(4)):
        bounds += [Constraint(i, j, SECOND), Constraint(j, i, -SECOND // 5)]
    return specs, _query(specs, ["a.x=b.x", "b.y=c.y", "c.z=d.z"], bounds)


def _star() -> tuple[list[StreamSpec], Query]:
    """Bursts, ties, changing selectivity, and conditions over two and three streams."""
    bursts = (Burst(every=10, length=1, factor=8),)
    specs = [
        StreamSpec("a", (Key("x", 80), Key("y", 80)), (NUMBER, Payload("v", high=9)), 120),
        StreamSpec(
            "b",
            (Key("x", 80, domains=((30.0, 200),)),),
            (NUMBER, Payload("v", high=9)),
            120,
            bursts=bursts,
            grain=0.1,
        ),
        StreamSpec(
            "c",
            (Key("y", 80),),
            (NUMBER, Payload("v", high=9, nulls=0.1)),
            ((0, 50), (30, 300)),
            disorder=3,
            out_of_order=0.1,
        ),
    ]
    va, vb, vc = (Column(s, "v") for s in "abc")
    two = Call("ne", (va, vb))
    three = Call("le", (Call("add", (va, vb)), Call("add", (vc, Literal(9, pa.int64())))))
    return specs, _query(specs, ["a.x=b.x", "a.y=c.y"], global_window(3, SECOND), two, three)


def _cycle() -> tuple[list[StreamSpec], Query]:
    """Each stream shares a key with two others, so the last probe compares two keys at once."""
    specs = [
        StreamSpec("a", (Key("x", 30), Key("y", 30, type="string")), (NUMBER,), 120),
        StreamSpec("b", (Key("x", 30), Key("z", 30)), (NUMBER,), 120, disorder=0.5, out_of_order=1),
        StreamSpec("c", (Key("y", 30, type="string"), Key("z", 30)), (NUMBER,), 120),
    ]
    bounds = [*global_window(3, 2 * SECOND), Constraint(0, 1, SECOND)]
    return specs, _query(specs, ["a.x=b.x", "a.y=c.y", "b.z=c.z"], bounds)


SHAPES = {"clique": _clique, "chain": _chain, "star": _star, "cycle": _cycle}


def _run(
    query: Query,
    seed: int,
    tables: dict[str, pa.Table],
    rows: int | None = None,
    seconds: float | None = None,
) -> tuple[int, int]:
    """Count and checksum of the engine's results with a plan drawn by the seed."""
    random = Random(seed)
    plan = sample_plan(query, random)
    run = LocalRun(query, plan, tuning=replace(drawn_tuning(random), walkers=16))
    found = [run.push(batch) for batch in batches(tables, rows=rows, seconds=seconds)]
    assert sum(run.counts.late.values()) == 0
    results = pa.concat_tables(found)
    return results.num_rows, checksum(results)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_differential_duckdb(shape: str) -> None:
    specs, query = SHAPES[shape]()
    tables = generate(specs, seconds=60, seed=7)
    count, total = count_and_checksum(query, tables, threads=1)
    assert count > 1_000
    assert _run(query, 0, tables, rows=1_000) == (count, total)
    assert _run(query, 1, tables, rows=50_000) == (count, total)
    assert _run(query, 2, tables, seconds=0.5) == (count, total)


@pytest.mark.campaign
@pytest.mark.parametrize("shape", SHAPES)
def test_differential_duckdb_at_length(shape: str) -> None:
    specs, query = SHAPES[shape]()
    tables = generate(specs, seconds=400, seed=11)
    expected = count_and_checksum(query, tables, threads=1)
    for seed in range(4):
        assert _run(query, seed, tables, rows=20_000) == expected, f"seed {seed}"
