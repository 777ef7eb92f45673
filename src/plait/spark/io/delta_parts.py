"""Write Parquet files into the folder of a Delta table, with statistics for its log.

*Correct output.* A part holds the rows that were written to it, in their order.

*Invariants.* A part has a name that nobody else uses, and is seen by nobody until the log of its
table names it. So a task that fails or is repeated leaves at most a file that nobody reads, and its
name tells query, batch and processor. Statistics say nothing that is not true of every row, also by
Spark's order of values: floats have none, because NaN is greater than all numbers there.

*Cost.* Rows are encoded as they come; what is kept in memory is one row group.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as pt

from plait.errors import MissingRequirement

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

_LONGEST_TEXT = 32
"""Characters of texts beyond which statistics have no extremes of a column, as in Delta itself."""

PART = re.compile(r"plait-(?P<query>[\w-]+)-(?P<batch>\d{8,})-(?P<processor>\d+)-[0-9a-f]{32}")
"""The name of a part, without its extension."""


@dataclass(frozen=True, slots=True)
class TablePart:
    """A file of a table, as its log describes it."""

    path: str
    size: int
    rows: int
    stats: str
    """Statistics as the JSON that Delta's protocol defines."""


def part_name(query: str, batch: int, processor: int) -> str:
    """A name for a new part that nobody else has.

    >>> PART.match(part_name("6f1c-9a", 7, 1)).groupdict()
    {'query': '6f1c-9a', 'batch': '00000007', 'processor': '1'}
    """
    return f"plait-{query}-{batch:08}-{processor}-{uuid.uuid4().hex}.parquet"


def table_store(location: str) -> FileSystem:
    """The files of a table, reached the same way as its log is, with the same credentials."""
    try:
        from deltalake.fs import DeltaStorageHandler
    except ImportError as error:
        raise no_deltalake() from error
    from pyarrow.fs import PyFileSystem

    return PyFileSystem(DeltaStorageHandler(location))


def no_deltalake() -> MissingRequirement:
    """The error where the library is missing."""
    return MissingRequirement(
        "Delta tables are written with the package deltalake, which is not installed",
        remedy="install it where the driver and the executors run: pip install 'plait[delta]'",
    )


class PartWriter:
    """Writes one part; nothing appears before the first row."""

    def __init__(self, location: str, name: str, schema: pa.Schema) -> None:
        self._location = location
        self._name = name
        self._schema = schema
        self._rows = 0
        self._found: list[pq.FileMetaData] = []
        self._file: Any = None
        self._parquet: pq.ParquetWriter | None = None

    def write(self, rows: pa.RecordBatch) -> None:
        """Add rows, whose columns are those of the schema."""
        if not rows.num_rows:
            return
        if self._parquet is None:
            self._file = table_store(self._location).open_output_stream(self._name)
            self._parquet = pq.ParquetWriter(
                self._file, self._schema, metadata_collector=self._found
            )
        self._parquet.write_batch(rows)
        self._rows += rows.num_rows

    def close(self) -> TablePart | None:
        """End the file; None if there were no rows."""
        if self._parquet is None:
            return None
        self._parquet.close()
        size = self._file.tell()
        self._file.close()
        stats = statistics(self._found[0], self._schema)
        return TablePart(self._name, size, self._rows, stats)

    def abandon(self) -> None:
        """Leave nothing behind, as far as that can be done."""
        if self._file is None:
            return
        with suppress(Exception):
            if self._parquet is not None:
                self._parquet.close()
        with suppress(Exception):
            self._file.close()
        with suppress(Exception):
            table_store(self._location).delete_file(self._name)


# --- statistics -----------------------------------------------------------------------------------


def statistics(found: pq.FileMetaData, schema: pa.Schema) -> str:
    """Delta's statistics of a file: number of rows, nulls, and the extremes of some columns.

    >>> rows, found = pa.table({"k": [3, 1, None], "x": [0.5, None, None]}), []
    >>> pq.write_table(rows, pa.BufferOutputStream(), metadata_collector=found)
    >>> statistics(found[0], rows.schema)
    '{"numRecords": 3, "minValues": {"k": 1}, "maxValues": {"k": 3}, "nullCount": {"k": 1, "x": 2}}'
    """
    least: dict[str, object] = {}
    most: dict[str, object] = {}
    nulls: dict[str, int] = {}
    for field, leaf in _flat_columns(schema):
        groups = [found.row_group(g).column(leaf).statistics for g in range(found.num_row_groups)]
        if any(group is None or not group.has_null_count for group in groups):
            continue
        nulls[field.name] = sum(group.null_count for group in groups)
        # A group of nulls alone has no extremes, and none are needed; num_values counts the others.
        filled = [group for group in groups if group.num_values]
        if not filled or not all(group.has_min_max for group in filled):
            continue
        low = _extreme(min(group.min_raw for group in filled), field.type)
        high = _extreme(max(group.max_raw for group in filled), field.type)
        if low is not None and high is not None:
            least[field.name], most[field.name] = low, high
    return json.dumps(
        {"numRecords": found.num_rows, "minValues": least, "maxValues": most, "nullCount": nulls}
    )


def _flat_columns(schema: pa.Schema) -> Iterator[tuple[pa.Field, int]]:
    """The columns that are not nested, with their places among the leaves."""
    leaf = 0
    for field in schema:
        if not pt.is_nested(field.type):
            yield field, leaf
        leaf += _leaves(field.type)


def _leaves(type_: pa.DataType) -> int:
    if not pt.is_nested(type_):
        return 1
    return sum(_leaves(type_.field(i).type) for i in range(type_.num_fields))


def _extreme(value: Any, type_: pa.DataType) -> object:
    """An extreme in the form of Delta's log; None where there is no safe form."""
    if pt.is_signed_integer(type_):
        return int(value)
    if pt.is_string(type_) or pt.is_large_string(type_):
        text = value.decode("utf-8") if isinstance(value, bytes) else str(value)
        return text if len(text) <= _LONGEST_TEXT else None
    try:
        if pt.is_date32(type_):
            return (date(1970, 1, 1) + timedelta(days=int(value))).isoformat()
        if pt.is_timestamp(type_) and type_.unit == "us":
            when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(value))
            text = when.strftime("%Y-%m-%dT%H:%M:%S.%f")
            # strftime leaves out leading zeros of early years.
            return text.rjust(26, "0") + ("Z" if type_.tz is not None else "")
    except OverflowError:
        return None  # beyond the years that have four digits
    return None
