"""Record batches in messages: what fits, what is malformed, and what is kept of the message."""

from __future__ import annotations

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from plait.groups.routing.malformed import MARK
from plait.spark.io.arrow_values import read_value, rows_of_messages

SCHEMA = pa.schema([("ts", pa.timestamp("us", "UTC")), ("k", pa.int64()), ("s", pa.string())])
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ipc(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def table(**columns: pa.Array) -> pa.Table:
    usual = {
        "ts": pa.array([NOON, NOON], pa.timestamp("us", "UTC")),
        "k": pa.array([1, 2]),
        "s": pa.array(["x", None]),
    }
    return pa.table({**usual, **columns})


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"k": pa.array([1, 2], pa.int8())},
        {"k": pa.array([1, 2], pa.uint64())},
        {"ts": pa.array([NOON, NOON], pa.timestamp("ms", "Europe/Rome"))},
        {"s": pa.array(["x", None], pa.large_string())},
        {"s": pa.array(["x", None]).dictionary_encode()},
        {"more": pa.array([True, False])},
    ],
)
def test_the_same_values_in_another_layout_fit(columns: dict[str, pa.Array]) -> None:
    found = read_value(pa.scalar(ipc(table(**columns))), SCHEMA)
    assert isinstance(found, pa.Table), found
    assert found.schema == SCHEMA and found.to_pylist() == table().to_pylist()


def test_a_column_that_is_missing_is_null() -> None:
    found = read_value(pa.scalar(ipc(table().drop_columns(["s"]))), SCHEMA)
    assert isinstance(found, pa.Table) and found["s"].null_count == 2


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"k": pa.array(["1", "2"])}, "its column 'k' is of type string and does not fit int64"),
        ({"k": pa.array([1.0, 2.0])}, "'k' is of type double"),
        ({"k": pa.array([2**63, 1], pa.uint64())}, "'k' is of type uint64"),
        ({"ts": pa.array([0, 1], pa.timestamp("us"))}, "'ts' is of type timestamp"),
        ({"ts": pa.array([1, 2], pa.timestamp("ns", "UTC"))}, "'ts' is of type timestamp"),
        ({"s": pa.array([b"\xff", b""])}, "'s' is of type binary"),
    ],
)
def test_other_values_are_malformed(columns: dict[str, pa.Array], problem: str) -> None:
    found = read_value(pa.scalar(ipc(table(**columns))), SCHEMA)
    assert isinstance(found, str) and problem in found


def test_what_is_no_stream_is_malformed() -> None:
    whole = ipc(table())
    for value in (b"", b"junk", whole[: len(whole) // 2]):
        found = read_value(pa.scalar(value, pa.binary()), SCHEMA)
        assert isinstance(found, str) and found.startswith("no Arrow IPC stream"), value
    assert read_value(pa.scalar(None, pa.binary()), SCHEMA) == "no value"


def test_every_damaged_byte_is_refused_or_read_as_some_rows() -> None:
    """Nothing but a table or a problem comes of a value, whatever it is."""
    whole = ipc(table())
    for place in range(0, len(whole), 7):
        value = whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :]
        found = read_value(pa.scalar(value), SCHEMA)
        assert isinstance(found, str) or found.schema == SCHEMA


def test_batches_without_rows_are_no_rows_and_not_malformed() -> None:
    value = ipc(table().slice(0, 0))
    messages = pa.record_batch(
        {"topic": ["t"], "partition": pa.array([0], pa.int32()), "offset": [5], "value": [value]}
    )
    (found,) = rows_of_messages(messages, SCHEMA, ["offset"])
    assert found.num_rows == 0 and found.schema.names == [*SCHEMA.names, "offset", MARK]


def test_rows_keep_columns_of_their_message_and_bad_ones_tell_where_they_are() -> None:
    messages = pa.record_batch(
        {
            "topic": ["t"] * 3,
            "partition": pa.array([0, 1, 0], pa.int32()),
            "offset": [5, 6, 7],
            "value": pa.array([ipc(table()), b"junk", ipc(table())]),
            "key": pa.array([b"a", b"b", b"c"]),
        }
    )
    good, bad = rows_of_messages(messages, SCHEMA, ["key"])
    assert good.column("key").to_pylist() == [b"a", b"a", b"c", b"c"]
    assert good.column(MARK).null_count == 4
    (row,) = bad.to_pylist()
    mark = row.pop(MARK)
    assert (mark["partition"], mark["offset"], mark["value"]) == (1, 6, b"junk")
    assert set(row.values()) == {None}
