"""CSV files: a header, then rows; an empty field is null.

*Types* come from the first block of the first file, unless given: integers, floats, booleans,
dates, timestamps in ISO 8601 (in microseconds, unless some have more digits), else strings. A few
values that do not fit do not make a column of strings: those rows are malformed.

*Malformed* is a row with too few or too many fields, with a value that its column's type does not
have, with bytes that are no UTF-8, or with a quotation mark that is never closed. A block with
such a row is read once more, column by column, to find and set aside the rows to blame.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.types as pt

from plait.errors import SourceError
from plait.runtime.sources.bad import DEFAULT_LIMIT, BadRows
from plait.runtime.sources.base import Chunk
from plait.runtime.sources.text import (
    BLOCK_BYTES,
    Block,
    culprits,
    line_starts,
    name_of,
    read_blocks,
    total_size,
)
from plait.runtime.sources.types import check_columns, likely_type, settled

Types = Mapping[str, pa.DataType]

_BLANK = re.compile(rb"[\r\n]*\Z")


class CsvSource:
    """One or more CSV files with the same columns."""

    once = False

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        delimiter: str = ",",
        columns: Types | None = None,
        max_bad_rows: int = DEFAULT_LIMIT,
        block_bytes: int = BLOCK_BYTES,
    ) -> None:
        self.name = name_of(paths)
        self.bad = BadRows(max_bad_rows)
        self.size = total_size(paths)
        self._paths = list(paths)
        self._delimiter = delimiter
        self._block_bytes = block_bytes
        self.schema = self._infer(columns or {})

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """The rows, one block at a time."""
        wanted = self.schema.names if columns is None else list(columns)
        types = {field.name: field.type for field in self.schema}
        bad = self.bad if report else BadRows(self.bad.limit)
        before = 0
        for path in self._paths:
            header, blocks = self._open(path)
            if sorted(header) != sorted(types):
                raise SourceError(
                    f"{path} has the columns {', '.join(header)}, "
                    f"but {self._paths[0]} has {', '.join(types)}",
                    remedy="the files of a stream need the same columns",
                )
            # All columns when it counts: whether a row is malformed is up to the file alone.
            judged = header if report else wanted
            reader = _Reader(str(path), header, judged, types, wanted, self._delimiter)
            end = 0
            for block in blocks:
                end = block.end
                rows = reader.read(block, bad)
                if rows.num_rows:
                    yield Chunk(rows, before + end)
            before += end

    def _open(self, path: Path) -> tuple[list[str], Iterator[Block]]:
        """The names in the header, and the blocks after it."""
        blocks = read_blocks(path, quoted=True, block_bytes=self._block_bytes)
        first = next(blocks, None)
        if first is None or not first.data.strip():
            raise SourceError(f"{path} is empty", remedy="give a file with a header and rows")
        starts = line_starts(first.data, quoted=True)
        end = int(starts[1]) if len(starts) > 1 else len(first.data)
        try:
            lines = first.data[int(starts[0]) : end].decode("utf-8").splitlines()
            header = [name.strip() for name in next(csv.reader(lines, delimiter=self._delimiter))]
        except (UnicodeDecodeError, csv.Error) as error:
            raise SourceError(
                f"the header of {path} is no text in UTF-8: {error}",
                remedy="is it a CSV file? Its name says so",
            ) from None
        check_columns(path, header)
        rest = Block(first.data[end:], first.line + first.data.count(b"\n", 0, end), first.end)

        def following() -> Iterator[Block]:
            if rest.data:
                yield rest
            yield from blocks

        return header, following()

    def _infer(self, given: Types) -> pa.Schema:
        path = self._paths[0]
        header, blocks = self._open(path)
        check_columns(path, header, given)
        first = next(blocks, None)
        seen: Types = {}
        if first is not None:
            data, _ = _without_open_quotes(first.data)
            seen = _first_types(header, data, given, self._delimiter)
        types = {**seen, **given}
        if unknown := [name for name in header if name not in types]:
            raise SourceError(
                f"{path} has a header but no rows, so the types of its columns are unknown: "
                f"{', '.join(unknown)}",
                remedy="add rows, or say the types (--type STREAM.COLUMN=TYPE)",
            )
        return pa.schema([(name, types[name]) for name in header])


def _first_types(header: list[str], data: bytes, given: Types, delimiter: str) -> Types:
    """The types that the first block suggests; none if it has no row of the right length."""

    def read(types: Types, only: Sequence[str] = ()) -> pa.Table:
        return _parse(header, data, types, delimiter, only, lambda _: "skip")

    def fits(name: str, type_: pa.DataType) -> bool:
        try:
            read({name: type_}, [name])
        except pa.ArrowInvalid:
            return False
        return True

    # Columns with a given type are not looked at.
    rows = read(dict.fromkeys(given, pa.binary()))
    if not rows.num_rows:
        return {}
    types = {f.name: settled(f.type, partial(fits, f.name)) for f in rows.schema}
    strings = [name for name, type_ in types.items() if pt.is_string(type_)]
    raw = read(dict.fromkeys(strings, pa.binary()), strings) if strings else rows
    for name in strings:
        values = _one_array(raw.column(name)).drop_null()
        types[name] = likely_type(len(values), partial(_fits, values)) or pa.string()
    return types


class _Reader:
    """Reads the blocks of one file."""

    def __init__(
        self,
        path: str,
        header: list[str],
        judged: Sequence[str],
        types: Types,
        wanted: Sequence[str],
        delimiter: str,
    ) -> None:
        self._path = path
        self._header = header
        self._judged = {name: types[name] for name in judged}
        self._schema = pa.schema([(name, types[name]) for name in wanted])
        self._delimiter = delimiter

    def read(self, block: Block, bad: BadRows) -> pa.RecordBatch:
        """The well-formed rows of a block."""
        if block.data.count(b'"') % 2 == 0:
            only = list(self._judged)
            try:
                table = _parse(self._header, block.data, self._judged, self._delimiter, only)
            except pa.ArrowInvalid:
                pass
            else:
                arrays = [_one_array(table.column(name)) for name in self._schema.names]
                return pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return self._read_with_care(block, bad)

    def _read_with_care(self, block: Block, bad: BadRows) -> pa.RecordBatch:
        data, unclosed = _without_open_quotes(block.data)
        wrong: dict[int, str] = {}

        def skip(row: pcsv.InvalidRow) -> str:
            fields = "1 field" if row.actual_columns == 1 else f"{row.actual_columns} fields"
            wrong[row.number - 1] = f"{fields} instead of {row.expected_columns}"
            return "skip"

        raw = dict.fromkeys(self._header, pa.binary())
        table = _parse(self._header, data, raw, self._delimiter, (), skip)
        rows, skipped = table.num_rows, len(wrong)
        records = np.setdiff1d(np.arange(rows + skipped), list(wrong))
        good = np.ones(rows, np.bool_)
        values = {name: _one_array(table.column(name)) for name in self._header}
        for name, type_ in self._judged.items():
            for row in _misfits(values[name], type_, bad.limit + 1):
                good[row] = False
                shown = values[name][row].as_py()[:40].decode("utf-8", "backslashreplace")
                wrong.setdefault(int(records[row]), f"{name} is {shown!r}, not {type_}")
        starts = _record_starts(data, rows + skipped)
        found = [(int(starts[record]), reason) for record, reason in wrong.items()]
        found += [(start, "a quotation mark is not closed") for start in unclosed]
        for start, reason in sorted(found):
            line = block.line + block.data.count(b"\n", 0, start)
            bad.add(self._path, line, reason, block.data[start:].split(b"\n", 1)[0])
        keep = pa.array(good)
        arrays = [_convert(values[f.name].filter(keep), f.type) for f in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


def _parse(
    header: Sequence[str],
    data: bytes,
    types: Types,
    delimiter: str,
    only: Sequence[str] = (),
    skip: Callable[[pcsv.InvalidRow], str] | None = None,
) -> pa.Table:
    """Arrow's reader on one block; without `skip`, the first malformed row raises ArrowInvalid."""
    if _BLANK.match(data):
        names = list(only) or header
        return pa.table({name: pa.array([], types.get(name, pa.null())) for name in names})
    return pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(column_names=header, block_size=len(data) + 1, use_threads=False),
        pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True, invalid_row_handler=skip),
        pcsv.ConvertOptions(
            column_types=types,
            include_columns=list(only),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


def _without_open_quotes(data: bytes) -> tuple[bytes, list[int]]:
    """The data with the lines blanked that leave a quotation mark open, and where those begin.

    Done only where the marks of the whole block do not pair up: then one of them would swallow
    the lines after it, and no line may go on in the next one.
    """
    if data.count(b'"') % 2 == 0:
        return data, []
    lines, starts, at = [], [], 0
    for line in data.split(b"\n"):
        if line.count(b'"') % 2:
            starts.append(at)
            lines.append(b"\n" * len(line))
        else:
            lines.append(line)
        at += len(line) + 1
    return b"\n".join(lines), starts


def _record_starts(data: bytes, records: int) -> npt.NDArray[np.int64]:
    """Where each record begins, as well as it can be told."""
    for quoted in (True, False):
        starts = line_starts(data, quoted=quoted)
        if len(starts) == records:
            return starts
    return starts[np.minimum(np.arange(records), len(starts) - 1)]


def _misfits(values: pa.Array, type_: pa.DataType, most: int) -> list[int]:
    return culprits(len(values), partial(_fits, values, type_), most)


def _fits(values: pa.Array, type_: pa.DataType, a: int, b: int) -> bool:
    try:
        _convert(values.slice(a, b - a), type_)
    except pa.ArrowInvalid:
        return False
    return True


def _convert(raw: pa.Array, type_: pa.DataType) -> pa.Array:
    """Fields as bytes in the type of their column, by the same reader that reads whole rows."""
    if pt.is_string(type_) or pt.is_binary(type_) or not len(raw):
        return raw.cast(type_)
    doubled = pc.replace_substring(raw, b'"', b'""')
    quoted = pc.binary_join_element_wise(b'"', doubled, b'"', b"")
    lines = pc.fill_null(quoted, b"")
    data = b"\n".join(lines.to_pylist()) + b"\n"
    table = pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(column_names=["x"], block_size=len(data) + 1, use_threads=False),
        pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False),
        pcsv.ConvertOptions(column_types={"x": type_}, null_values=[""]),
    )
    return _one_array(table.column(0))


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    combined = column.combine_chunks()
    return combined if isinstance(combined, pa.Array) else pa.concat_arrays(combined.chunks)
