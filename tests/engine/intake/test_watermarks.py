"""What rows to come are not older than, by either rule."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest

import plait
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.intake.watermarks import watermarks_of
from plait.errors import QueryError, WindowError
from plait.local.host import LocalRun
from plait.plan.explain import explain
from plait.plan.jtree import mjoin
from plait.query.compare import difference
from plait.query.query import NEVER_LATE, Lateness, Query
from plait.query.serde import query_from_dict, query_to_dict
from plait.testing.oracle.answer import multiset, oracle, split_late
from plait_lab.laws.processors import Cluster

ROW = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])


def asked(rule: Lateness = "least", **delays: str) -> Query:
    return (
        plait.join(a=ROW, b=ROW)
        .watermark(**delays)
        .lateness(rule)
        .on("a.k = b.k")
        .within("50 us")
        .select("a.ts AS t", "b.ts AS u")
        .query
    )


def test_by_the_least_a_stream_that_was_not_seen_holds_all_back() -> None:
    query = asked(a="5 us", b="20 us")
    assert watermarks_of(query, [100, BEFORE_ALL_TIMES]) == [BEFORE_ALL_TIMES] * 2
    assert watermarks_of(query, [100, 90]) == [70, 70]
    assert watermarks_of(query, [100, 200]) == [95, 95]
    own = replace(query, lateness="own")
    assert watermarks_of(own, [100, BEFORE_ALL_TIMES]) == [95, BEFORE_ALL_TIMES]
    assert watermarks_of(own, [100, 90]) == [95, 70]


BATCHES = [
    {"a": [{"ts": 100, "k": 1}]},
    {"a": [{"ts": 60, "k": 1}]},  # b has not been seen: by the least rule not late
    {"b": [{"ts": 90, "k": 1}]},
    {"a": [{"ts": 95, "k": 1}, {"ts": 80, "k": 1}]},  # b is at 90: 95 is on time, 80 is late
    {"b": [{"ts": 130, "k": 1}]},
    {"a": [{"ts": 99, "k": 1}]},  # a itself is at 100
]
LATE: dict[Lateness, list[int]] = {"own": [60, 95, 80, 99], "least": [80, 99]}


@pytest.mark.parametrize("rule", ["own", "least"])
def test_oracle_the_slowest_stream_decides(rule: Lateness) -> None:
    """Regression: a row that Spark would have joined was late, as its stream had run ahead."""
    query = asked(rule)
    on_time, late = split_late(query, BATCHES)
    assert [row["ts"] for row in late["a"]] == LATE[rule] and not late["b"]
    answer = oracle(query, on_time)
    tables = [
        {name: pa.Table.from_pylist(rows, schema=ROW) for name, rows in batch.items()}
        for batch in BATCHES
    ]
    run = LocalRun(query)
    found = sum((multiset(run.push(batch)) for batch in tables), Counter())
    assert found == answer
    handed_out = run.late()["a"].column("ts").cast(pa.int64()).to_pylist()
    assert handed_out == LATE[rule] and run.counts.late == {"a": len(LATE[rule]), "b": 0}
    cluster = Cluster(query, mjoin(query), 2)
    assert sum((multiset(cluster.run(batch)) for batch in tables), Counter()) == answer
    totals = sum((Counter(r.total["late"]) for r in cluster.reports), Counter())
    assert totals == {"a": len(LATE[rule])}


def test_watermarks_of_a_run_are_those_of_the_rule() -> None:
    run = LocalRun(asked(a="5 us"))
    run.push({"a": pa.table({"ts": [100], "k": [1]}, schema=ROW)})
    assert run.watermarks == {"a": None, "b": None}
    run.push({"b": pa.table({"ts": [300], "k": [1]}, schema=ROW)})
    assert run.watermarks == {"a": 95, "b": 95}


def test_the_rule_is_part_of_the_question() -> None:
    least, own = asked(), asked("own")
    assert query_from_dict(query_to_dict(least)) == least != own
    assert "lateness" not in query_to_dict(own), "as written by earlier versions"
    assert difference(least, own) == "lateness least instead of own"
    line = "  late    by the least watermark of all streams"
    assert line in explain(least, mjoin(least)) and "late  " not in explain(own, mjoin(own))
    text = "SELECT a.ts AS t, b.ts AS u FROM a JOIN b USING (k) WITHIN '50 us'"
    said = plait.sql({"a": ROW, "b": ROW}, text, lateness="least")
    assert said.query == least


def test_no_other_rule_is_known() -> None:
    with pytest.raises(WindowError, match="no rule 'max' by which rows are late; 'own' goes"):
        plait.join(a=ROW, b=ROW).lateness("max")  # type: ignore[arg-type]  # what is refused
    with pytest.raises(QueryError, match=r'\$.lateness is "max"; known: own, least'):
        query_from_dict({**query_to_dict(asked()), "lateness": "max"})


def test_results_may_lag_behind_by_the_delay_of_any_stream() -> None:
    query = asked(a="5 us", b="20 us")
    assert query.result_delay("a") == 50 + 20 + 50
    assert replace(query, lateness="own").result_delay("a") == 20 + 50 + 50


@pytest.mark.parametrize("rule", ["own", "least"])
def test_oracle_a_stream_without_a_watermark_has_no_late_rows(rule: Lateness) -> None:
    """Spark without a watermark drops nothing; what waits for the stream stays."""
    query = asked(rule)
    endless = replace(query.streams[0], delay=NEVER_LATE)
    query = replace(query, streams=(endless, query.streams[1]))
    on_time, late = split_late(query, BATCHES)
    assert not late["a"]
    tables = [
        {name: pa.Table.from_pylist(rows, schema=ROW) for name, rows in batch.items()}
        for batch in BATCHES
    ]
    run = LocalRun(query)
    assert sum((multiset(run.push(b)) for b in tables), Counter()) == oracle(query, on_time)
    assert run.watermarks["a"] is None and run.counts.late == {"a": 0, "b": 0}
    cluster = Cluster(query, mjoin(query), 2)
    found = sum((multiset(cluster.run(b)) for b in tables), Counter())
    assert found == oracle(query, on_time)
    assert "a  event time ts, no watermark: no row is late, state grows" in explain(
        query, mjoin(query)
    )
    with pytest.raises(WindowError, match="'a' has no watermark, so results may lag behind"):
        query.result_delay("b")
