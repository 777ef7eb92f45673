"""What is fuzzed: each target takes bytes, and may raise nothing but errors of Plait.

The targets for text files also count: rows read and rows set aside are together the rows of the
file, by a definition that shares nothing with the readers. The first byte of their input chooses
the size of the blocks and, in CSV, the delimiter.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
from tests.fuzz.definitions import csv_records, json_lines

from plait.adapt.replay import replay, summary
from plait.errors import PlaitError
from plait.local.sources.csv import CsvSource
from plait.local.sources.jsonl import JsonlSource
from plait.local.sources.parquet import ParquetSource
from plait.node.reports.event_log import read_events
from plait.plan.serde import dumps, loads
from plait.plan.text import read_plan
from plait.query.query import Query
from plait.query.serde import query_from_dict, query_to_dict
from plait.query.sql import parse_query
from plait.testing.examples import chain

BLOCKS = (1, 2, 3, 7, 16, 64, 1 << 20)
ANY = 10**9
"""Malformed rows that are allowed."""

QUERY: Query = chain(4)
ROW = pa.schema(
    [("k", pa.int64()), ("s", pa.string()), ("x", pa.float64()), ("ts", pa.timestamp("us"))]
)
CATALOG = dict.fromkeys(("a", "b", "trades"), ROW)


def csv(data: bytes) -> None:
    """CSV files, with types that are inferred, and as strings."""
    choice, data = data[0] if data else 0, data[1:]
    delimiter, block_bytes = ",\t"[choice >> 4 & 1], BLOCKS[choice % len(BLOCKS)]
    records = csv_records(data, delimiter)
    with file_of(data, "csv") as path:
        try:
            inferred = CsvSource(
                [path], delimiter=delimiter, max_bad_rows=ANY, block_bytes=block_bytes
            )
        except PlaitError:
            return
        assert read(inferred) + len(inferred.bad) == len(records) - 1, "rows were lost or invented"
        names = inferred.schema.names
        texts = CsvSource(
            [path],
            delimiter=delimiter,
            columns=dict.fromkeys(names, pa.string()),
            max_bad_rows=ANY,
            block_bytes=block_bytes,
        )
        rows = [tuple(row.values()) for c in texts.scan() for row in c.rows.to_pylist()]
    good = [r for r in records[1:] if r.fields is not None and len(r.fields) == len(names)]
    decoded = [[_utf8(field) for field in r.fields or ()] for r in good]
    assert rows == [tuple(f or None for f in fields) for fields in decoded if "\0bad" not in fields]
    assert len(rows) + len(texts.bad) == len(records) - 1


def _utf8(field: str) -> str:
    try:
        return field.encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return "\0bad"


def jsonl(data: bytes) -> None:
    """JSON lines."""
    choice, data = data[0] if data else 0, data[1:]
    with file_of(data, "jsonl") as path:
        try:
            source = JsonlSource([path], max_bad_rows=ANY, block_bytes=BLOCKS[choice % len(BLOCKS)])
        except PlaitError:
            return
        assert read(source) + len(source.bad) == json_lines(data), "rows were lost or invented"
        # The verdict on a line is the same in every block.
        try:
            again = JsonlSource(
                [path], max_bad_rows=ANY, columns={f.name: f.type for f in source.schema}
            )
        except PlaitError:
            return  # a larger first block may have a column without a name
        assert read(again) + len(again.bad) == json_lines(data)
        if again.schema.equals(source.schema):
            assert [r.line for r in again.bad.rows] == [r.line for r in source.bad.rows]


def read(source: CsvSource | JsonlSource) -> int:
    """The number of rows; each of them must be sound."""
    rows = 0
    for chunk in source.scan():
        chunk.rows.validate(full=True)
        assert chunk.rows.schema.equals(source.schema)
        assert all(column is not None for column in chunk.rows.to_pydict().values())
        rows += chunk.rows.num_rows
    for row in source.bad.rows:
        assert row.line > 0 and row.reason and (row.reason + row.text).encode("utf-8")
    return rows


def parquet(data: bytes) -> None:
    """Parquet files."""
    with file_of(data, "parquet") as path:
        try:
            for chunk in ParquetSource([path]).scan():
                chunk.rows.validate(full=True)
        except PlaitError:
            return


def sql(data: bytes) -> None:
    """Texts of queries."""
    try:
        parse_query(data.decode("utf-8", "replace"), CATALOG)
    except PlaitError:
        return


def plan(data: bytes) -> None:
    """Texts of plans."""
    try:
        found = read_plan(QUERY, data.decode("utf-8", "replace"))
    except PlaitError:
        return
    assert read_plan(QUERY, str(found)) == found or not hasattr(found, "children")


def plan_json(data: bytes) -> None:
    """Plans as JSON."""
    try:
        found = loads(data.decode("utf-8", "replace"), QUERY)
    except PlaitError:
        return
    assert loads(dumps(found), QUERY) == found


def query_json(data: bytes) -> None:
    """Queries as JSON."""
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError):
        return
    try:
        found = query_from_dict(plain)
    except PlaitError:
        return
    assert query_from_dict(query_to_dict(found)).names == found.names


def events(data: bytes) -> None:
    """Logs of events, read and replayed."""
    with file_of(data, "jsonl") as path:
        try:
            summary(list(replay(read_events(path))))
        except PlaitError:
            return


TARGETS: dict[str, Callable[[bytes], None]] = {
    "csv": csv,
    "jsonl": jsonl,
    "parquet": parquet,
    "sql": sql,
    "plan": plan,
    "plan_json": plan_json,
    "query_json": query_json,
    "events": events,
}


@contextmanager
def file_of(data: bytes, suffix: str) -> Iterator[Path]:
    """A file with this content for as long as it is looked at."""
    with tempfile.NamedTemporaryFile(suffix=f".{suffix}") as file:
        file.write(data)
        file.flush()
        yield Path(file.name)
