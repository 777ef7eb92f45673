"""Write results to Parquet, CSV or JSON lines; a file appears complete or not at all."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import PlaitError
from plait.local.json_lines import json_lines
from plait.machine.drafts import Draft, FileId, check_place, writing
from plait.machine.names import file_name

ROW_GROUP_ROWS = 1 << 20
ROW_GROUP_BYTES = 256 << 20
EXTENSIONS = (".parquet", ".csv", ".jsonl", ".ndjson")


class Sink(Protocol):
    """A destination of results."""

    def write(self, rows: pa.RecordBatch) -> None:
        """Write some rows."""


class FileSink:
    """A file that is being written; it appears when the `with` block ends without an error.

    `inputs` are files that it must not replace, whatever they are called.
    """

    def __init__(
        self,
        path: str | Path,
        schema: pa.Schema,
        *,
        overwrite: bool = False,
        inputs: Collection[FileId] = (),
    ) -> None:
        self.path = Path(path)
        self.rows = 0
        check_output(self.path, overwrite=overwrite, inputs=inputs)
        format_ = _format(self.path, schema)
        self._draft = Draft(self.path, overwrite=overwrite, inputs=inputs)
        self._complete = False
        try:
            with writing(self.path):
                self._format = format_(self._draft.temporary, schema)
        except BaseException:
            self._draft.abandon()
            raise

    def write(self, rows: pa.RecordBatch) -> None:
        """Write some rows, or keep them until there are enough for a row group."""
        self.rows += rows.num_rows
        with writing(self.path):
            self._format.write(rows)

    def complete(self) -> None:
        """Write the rest; after this, only the renaming is left."""
        with writing(self.path):
            self._format.close(abandon=False)
        self._draft.sync()
        self._complete = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                if not self._complete:
                    self.complete()
                self._draft.publish()
        finally:
            if not self._complete:
                with suppress(OSError, pa.ArrowException):
                    self._format.close(abandon=True)
            self._draft.abandon()


def check_output(path: Path, *, overwrite: bool = False, inputs: Collection[FileId] = ()) -> None:
    """Refuse a path that cannot be written, or that would replace something unasked."""
    if path.suffix.lower() not in EXTENSIONS:
        raise PlaitError(
            f"the output {path} has no known extension",
            remedy=f"known extensions: {', '.join(EXTENSIONS)}",
        )
    check_place(path, overwrite=overwrite, inputs=inputs)


def late_paths(given: str | Path, titles: Mapping[str, str]) -> dict[str, Path]:
    """Where the late rows of each stream go: in a directory, or beside a file of that format.

    >>> [str(p) for p in late_paths("late", {"t": "trades", "n": "news"}).values()]
    ['late/trades.parquet', 'late/news.parquet']
    >>> [str(p) for p in late_paths("out/late.csv", {"t": "trades", "n": "../n"}).values()]
    ['out/late-trades.csv', 'out/late-%2E.%2Fn.csv']
    """
    path = Path(given)
    names = {stream: file_name(title) for stream, title in titles.items()}
    if path.suffix.lower() in EXTENSIONS and not os.path.isdir(path):
        return {s: path.with_name(f"{path.stem}-{n}{path.suffix}") for s, n in names.items()}
    return {stream: path / f"{name}.parquet" for stream, name in names.items()}


class _Writer(Protocol):
    def write(self, rows: pa.RecordBatch) -> None: ...

    def close(self, *, abandon: bool) -> None: ...


def _format(path: Path, schema: pa.Schema) -> Callable[[Path, pa.Schema], _Writer]:
    match path.suffix.lower():
        case ".parquet":
            return _ParquetWriter
        case ".csv":
            for field in schema:
                if not _has_form_in_csv(field.type):
                    raise PlaitError(
                        f"the column {field.name!r} of type {field.type} has no form in CSV",
                        remedy="write .parquet or .jsonl",
                    )
            return _CsvWriter
    return _JsonlWriter


def _has_form_in_csv(type_: pa.DataType) -> bool:
    """Whether Arrow can write the type; try it. Binary values need not be text."""
    import pyarrow.csv as pcsv

    binary = (pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary)
    if any(is_(type_) for is_ in binary):
        return False
    try:
        pcsv.write_csv(pa.table({"c": pa.nulls(1, _in_csv(type_))}), io.BytesIO())
    except pa.ArrowException:
        return False
    return True


def _in_csv(type_: pa.DataType) -> pa.DataType:
    return pa.string() if pt.is_string_view(type_) else type_


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

        self._schema = pa.schema([(f.name, _in_csv(f.type)) for f in schema])
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
