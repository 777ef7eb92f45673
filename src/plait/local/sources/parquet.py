"""Read Parquet files: one, or several with the same columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import SourceError
from plait.local.sources.bad import BadRows
from plait.local.sources.base import CHUNK_ROWS, Chunk
from plait.local.sources.text import name_of


class ParquetSource:
    """One or more Parquet files; only the columns asked for are read, a chunk at a time."""

    once = False

    def __init__(self, paths: Sequence[Path]) -> None:
        self.name = name_of(paths)
        self.bad = BadRows()
        self._paths = list(paths)
        self.size = 0
        schemas = []
        for path in paths:
            with _reading(path), pq.ParquetFile(path) as file:
                schemas.append(file.schema_arrow.remove_metadata())
                self.size += file.metadata.num_rows
        self.schema = schemas[0]
        for path, schema in zip(paths, schemas, strict=True):
            _check_same(self.schema, schema, paths[0], path)

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """The rows in file order, the files one after the other."""
        del report
        wanted = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in wanted])
        position = 0
        for path in self._paths:
            with _reading(path), pq.ParquetFile(path, pre_buffer=False) as file:
                for batch in file.iter_batches(CHUNK_ROWS, columns=wanted):
                    position += batch.num_rows
                    arrays = [batch.column(name) for name in wanted]
                    yield Chunk(pa.RecordBatch.from_arrays(arrays, schema=schema), position)


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into one that names the file."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        reason = str(error).split("\n")[0].removesuffix(".")
        raise SourceError(
            f"{path} cannot be read as Parquet: {reason}",
            remedy="write the file again, or give it the extension of its format",
        ) from None


def _check_same(first: pa.Schema, other: pa.Schema, first_path: Path, path: Path) -> None:
    for field in first:
        position = other.get_field_index(field.name)
        if position < 0:
            raise SourceError(
                f"{path} lacks the column {field.name!r} that {first_path} has",
                remedy="the files of a stream need the same columns",
            )
        if other.field(position).type != field.type:
            raise SourceError(
                f"column {field.name!r} is {other.field(position).type} in {path}, "
                f"but {field.type} in {first_path}",
                remedy="the files of a stream need the same columns",
            )
