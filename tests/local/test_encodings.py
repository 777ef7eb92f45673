"""Columns in views and runs: the same results as plain ones, or a refusal that names them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import plait
from plait.errors import SourceError
from plait.local.encodings import decoded
from plait.local.options import ORDERS, LocalOptions, Order
from plait.local.run import Results
from plait.local.run import run as run_query
from plait.local.sources import open_source
from plait.testing.oracle.answer import multiset

TIMES = [5, 1, 4, None, 2, 3, 0, 1]
WORDS = ["b" * 20, None, "a", "b" * 20, "", "ü", "a", "c"]
BYTES = [None if word is None else word.encode() for word in WORDS]
LISTS = [[1], None, [], [2, None], [3], [4], [1], [5]]


def run(question: Any, **options: Any) -> Results:
    return run_query(question.query, question.sources, LocalOptions(**options))


def runs(values: pa.Array) -> pa.Array:
    """A run per value, cut out of the middle of a longer array."""
    padded = pa.concat_arrays([values.slice(0, 3), values])
    ends = pa.array(range(1, len(padded) + 1), pa.int32())
    return pa.RunEndEncodedArray.from_arrays(ends, padded).slice(3)


def words_in(values: pa.Array) -> pa.Array:
    """The same values by way of a dictionary in the given type."""
    return pa.DictionaryArray.from_arrays(pa.array(range(len(values)), pa.int16()), values)


ENCODED = {
    "string_view": (WORDS, pa.array(WORDS, pa.string_view())),
    "binary_view": (BYTES, pa.array(BYTES, pa.binary_view())),
    "runs": (WORDS, runs(pa.array(WORDS))),
    "runs of views": (WORDS, runs(pa.array(WORDS, pa.string_view()))),
    "runs of binary views": (BYTES, runs(pa.array(BYTES, pa.binary_view()))),
    "runs of a dictionary": (WORDS, runs(pa.array(WORDS).dictionary_encode())),
    "dictionary of views": (WORDS, words_in(pa.array(WORDS, pa.string_view()))),
}
LIST_VIEWS = {
    "list_view": pa.array(LISTS, pa.list_view(pa.int64())),
    "large_list_view": pa.array(LISTS, pa.large_list_view(pa.int64())),
    "runs of lists": runs(pa.array(LISTS)),
    "union": pa.UnionArray.from_sparse(pa.array([0] * len(LISTS), pa.int8()), [pa.array(LISTS)]),
}


def table(key: object, value: object) -> pa.Table:
    stamps = pa.array(TIMES, pa.timestamp("us"))
    rows = pa.table({"ts": stamps, "k": key, "v": value, "n": range(len(TIMES))})
    return pa.concat_tables([rows.slice(0, 3), rows.slice(3)])


def in_any_order(table: pa.Table) -> list[str]:
    """Rows to compare; the order of results within a batch is nobody's business."""
    return sorted(map(str, table.to_pylist()))


def asked(key: object, value: object) -> plait.query.builder.JoinBuilder:
    rows = table(key, value)
    return (
        plait.join(a=rows, b=rows)
        .watermark("3 microseconds")
        .on("a.k = b.k")
        .within("3 microseconds")
        .select("a.k", "b.v", "a.n", "b.n AS m")
    )


@pytest.mark.slow
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("batch_rows", [1, 3, 100])
@pytest.mark.parametrize("name", ENCODED)
def test_encoded_keys_and_values_out_of_order(order: Order, batch_rows: int, name: str) -> None:
    plain, encoded = ENCODED[name]
    expected = run(asked(plain, plain), order=order, batch_rows=batch_rows)
    found = run(asked(encoded, encoded), order=order, batch_rows=batch_rows)
    assert multiset(found.table) == multiset(expected.table)
    assert found.counts.null_keys == expected.counts.null_keys
    assert found.late["a"].column("n") == expected.late["a"].column("n")


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", LIST_VIEWS)
def test_lists_in_views_out_of_order(order: Order, name: str) -> None:
    expected = run(asked(WORDS, LISTS), order=order, batch_rows=3)
    found = run(asked(WORDS, LIST_VIEWS[name]), order=order, batch_rows=3)
    assert in_any_order(found.table) == in_any_order(expected.table)


@pytest.mark.parametrize("order", ORDERS)
def test_views_in_parquet(tmp_path: Path, order: Order) -> None:
    for name in ("string_view", "large_list_view"):
        encoded = ENCODED["string_view"][1]
        value = LIST_VIEWS.get(name, encoded)
        path = tmp_path / f"{name}.parquet"
        pq.write_table(table(encoded, value), path, row_group_size=2)
        source = open_source(path)
        assert source.schema.field("k").type == pa.string_view()
        rows = plait.join(a=source, b=source).on("a.k = b.k").within("3 microseconds")
        found = run(rows.select("b.v", "a.n", "b.n AS m").watermark("1 s"), order=order)
        values = LISTS if name in LIST_VIEWS else WORDS
        expected = run(
            plait.join(a=table(WORDS, values), b=table(WORDS, values))
            .on("a.k = b.k")
            .within("3 microseconds")
            .select("b.v", "a.n", "b.n AS m")
        )
        assert in_any_order(found.table) == in_any_order(expected.table)


@pytest.mark.parametrize(
    "values",
    [
        pa.nulls(len(TIMES), pa.list_(pa.string_view())),
        pa.nulls(len(TIMES), pa.struct([("x", pa.binary_view())])),
        pa.nulls(len(TIMES), pa.map_(pa.string(), pa.string_view())),
        pa.StructArray.from_arrays([runs(pa.array(TIMES))], names=["x"]),
    ],
    ids=lambda values: str(values.type),
)
def test_what_cannot_be_put_in_order_is_refused_by_name(values: pa.Array) -> None:
    with pytest.raises(SourceError, match=r"b\.v is of type .* cast it to a type without views"):
        run(asked(WORDS, values))
    unread = plait.join(a=table(WORDS, values), b=table(WORDS, values))
    found = run(unread.on("a.k = b.k").within("3 microseconds").select("a.n"))
    assert found.table.num_rows, "columns that the query does not read may be of any type"


@given(st.lists(st.none() | st.text(max_size=15), max_size=8), st.integers(0, 3), st.integers(0, 8))
def test_decoding_keeps_the_values(values: list[str | None], start: int, length: int) -> None:
    for plain in (pa.array(values, pa.string()), pa.array(values, pa.string_view())):
        ends = pa.array(range(2, 2 * len(values) + 1, 2), pa.int64())
        for encoded in (
            plain,
            pa.RunEndEncodedArray.from_arrays(ends, plain),
            pa.RunEndEncodedArray.from_arrays(ends, words_in(plain)),
        ):
            part = encoded.slice(start, length)
            assert decoded(part).to_pylist() == part.to_pylist()
