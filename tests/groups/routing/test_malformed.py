"""Values that are no rows: counted and set aside, whatever their other columns say."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.groups.routing.malformed import MALFORMED, MARK, MARK_TYPE, apart
from plait.groups.routing.packets import Packer
from plait.groups.routing.routing import route
from plait.groups.routing.rows import decode_rows
from plait.node.batch import batch_of_packets
from plait.testing.examples import clique

QUERY = clique(2)
BAD = {"topic": "t", "partition": 1, "offset": 7, "value": b"\xff", "problem": "no JSON"}


def marked(*marks: dict[str, object] | None) -> pa.RecordBatch:
    """Rows that could all be joined, by their columns."""
    schema = QUERY.streams[0].schema
    n = len(marks)
    columns = [pa.array(range(1, n + 1)).cast(field.type) for field in schema]
    return pa.RecordBatch.from_arrays([*columns, pa.array(marks, MARK_TYPE)], [*schema.names, MARK])


@pytest.mark.parametrize("wanted", [False, True])
def test_marked_rows_are_counted_and_sent_if_someone_wants_them(wanted: bool) -> None:
    packer = Packer(QUERY, 0, route(QUERY.graph, 2, seed=1), wanted, marked=True)
    packets = list(packer.pack([marked(None, BAD), marked(BAD, None, None)]))
    beats = [packet for packet in packets if packet.body is None]
    assert [(beat.rows, beat.malformed) for beat in beats] == [(5, 2)] * 2
    assert {beat.newest for beat in beats} == {3}, "malformed rows move no watermark"
    aside = [packet for packet in packets if packet.reason]
    assert [packet.reason for packet in aside] == [MALFORMED] * wanted
    told = [row for p in aside for part in decode_rows(p.body or b"") for row in part.to_pylist()]
    assert told == [BAD, BAD] * wanted
    joined = sum(packet.rows for packet in packets if packet.body and not packet.reason)
    assert joined == 3


def test_a_batch_has_their_number_and_the_rows() -> None:
    packer = Packer(QUERY, 0, route(QUERY.graph, 1, seed=1), True, marked=True)
    batch = batch_of_packets(packer.pack([marked(BAD, None)]), QUERY)
    assert batch.counts is not None and batch.counts.malformed == {QUERY.names[0]: 1}
    assert [(aside.reason, aside.rows.to_pylist()) for aside in batch.aside] == [(MALFORMED, [BAD])]


def test_nothing_is_malformed_where_nothing_is_marked() -> None:
    rows, found = apart(marked(None, None))
    assert found is None and rows.num_rows == 2 and MARK not in rows.schema.names
