"""Conditions on event times in nanoseconds are exact, though windows count microseconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import product

import pyarrow as pa
import pytest

import plait
from plait.errors import WindowError
from plait.local.host import LocalRun
from plait.query.query import Query
from plait.testing.oracle.answer import multiset, oracle

EDGES = [0, 1, 999, 1_000, 1_001, 1_999, 2_000, 2_001, 3_000, 5_000, 5_999, -1, -1_000, -1_001]
"""In nanoseconds, around whole microseconds."""
US = "INTERVAL '1 microsecond'"


def schema(unit: str) -> pa.Schema:
    return pa.schema([("ts", pa.timestamp(unit)), ("k", pa.int64())])


def rows(unit: str) -> list[dict[str, object]]:
    times = EDGES if unit == "ns" else sorted({t // 1_000 for t in EDGES})
    return [{"ts": t, "k": 0} for t in times]


def nanos(row: dict[str, object], unit: str) -> int:
    time = row["ts"]
    assert isinstance(time, int)
    return time if unit == "ns" else time * 1_000


CONDITIONS: dict[str, Callable[[int, int], bool]] = {
    "a.ts < b.ts": lambda a, b: a < b,
    "a.ts <= b.ts": lambda a, b: a <= b,
    "a.ts > b.ts": lambda a, b: a > b,
    f"b.ts < a.ts + {US}": lambda a, b: b < a + 1_000,
    f"b.ts <= a.ts + {US}": lambda a, b: b <= a + 1_000,
    f"b.ts - a.ts > {US}": lambda a, b: b - a > 1_000,
    f"b.ts BETWEEN a.ts - {US} AND a.ts + {US}": lambda a, b: a - 1_000 <= b <= a + 1_000,
    f"b.ts = a.ts + {US}": lambda a, b: b == a + 1_000,
    f"b.ts > a.ts AND b.ts < a.ts + {US}": lambda a, b: a < b < a + 1_000,
    "a.ts = b.ts": lambda a, b: a == b,
}


def asked(condition: str, left: str, right: str) -> Query:
    return (
        plait.join(a=schema(left), b=schema(right))
        .on("a.k = b.k", condition)
        .within("1 second")
        .select("a.ts AS t", "b.ts AS u")
        .query
    )


@pytest.mark.slow
@pytest.mark.parametrize(("left", "right"), [("ns", "ns"), ("ns", "us"), ("us", "ns")])
@pytest.mark.parametrize("condition", CONDITIONS)
def test_oracle_conditions_on_nanoseconds(condition: str, left: str, right: str) -> None:
    """Regression: both times were rounded down to microseconds before they were compared."""
    query = asked(condition, left, right)
    holds = CONDITIONS[condition]
    wanted = Counter(
        (a["ts"], b["ts"])
        for a, b in product(rows(left), rows(right))
        if holds(nanos(a, left), nanos(b, right))
    )
    assert wanted
    given = {"a": rows(left), "b": rows(right)}
    assert oracle(query, given) == wanted
    tables = {s.name: pa.Table.from_pylist(given[s.name], schema=s.schema) for s in query.streams}
    assert multiset(LocalRun(query).push(tables)) == wanted
    # Row by row, the later ones first: windows may drop nothing that the condition needs.
    run = LocalRun(query)
    found: Counter[tuple[object, ...]] = Counter()
    for name in "ab":
        found += multiset(run.push({name: tables[name].sort_by("ts")}))
    assert found == wanted


@pytest.mark.parametrize("text", [False, True])
def test_oracle_windows_are_exact_too(text: bool) -> None:
    """Regression: within one microsecond meant up to 1,999 nanoseconds."""
    if text:
        select = "SELECT a.ts AS t, b.ts AS u FROM a JOIN b USING (k) WITHIN '1 us'"
        query = plait.sql({"a": schema("ns"), "b": schema("ns")}, select).query
    else:
        built = plait.join(a=schema("ns"), b=schema("ns")).on("a.k = b.k").within("1 us")
        query = built.select("a.ts AS t", "b.ts AS u").query
    wanted = Counter((a, b) for a, b in product(EDGES, EDGES) if abs(a - b) <= 1_000)
    given = dict.fromkeys("ab", rows("ns"))
    assert oracle(query, given) == wanted
    table = pa.Table.from_pylist(rows("ns"), schema=schema("ns"))
    assert multiset(LocalRun(query).push({"a": table, "b": table})) == wanted


def test_microseconds_need_no_evaluation() -> None:
    """What the constraint says completely is not evaluated a second time."""
    assert asked("a.ts < b.ts", "us", "us").residuals == ()
    assert len(asked("a.ts < b.ts", "us", "ns").residuals) == 3, "the window is evaluated too"
    strictly = f"b.ts < a.ts + {US}"
    assert asked(strictly, "ns", "ns").bounds.matrix[0][1] == 1
    assert asked(strictly, "us", "us").bounds.matrix[0][1] == 0


def test_strict_conditions_contradict_each_other_in_nanoseconds_too() -> None:
    with pytest.raises(WindowError, match="contradict each other"):
        asked("a.ts < b.ts AND b.ts < a.ts", "ns", "ns")
    with pytest.raises(WindowError, match="contradict each other"):
        asked("a.ts < b.ts AND b.ts <= a.ts", "ns", "us")
    asked(f"a.ts < b.ts AND b.ts < a.ts + {US}", "ns", "us")
