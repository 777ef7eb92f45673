"""Tables, readers and iterators of batches as sources."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import SourceError
from plait.local.sources import as_source

TABLE = pa.table({"k": list(range(200_000)), "s": ["x"] * 200_000})


@pytest.mark.parametrize(
    "rows",
    [
        TABLE,
        TABLE.combine_chunks().to_batches()[0],
        TABLE.to_reader(max_chunksize=100_000),
        iter(TABLE.to_batches(max_chunksize=70_000)),
        [TABLE.slice(0, 5), TABLE.slice(5)],
    ],
    ids=["table", "batch", "reader", "iterator", "list"],
)
def test_chunks_are_bounded_and_lose_nothing(rows: object) -> None:
    chunks = list(as_source(rows, TABLE.schema, "a").scan(["k"]))
    assert max(chunk.rows.num_rows for chunk in chunks) <= 1 << 16
    assert [chunk.rows.schema.names for chunk in chunks] == [["k"]] * len(chunks)
    assert chunks[-1].position == 200_000
    together = pa.Table.from_batches([chunk.rows for chunk in chunks])
    assert together.column("k").to_pylist() == list(range(200_000))


def test_an_iterator_is_read_once() -> None:
    source = as_source(iter(TABLE.to_batches()), TABLE.schema, "a")
    assert source.once
    list(source.scan())
    with pytest.raises(SourceError, match="a is an iterator that has been read already"):
        list(source.scan())


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([5], "a yields a int; yield Arrow record batches"),
        ([pa.table({"k": [1]})], "a batch of a lacks the column 's'; it has: k"),
        ([pa.table({"k": ["1"], "s": ["x"]})], "a.k is string in a batch, but int64"),
        (7, "stream 'a' is given as a int; give an Arrow table"),
        ("trades.csv", "stream 'a' is given as a str"),
        (TABLE.schema, "stream 'a' has a schema but no rows"),
    ],
)
def test_what_is_no_source(rows: object, message: str) -> None:
    with pytest.raises(SourceError, match=message):
        list(as_source(rows, TABLE.schema, "a").scan())
