"""Where results go: Parquet, CSV or JSON lines, by extension.

A file is written under a temporary name beside its own and gets its name at the very end, so that
whoever looks finds either nothing or a complete file, whatever happens in between.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import OutputExists, PlaitError
from plait.runtime.jsonl import json_lines

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 256 << 20
EXTENSIONS = (".parquet", ".csv", ".jsonl", ".ndjson")


class Sink(Protocol):
    """Takes results as they are found."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Take some rows."""


class FileSink:
    """A file in the making; leaving the `with` block without an error makes it appear."""

    def __init__(self, path: str | Path, schema: pa.Schema, *, overwrite: bool = False) -> None:
        self.path = Path(path)
        self.rows = 0
        self._overwrite = overwrite
        check_output(self.path, overwrite=overwrite)
        self._temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        with _writing(self.path):
            self._format = _format(self.path, schema)(self._temporary, schema)

    def write(self, rows: pa.RecordBatch) -> None:
        """Write some rows, or keep them until there are enough for a row group."""
        self.rows += rows.num_rows
        with _writing(self.path):
            self._format.write(rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            with _writing(self.path):
                self._format.close(abandon=error is not None)
                if error is None:
                    check_output(self.path, overwrite=self._overwrite)
                    os.replace(self._temporary, self.path)
        finally:
            self._temporary.unlink(missing_ok=True)


def check_output(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a path that cannot be written, or that would replace something unasked."""
    if path.suffix.lower() not in EXTENSIONS:
        raise PlaitError(
            f"the output {path} has no known extension",
            remedy=f"known extensions: {', '.join(EXTENSIONS)}",
        )
    if path.is_dir():
        raise OutputExists(f"the output {path} is a directory", remedy="name a file in it")
    if path.exists() and not overwrite:
        raise OutputExists(
            f"the output {path} exists", remedy="choose another path, or replace it: --overwrite"
        )
    if not path.parent.is_dir():
        raise PlaitError(
            f"the output {path} cannot be written: there is no directory {path.parent}",
            remedy=f"make it with: mkdir -p {path.parent}",
        )


def late_paths(given: str | Path, titles: Mapping[str, str]) -> dict[str, Path]:
    """Where the late rows of each stream go: in a directory, or beside a file of that format.

    >>> [str(p) for p in late_paths("late", {"t": "trades", "n": "news"}).values()]
    ['late/trades.parquet', 'late/news.parquet']
    >>> [str(p) for p in late_paths("out/late.csv", {"t": "trades", "n": "news"}).values()]
    ['out/late-trades.csv', 'out/late-news.csv']
    """
    path = Path(given)
    if path.suffix.lower() in EXTENSIONS and not path.is_dir():
        return {s: path.with_name(f"{path.stem}-{t}{path.suffix}") for s, t in titles.items()}
    return {stream: path / f"{title}.parquet" for stream, title in titles.items()}


class _Writer(Protocol):
    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self, *, abandon: bool) -> None: ...


def _format(path: Path, schema: pa.Schema) -> Callable[[Path, pa.Schema], _Writer]:
    match path.suffix.lower():
        case ".parquet":
            return _ParquetWriter
        case ".csv":
            for field in schema:
                if pt.is_nested(field.type) or pt.is_binary(field.type):
                    raise PlaitError(
                        f"the column {field.name!r} of type {field.type} has no form in CSV",
                        remedy="write .parquet or .jsonl",
                    )
            return _CsvWriter
    return _JsonlWriter


class _ParquetWriter:
    """Rows are collected into large row groups: small ones make files slow to read."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._writer = pq.ParquetWriter(path, schema)
        self._waiting: list[pa.RecordBatch] = []
        self._rows = 0
        self._bytes = 0

    def write(self, rows: pa.RecordBatch) -> None:
        self._waiting.append(rows)
        self._rows += rows.num_rows
        self._bytes += rows.nbytes
        if self._rows >= ROW_GROUP_ROWS or self._bytes >= ROW_GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        table = pa.Table.from_batches(self._waiting, self._schema)
        self._writer.write_table(table, row_group_size=ROW_GROUP_ROWS)
        self._waiting, self._rows, self._bytes = [], 0, 0

    def close(self, *, abandon: bool) -> None:
        if self._waiting and not abandon:
            self._flush()
        self._writer.close()


class _CsvWriter:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        import pyarrow.csv as pcsv

        self._schema = pa.schema(
            [(f.name, pa.string() if pt.is_string_view(f.type) else f.type) for f in schema]
        )
        self._writer = pcsv.CSVWriter(path, self._schema)

    def write(self, rows: pa.RecordBatch) -> None:
        self._writer.write_batch(rows.cast(self._schema))

    def close(self, *, abandon: bool) -> None:
        del abandon
        self._writer.close()


class _JsonlWriter:
    def __init__(self, path: Path, schema: pa.Schema) -> None:
        del schema
        self._file: IO[bytes] = path.open("wb")

    def write(self, rows: pa.RecordBatch) -> None:
        self._file.write(json_lines(rows))

    def close(self, *, abandon: bool) -> None:
        del abandon
        self._file.close()


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turns what the system or Arrow raises into an error that names the file."""
    try:
        yield
    except OSError as error:
        raise PlaitError(
            f"the output {path} cannot be written: {error.strerror or error}",
            remedy="check the permissions and the free space of its directory",
        ) from None
    except pa.ArrowException as error:
        raise PlaitError(
            f"the output {path} cannot be written: {error}", remedy="choose another format"
        ) from None
