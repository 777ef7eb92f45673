"""Fields of structs: `a.st.x`, `st.x`, `a.st.inner.y`, as Spark writes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

import plait
from plait.errors import TypeMismatch, UnknownColumn
from plait.testing.oracle.answer import multiset, oracle

INNER = pa.struct([("y", pa.string())])
STRUCT = pa.struct([("X", pa.int64()), ("inner", INNER), ("at", pa.timestamp("us", "UTC"))])
TABLE = pa.table(
    {
        "ts": pa.array([0, 1, 2], pa.timestamp("us")),
        "k": [1, 1, 2],
        "st": pa.array(
            [{"X": 5, "inner": {"y": "u"}, "at": 7}, None, {"X": None, "inner": None, "at": None}],
            STRUCT,
        ),
    }
)
OTHER = TABLE.drop_columns(["st"])


def test_oracle_fields_are_found_and_null_where_the_struct_is() -> None:
    question = (
        plait.join(a=TABLE, b=OTHER)
        .on("a.k = b.k", "a.st.x > 4 OR a.st IS NULL")
        .within("1 second")
        .select("a.st.x", "st.inner.y", "(a.st).inner.y AS again", "a.st.at", "a.ts AS t")
    )
    assert question.query.schema.names == ["X", "y", "again", "at", "t"]
    found = question.run().table
    assert multiset(found) == oracle(question.query, {"a": TABLE, "b": OTHER})
    assert {(r["X"], r["y"], r["again"]) for r in found.to_pylist()} == {
        (5, "u", "u"),
        (None, None, None),
    }


def test_what_is_no_field_is_refused() -> None:
    begun = plait.join(a=TABLE, b=OTHER).on("a.k = b.k").within("1 second")
    with pytest.raises(UnknownColumn, match=r"a\.st has no field 'z'; known: X, inner, at"):
        begun.select("a.st.z")
    with pytest.raises(TypeMismatch, match=r"a\.k is int64 and has no field 'x'; only structs"):
        begun.select("a.k.x")
