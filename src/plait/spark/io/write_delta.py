"""Write results to a Delta table from the processors themselves.

    processors ─► Parquet files in the table's folder ─► names of the files ─► one entry of its log

No row of a result passes through the JVM: the operator hands Spark the names, sizes and statistics
of the files, and for each batch the driver adds them to the table's log (`foreachBatch`). Spark
repeats a batch until it is committed, so files may be written several times; the log names those of
one try (`plait.spark.io.delta_table`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from plait.node.batch import Aside
from plait.node.reports.report import Report
from plait.query.query import Query
from plait.spark.checkpoint.damage import local_path
from plait.spark.io.delta_parts import PartWriter, TablePart, part_name
from plait.spark.io.delta_table import DeltaCommits
from plait.spark.join.aside import aside_structs, aside_type, padded
from plait.spark.join.operator import REPORT, BatchId, report_row

_FILES = pa.schema(
    [
        ("query", pa.string()),
        ("delivered", pa.int64()),
        ("path", pa.string()),
        ("size", pa.int64()),
        ("rows", pa.int64()),
        ("stats", pa.string()),
    ]
)
"""What the operator hands to Spark: one row per processor, without a path if it wrote no file.

`delivered` is the last earlier batch in which the processor wrote rows; the table must have it.
"""


def table_place(table: str) -> str:
    """The location of a table as all processes understand it, wherever they run.

    >>> table_place("file:///data/a%20b"), table_place("s3://bucket/x")
    ('/data/a b', 's3://bucket/x')
    """
    path = local_path(table)
    return table if path is None else str(Path(path).absolute())


def table_schema(query: Query, late: str | None, malformed: bool = False) -> pa.Schema:
    """The columns of the table: those of results, and one for rows set aside if asked for."""
    # Whatever a query says, a table with columns that must not be null would bind the next one.
    columns = [pa.field(f.name, _delta_type(f.type)) for f in query.schema]
    if late is not None:
        columns.append(pa.field(late, _delta_type(aside_type(query, malformed))))
    return pa.schema(columns)


def _delta_type(type_: pa.DataType) -> pa.DataType:
    """The type in a table: times in microseconds, instants in UTC, everything may be null."""
    if pa.types.is_timestamp(type_):
        return pa.timestamp("us", tz=None if type_.tz is None else "UTC")
    if pa.types.is_struct(type_):
        return pa.struct([pa.field(f.name, _delta_type(f.type)) for f in type_])
    if pa.types.is_list(type_):
        return pa.list_(_delta_type(type_.value_type))
    return type_


@dataclass(frozen=True, slots=True)
class FileOutlet:
    """Results, and rows set aside, go to a file of a Delta table; Spark gets its name."""

    query: Query
    location: str
    late: str | None
    """The column for rows set aside, if they are asked for."""
    reports: bool
    malformed: bool = False
    """Whether values of a stream may be malformed."""

    @property
    def schema(self) -> pa.Schema:
        """Files, and reports where they travel beside them."""
        return pa.schema([*_FILES, *([pa.field(REPORT, pa.string())] if self.reports else [])])

    @property
    def to_table(self) -> bool:
        """Rows go to files of the table."""
        return True

    def open(self, batch: BatchId) -> _FileDelivery:
        """Begin the file of a batch."""
        return _FileDelivery(self, batch)


class _FileDelivery:
    """Write one file of the table; return its name when the batch ends."""

    def __init__(self, outlet: FileOutlet, batch: BatchId) -> None:
        self._outlet = outlet
        self._query = batch.query
        self._schema = table_schema(outlet.query, outlet.late, outlet.malformed)
        name = part_name(batch.query, batch.number, batch.processor)
        self._part: PartWriter | None = PartWriter(outlet.location, name, self._schema)

    def add(self, found: pa.RecordBatch | Aside) -> None:
        assert self._part is not None, "the report is the last that a task returns"
        outlet = self._outlet
        if isinstance(found, Aside):
            assert outlet.late is not None, "rows set aside leave a task that was asked for them"
            columns = {outlet.late: aside_structs(outlet.query, found, outlet.malformed)}
            rows = found.rows.num_rows
        else:
            columns = dict(zip(found.schema.names, found.columns, strict=True))
            rows = found.num_rows
        arrays = [
            columns[f.name].cast(f.type) if f.name in columns else pa.nulls(rows, f.type)
            for f in self._schema
        ]
        self._part.write(pa.RecordBatch.from_arrays(arrays, schema=self._schema))

    def end(self, report: Report) -> list[pd.DataFrame]:
        assert self._part is not None, "a batch has one report"
        written = self._part.close()
        self._part = None  # from here on the driver decides whether the table gets it
        values: dict[str, Any] = {"query": self._query, "delivered": report.delivered}
        if written is not None:
            values |= {f: getattr(written, f) for f in ("path", "size", "rows", "stats")}
        columns = {n: pa.array([v], _FILES.field(n).type) for n, v in values.items()}
        schema = self._outlet.schema
        reports = [report_row(report, schema)] if self._outlet.reports else []
        return [*reports, padded(columns, 1, schema)]

    def abandon(self) -> None:
        if self._part is not None:
            self._part.abandon()


@dataclass(frozen=True, slots=True)
class Committing:
    """Adds the files of each batch to a table's log: the function that Spark calls for a batch."""

    commits: DeltaCommits

    def __call__(self, files: DataFrame, batch: int) -> None:
        """Run the batch, and commit its files."""
        rows = files.collect()  # also of a batch that the table has: this writes the state
        if not rows:
            return  # no processor ran, because no input had a partition
        parts = [
            TablePart(str(r["path"]), int(r["size"]), int(r["rows"]), str(r["stats"]))
            for r in rows
            if r["path"] is not None
        ]
        queries = {str(r["query"]) for r in rows}
        assert len(queries) == 1, "all processors tell the same query"
        delivered = max(int(r["delivered"]) for r in rows)
        self.commits.commit(queries.pop(), batch, parts, delivered)


def start_delta(
    files: DataFrame,
    commits: DeltaCommits,
    checkpoint: str,
    query_name: str | None,
    trigger: Mapping[str, Any],
) -> StreamingQuery:
    """Start the query that writes the table."""
    writer = files.writeStream.foreachBatch(Committing(commits))
    writer = writer.option("checkpointLocation", checkpoint)
    if query_name is not None:
        writer = writer.queryName(query_name)
    if trigger:
        writer = writer.trigger(**trigger)
    return writer.start()
