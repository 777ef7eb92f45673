"""Rows between sites travel without their schema, and come out as they went in."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.sites.site.packets import LegKey, Shipment, ShipmentKind
from plait.sites.site.rows import ShippedRows, value_bytes
from plait.testing.examples import clique

TIMES = pa.array([7, None, 2**40], pa.timestamp("us"))
COMPOSITE = {
    "1.ts": TIMES,
    "1.k": [1, None, 3],
    "0.ts": TIMES,
    "0.k": [5, 6, 7],
    "stamp": [9, 9, 9],
}


def _query(text: pa.DataType) -> Query:
    streams = [Stream(n, (Field("ts", pa.timestamp("us")), Field("k", text)), "ts") for n in "ab"]
    keys = [Call("eq", (Column("a", "k"), Column("b", "k")))]
    return make_query(streams, keys, global_window(2, 5), [Output("k", Column("a", "k"))])


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("stream", {"ts": TIMES, "k": [2**62, -(2**62), None]}),
        ("tuples", COMPOSITE),
        ("window", {name: COMPOSITE[name] for name in ("1.ts", "1.k", "stamp")}),
    ],
)
def test_the_schema_stays_at_home(kind: ShipmentKind, columns: dict[str, object]) -> None:
    shipped, rows = ShippedRows(clique(2)), pa.record_batch(columns)
    for size in (0, 1, 3):
        some = rows.slice(0, size)
        about, body = shipped.encode(Shipment(kind, LegKey(0, "a", 1), some))
        assert about is not None
        assert shipped.decode(kind, "a", about, body) == some
        assert b"stamp" not in body


def test_encoded_columns_are_sent_as_they_are_kept() -> None:
    text = pa.dictionary(pa.int32(), pa.string())
    shipped = ShippedRows(_query(text))
    keys = pa.array(["x", None, "x"]).dictionary_encode()
    rows = pa.record_batch({"ts": TIMES, "k": keys})
    about, body = shipped.encode(Shipment("stream", LegKey(0, "a", 1), rows))
    assert about is not None
    assert shipped.decode("stream", "a", about, body).column("k").to_pylist() == ["x", None, "x"]


def test_what_has_another_schema_takes_it_along() -> None:
    shipped, rows = ShippedRows(clique(2)), pa.record_batch({"other": [1, 2]})
    about, body = shipped.encode(Shipment("results", LegKey(0, "a", 1), rows))
    assert about is None
    assert shipped.decode("results", "a", about, body) == rows


@pytest.mark.parametrize(
    "values",
    [
        pa.array([None, "ab", "c", "d"]),
        pa.array([None, b"ab", None, b"d"], pa.large_binary()),
        pa.array([1, 2, None, 4]),
        pa.array([True, None, False, True]),
        pa.array([[1], None, [2, None], []], pa.list_(pa.int64())),
        pa.array([{"x": None}, {"x": "y"}, None, {"x": "z"}]),
        pa.array([None] * 4),
    ],
    ids=lambda values: str(values.type),
)
def test_what_is_measured_does_not_depend_on_how_rows_are_laid_out(values: pa.Array) -> None:
    rows = values.slice(1)
    backwards = pa.concat_arrays([values, rows.take(pa.array([2, 1, 0]))]).slice(len(values))
    pieces = pa.concat_arrays([rows.slice(0, 1), rows.slice(1)])
    assert value_bytes(rows) == value_bytes(backwards) == value_bytes(pieces)
