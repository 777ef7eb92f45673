"""Results to a Delta table, written by the processors themselves.

    processors ─► Parquet files in the table's folder ─► names of the files ─► one entry of its log

No row of a result passes through the JVM: the operator hands Spark the names, sizes and statistics
of the files, and for each batch the driver adds them to the table's log (`foreachBatch`). Spark
repeats a batch until it is committed, so files may be written several times; the log names those of
one try (`plait.spark.io.delta_table`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
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
"""What the operator hands to Spark: a row per file, or one without a path where there is none.

`delivered` is the last batch of which the processor had rows before, which the table must have.
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
        """They do."""
        return True

    def frames(
        self, found: Iterable[pa.RecordBatch | Aside | Report], batch: BatchId
    ) -> Iterator[pd.DataFrame]:
        """Write everything, then name the file."""
        schema = table_schema(self.query, self.late, self.malformed)
        name = part_name(batch.query, batch.number, batch.processor)
        part, delivered = PartWriter(self.location, name, schema), -1
        try:
            for item in found:
                if isinstance(item, Report):
                    delivered = item.delivered
                    if self.reports:
                        yield report_row(item, self.schema)
                else:
                    part.write(self._rows(item, schema))
            written = part.close()
        except BaseException:
            part.abandon()
            raise
        yield self._row(batch.query, delivered, written)

    def _rows(self, found: pa.RecordBatch | Aside, schema: pa.Schema) -> pa.RecordBatch:
        """Rows of the table."""
        if isinstance(found, Aside):
            assert self.late is not None, "rows set aside leave a task that was asked for them"
            columns = {self.late: aside_structs(self.query, found, self.malformed)}
            rows = found.rows.num_rows
        else:
            columns = dict(zip(found.schema.names, found.columns, strict=True))
            rows = found.num_rows
        arrays = [
            columns[f.name].cast(f.type) if f.name in columns else pa.nulls(rows, f.type)
            for f in schema
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _row(self, query: str, delivered: int, part: TablePart | None) -> pd.DataFrame:
        values: dict[str, Any] = {"query": query, "delivered": delivered}
        if part is not None:
            values |= {f: getattr(part, f) for f in ("path", "size", "rows", "stats")}
        columns = {n: pa.array([v], _FILES.field(n).type) for n, v in values.items()}
        return padded(columns, 1, self.schema)


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
