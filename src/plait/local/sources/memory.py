"""Sources in memory: tables, batches, readers and iterators of batches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from plait.errors import SourceError
from plait.local.sources.bad import BadRows
from plait.local.sources.base import CHUNK_ROWS, Chunk, Source


class TableSource:
    """An Arrow table."""

    once = False

    def __init__(self, table: pa.Table, name: str = "table") -> None:
        self.name = name
        self.bad = BadRows()
        self._table = table

    @property
    def schema(self) -> pa.Schema:
        """The table's columns."""
        return self._table.schema

    @property
    def size(self) -> int:
        """The number of rows."""
        return int(self._table.num_rows)

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """Slices of the table, without a copy."""
        del report
        table = self._table if columns is None else self._table.select(list(columns))
        position = 0
        for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
            position += batch.num_rows
            yield Chunk(batch, position)


class BatchesSource:
    """An iterator of batches, which can be read only once."""

    once = True
    size = None

    def __init__(
        self, batches: Iterable[pa.RecordBatch | pa.Table], schema: pa.Schema, name: str = "batches"
    ) -> None:
        self.name = name
        self.schema = schema
        self.bad = BadRows()
        self._batches: Iterator[pa.RecordBatch | pa.Table] | None = iter(batches)

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """The batches as they come, in slices of bounded size."""
        del report
        if self._batches is None:
            raise SourceError(
                f"{self.name} is an iterator that has been read already",
                remedy="give a table, or a new iterator",
            )
        batches, self._batches = self._batches, None
        position = 0
        for rows in batches:
            if not isinstance(rows, pa.RecordBatch | pa.Table):
                raise SourceError(
                    f"{self.name} yields a {type(rows).__name__}",
                    remedy="yield Arrow record batches or tables",
                )
            self._check(rows.schema)
            chosen = rows.select(self.schema.names if columns is None else list(columns))
            table = chosen if isinstance(chosen, pa.Table) else pa.Table.from_batches([chosen])
            for batch in table.to_batches(max_chunksize=CHUNK_ROWS):
                position += batch.num_rows
                yield Chunk(batch, position)

    def _check(self, schema: pa.Schema) -> None:
        for field in self.schema:
            position = schema.get_field_index(field.name)
            if position < 0:
                raise SourceError(
                    f"a batch of {self.name} lacks the column {field.name!r}",
                    remedy=f"it has: {', '.join(schema.names)}",
                )
            if schema.field(position).type != field.type:
                raise SourceError(
                    f"{self.name}.{field.name} is {schema.field(position).type} in a batch, "
                    f"but {field.type} in the query",
                    remedy="cast the column",
                )


def collected(source: Source) -> TableSource:
    """All rows of a source, in memory.

    >>> rows = pa.RecordBatch.from_pydict({"k": [1, 2]})
    >>> collected(BatchesSource([rows, rows], rows.schema)).size
    4
    """
    batches = [chunk.rows for chunk in source.scan()]
    return TableSource(pa.Table.from_batches(batches, source.schema), source.name)


def as_source(rows: object, schema: pa.Schema, name: str) -> Source:
    """Make a source from a source, a table, a batch, a reader or an iterable.

    >>> as_source(pa.table({"k": [1, 2]}), pa.schema([("k", pa.int64())]), "trades").size
    2
    """
    if isinstance(rows, pa.Table):
        return TableSource(rows, name)
    if isinstance(rows, pa.RecordBatch):
        return TableSource(pa.Table.from_batches([rows]), name)
    if isinstance(rows, pa.Schema):
        raise SourceError(
            f"stream {name!r} has a schema but no rows",
            remedy="ask the question with tables instead of schemas",
        )
    if isinstance(rows, Source):
        return rows
    if hasattr(rows, "to_batches"):
        return BatchesSource(rows.to_batches(), schema, name)
    if isinstance(rows, Iterable) and not isinstance(rows, str | bytes | dict):
        return BatchesSource(rows, schema, name)
    raise SourceError(
        f"stream {name!r} is given as a {type(rows).__name__}",
        remedy="give an Arrow table, a reader, or an iterator of batches",
    )
