"""Boolean SQL: what is a condition, what a bound on event times."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait import errors
from plait.query.bounds import Constraint
from plait.query.query import Field, Stream
from plait.query.sql import parse_condition

FIELDS = (
    Field("k", pa.int64()),
    Field("s", pa.string()),
    Field("ts", pa.timestamp("us")),
    Field("seen", pa.timestamp("us")),
    Field("zoned", pa.timestamp("us", "UTC")),
)
STREAMS = [
    Stream("a", FIELDS, "ts"),
    Stream("b", FIELDS, "ts"),
    Stream("c", (Field("ts", pa.timestamp("ns")), Field("z", pa.float64())), "ts"),
]
S = 1_000_000


def bounds(text: str) -> list[tuple[int, int, int]]:
    kept, found = parse_condition(text, STREAMS)
    assert kept == []
    return [(c.earlier, c.later, c.micros) for c in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("b.ts BETWEEN a.ts - INTERVAL 10 SECONDS AND a.ts + INTERVAL 5 SECONDS",
         [(1, 0, 10 * S), (0, 1, 5 * S)]),
        ("a.ts <= b.ts + INTERVAL 5 SECONDS", [(1, 0, 5 * S)]),
        ("a.ts < b.ts + INTERVAL 5 SECONDS", [(1, 0, 5 * S - 1)]),
        ("a.ts >= b.ts - INTERVAL 5 SECONDS", [(0, 1, 5 * S)]),
        ("a.ts > b.ts", [(0, 1, -1)]),
        ("a.ts + INTERVAL 1 SECOND <= b.ts - INTERVAL 2 SECONDS", [(1, 0, -3 * S)]),
        ("b.ts - a.ts <= INTERVAL '10' SECOND", [(0, 1, 10 * S)]),
        ("INTERVAL '10' SECOND >= b.ts - a.ts", [(0, 1, 10 * S)]),
        ("b.ts - a.ts BETWEEN -INTERVAL 1 SECOND AND INTERVAL 2 SECONDS",
         [(1, 0, S), (0, 1, 2 * S)]),
        ("b.ts <= a.ts + INTERVAL '1 minute 30 seconds'", [(0, 1, 90 * S)]),
        ("b.ts <= a.ts + INTERVAL 1 HOUR 30 MINUTES", [(0, 1, 5400 * S)]),
        ("b.ts >= a.ts - INTERVAL 1 HOUR 30 MINUTES", [(1, 0, 5400 * S)]),
        ("b.ts <= (a.ts + INTERVAL 1 DAY) - INTERVAL '1 00:00:01' DAY TO SECOND", [(0, 1, -S)]),
        ("b.ts <= a.ts + (INTERVAL 5 SECONDS - INTERVAL 250 MILLISECONDS)", [(0, 1, 4_750_000)]),
        ("b.ts = a.ts + INTERVAL 5 SECONDS", [(0, 1, 5 * S), (1, 0, -5 * S)]),
        ("abs(b.ts - a.ts) <= INTERVAL 5 SECONDS", [(0, 1, 5 * S), (1, 0, 5 * S)]),
        ("(a.ts <= b.ts) AND (b.ts <= a.ts)", [(1, 0, 0), (0, 1, 0)]),
    ],
)  # fmt: skip
def test_bounds(text: str, expected: list[tuple[int, int, int]]) -> None:
    assert bounds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.k = b.k", ["a.k = b.k"]),
        ("a.k = b.k AND a.k > 5 AND (b.k > 6)", ["a.k = b.k", "a.k > 5", "b.k > 6"]),
        ("a.seen <= b.seen + INTERVAL 1 SECOND", ["a.seen <= b.seen + INTERVAL '1 s'"]),
        ("a.ts > TIMESTAMP '2024-01-01'", ["a.ts > TIMESTAMP '2024-01-01 00:00:00'"]),
        ("a.ts <= b.ts OR a.k = 1", ["a.ts <= b.ts OR a.k = 1"]),
        ("NOT a.ts <= b.ts", ["NOT a.ts <= b.ts"]),
        ("a.k BETWEEN 1 AND 2", ["a.k >= 1", "a.k <= 2"]),
        ("TRUE AND 1 = 1", []),
        ("z > 1", ["c.z > 1"]),
    ],
)
def test_conditions(text: str, expected: list[str]) -> None:
    kept, found = parse_condition(text, STREAMS)
    assert [str(k) for k in kept] == expected
    assert found == []


def test_equal_event_times_are_a_join_predicate_and_a_bound() -> None:
    kept, found = parse_condition("a.ts = b.ts", STREAMS)
    assert [str(k) for k in kept] == ["a.ts = b.ts"]
    assert found == [Constraint(1, 0, 0), Constraint(0, 1, 0)]


def test_an_equality_of_nanoseconds_is_kept_beside_its_bounds() -> None:
    kept, found = parse_condition("c.ts = a.ts + INTERVAL 1 SECOND", STREAMS)
    assert [str(k) for k in kept] == ["c.ts = a.ts + INTERVAL '1 s'"]
    assert found == [Constraint(0, 2, S), Constraint(2, 0, -S)]
    kept, found = parse_condition("c.ts <= a.ts + INTERVAL 5 SECONDS", STREAMS)
    assert [str(k) for k in kept] == ["c.ts <= a.ts + INTERVAL '5 s'"]
    assert found == [Constraint(0, 2, 5 * S)]


@pytest.mark.slow
def test_long_conditions() -> None:
    kept, _ = parse_condition(" AND ".join(f"a.k > {i}" for i in range(500)), STREAMS)
    assert len(kept) == 500
    kept, _ = parse_condition(f"a.k IN ({', '.join(map(str, range(500)))})", STREAMS)
    assert len(kept) == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("", errors.QueryError, "the condition is empty"),
        ("a.k = b.k; a.k = 1", errors.UnsupportedSql, "line 1, column 12: a second statement"),
        ("a.k = b.k AND\n  d.k = 1", errors.UnknownStream,
         "line 2, column 3: there is no stream 'd'; known: a, b, c"),
        ("a.kk = b.k", errors.UnknownColumn,
         "line 1, column 1: stream 'a' has no column 'kk'; did you mean 'k'?"),
        ("k = 1", errors.AmbiguousColumn,
         "line 1, column 1: column 'k' is in several streams: a, b; write a.k"),
        ("a.k = b.k AND a.s > 5", errors.TypeMismatch,
         "line 1, column 15: a.s > 5 has no meaning: a.s is string and 5 is int64"),
        ("a.k = b.s", errors.TypeMismatch,
         "line 1, column 1: a.k is int64 and b.s is string: they can never be equal"),
        ("a.k", errors.TypeMismatch,
         "line 1, column 1: the condition a.k is of type int64, not true or false"),
        ("a.ts <= b.zoned", errors.TypeMismatch, "one has a time zone and the other has none"),
        ("a.ts + b.ts <= a.ts", errors.TypeMismatch, "a.ts + b.ts has no meaning"),
        ("1 = 2", errors.QueryError, "the condition 1 = 2 reads no column; leave it out"),
        ("1 + 'a' = 2", errors.TypeMismatch, "line 1, column 1: 1 + 'a' has no meaning"),
        ("a.k = b.k AND b.ts BETWEEN a.ts AND a.ts - INTERVAL 1 SECOND", errors.WindowError,
         "line 1, column 15: the interval b.ts >= a.ts AND b.ts <= a.ts - INTERVAL '1 s' is empty: "
         "its lower end is above its upper end; exchange the ends of BETWEEN"),
        ("a.k = b.k AS x", errors.UnsupportedSql, "AS within an expression is not supported"),
        ("SELECT 1", errors.UnsupportedSql, "line 1, column 1: a subquery is not supported"),
        ("a.k =", errors.UnsupportedSql, "syntax error"),
        ("a.k IN", errors.UnsupportedSql, "line 1, column 1: IN without a list is not supported"),
        ("(" * 400 + "1" + ")" * 400 + " = 1", errors.UnsupportedSql, "hundreds of levels"),
        (" OR ".join(["a.k = 1"] * 1200), errors.UnsupportedSql, "hundreds of levels"),
        ("a.s = 'x", errors.UnsupportedSql, "line 1, column 7: syntax error: a ' without its end"),
        ("DROP TABLE a", errors.UnsupportedSql, "DROP is not supported"),
    ],
)  # fmt: skip
def test_bad_conditions(text: str, type_: type[errors.PlaitError], message: str) -> None:
    with pytest.raises(type_) as caught:
        parse_condition(text, STREAMS)
    assert message in str(caught.value)
