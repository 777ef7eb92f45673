"""Batches from plain rows and from packets."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.engine.intake.admission import NULL_KEY
from plait.errors import SourceError, UnknownStream
from plait.groups.routing.packets import Packer
from plait.groups.routing.routing import route
from plait.node.batch import Batch, batch_of_packets, batch_of_rows
from plait.query.query import Query
from plait.testing.examples import chain, clique

QUERY = clique(2)


def table(query: Query, stream: int, times: list[int], keys: list[int | None]) -> pa.Table:
    schema = query.streams[stream].schema
    columns = [times, *[keys] * (len(schema) - 1)]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def test_rows_may_come_as_tables_and_as_batches() -> None:
    rows = table(QUERY, 0, [1, 2, 3], [1, 1, 1])
    chunked = pa.concat_tables([rows.slice(0, 1), rows.slice(1)])
    empty = rows.slice(0, 0)
    for given, n in ((rows, 3), (chunked, 3), (rows.to_batches()[0], 3), (empty, 0)):
        batch = batch_of_rows(QUERY, {"a": given})
        assert batch.rows[0].num_rows == n
        assert batch.counts is None and batch.clock is None


def test_what_is_no_table_and_no_stream_is_refused() -> None:
    with pytest.raises(SourceError, match="given as a list"):
        batch_of_rows(QUERY, {"a": [1, 2]})
    with pytest.raises(UnknownStream, match="z"):
        batch_of_rows(QUERY, {"z": table(QUERY, 0, [], [])})


def packed(query: Query, tables: list[pa.Table], processors: int, number: int) -> Batch:
    routing = route(query.graph, processors)
    packets = [
        packet._replace(clock=70 + stream)
        for stream, rows in enumerate(tables)
        for packet in Packer(query, stream, routing, aside=True).pack(rows.to_batches())
        if packet.processor == number
    ]
    return batch_of_packets(packets, query)


def test_packets_bring_counts_progress_and_rows_set_aside() -> None:
    tables = [table(QUERY, 0, [1, 9, 3], [1, None, 1]), table(QUERY, 1, [4], [1])]
    batch = packed(QUERY, tables, 1, 0)
    assert batch.counts is not None
    assert batch.counts.rows == {"a": 3, "b": 1} and batch.counts.null_keys == {"a": 1}
    assert batch.newest == {0: 9, 1: 4}, "rows that are set aside move the watermark, too"
    assert batch.routed == {"a": 2, "b": 1} and batch.rows[0].num_rows == 2
    assert [(a.stream, a.reason, a.rows.num_rows) for a in batch.aside] == [(0, NULL_KEY, 1)]
    assert batch.clock == 71


def test_originals_come_before_copies() -> None:
    """In a chain, rows of the ends are copied along the dimension that they lack."""
    query = chain(3)
    tables = [table(query, s, [1, 2, 3, 4], [1, 2, 3, 4]) for s in range(3)]
    batches = [packed(query, tables, 4, number) for number in range(4)]
    assert sum(b.originals.get(0, 0) for b in batches) == 4
    assert sum(b.rows[0].num_rows for b in batches if 0 in b.rows) == 8
    assert all(sum(map(len, b.bodies[0][0])) > 0 for b in batches if 0 in b.rows)


def test_a_node_without_rows_still_hears_of_progress() -> None:
    batch = packed(QUERY, [table(QUERY, 0, [5], [1]), table(QUERY, 1, [], [])], 64, 63)
    assert not batch.rows and batch.newest == {0: 5}
