"""Columns that Spark compares by rules of its own: results have them, nothing else reads them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import plait
from plait.errors import TypeMismatch
from plait.query.keys import carried

COLLATED = carried(pa.string(), "string collate UTF8_LCASE")
ROW = pa.schema(
    [
        ("k", pa.int64()),
        ("s", COLLATED),
        ("plain", pa.string()),
        ("pair", pa.struct([("x", COLLATED), ("id", pa.int64())])),
        ("list", pa.list_(COLLATED)),
        ("ts", pa.timestamp("us")),
    ]
)


def asked(condition: str) -> plait.Join:
    """A question with this condition."""
    outputs = ("a.s", "b.pair.x AS x", "a.list", "b.pair")
    return plait.join(a=ROW, b=ROW).on("a.k = b.k", condition).within("5 seconds").select(*outputs)


@pytest.mark.parametrize(
    "condition",
    [
        *("a.s = b.s", "a.s = b.plain", "a.pair = b.pair", "a.list = b.list"),
        *("a.s = 'x'", "'x' <> a.s", "a.s < b.s", "a.s <=> b.s", "a.s IS DISTINCT FROM 'x'"),
        *("a.s IN ('x')", "a.s BETWEEN 'a' AND 'b'", "a.s LIKE 'x%'", "a.s RLIKE 'x'"),
        *("contains(a.s, 'x')", "startswith(a.s, 'x')", "locate('x', a.s) = 1", "upper(a.s) = 'X'"),
        *("coalesce(a.s, 'x') = 'x'", "greatest(a.s, b.s) = 'x'", "nullif(a.s, 'x') IS NULL"),
        *("CASE a.s WHEN 'x' THEN TRUE END", "a.s || 'x' = 'xx'", "nvl(a.list, b.list) IS NULL"),
        "a.pair.x = 'x'",
    ],
)
def test_what_is_only_carried_is_not_compared(condition: str) -> None:
    """Regression: it was compared byte by byte, with other answers than Spark's."""
    with pytest.raises(TypeMismatch, match=r"a\.\S+ .*of type string collate UTF8_LCASE") as error:
        asked(condition).query  # noqa: B018
    assert "cast it to STRING" in error.value.remedy


@pytest.mark.parametrize(
    "condition",
    [
        "CAST(a.s AS STRING) = CAST(b.s AS STRING)",
        "CAST(a.s AS INT) = 1",
        "a.s IS NOT NULL",
        "a.pair.id = b.pair.id",
    ],
)
def test_what_may_be_asked_of_it(condition: str) -> None:
    query = asked(condition).query
    assert query.schema.types[:3] == [pa.string(), pa.string(), pa.list_(pa.string())]
    assert query.streams[0].type_of("pair") == pa.struct([("x", pa.string()), ("id", pa.int64())])
