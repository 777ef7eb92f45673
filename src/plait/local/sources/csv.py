"""Read CSV files: a header, then rows; an empty field is null.

*Types* come from the first block of the first file, unless given: integers, floats, booleans,
dates, timestamps in ISO 8601 (in microseconds, unless some have more digits), else strings. A few
values that do not fit do not make a column of strings: those rows are malformed.

*Whole numbers are exact.* A column of whole numbers is of int64; if the first block has one beyond
it, of decimal128(38, 0), and if one has more than 38 digits, of strings. A later number that does
not fit makes its row malformed: it is never rounded. Only a column in which numbers with a point
or an exponent were seen holds doubles, and then also whole numbers as the nearest double.

*Malformed* is a row with too few or too many fields, with a value that its column's type does not
have, with bytes that are no UTF-8, or with broken quotation marks (see `csv_records`).
A block with such a row is read once more, column by column, to find and set aside the rows to
blame.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
import pyarrow.types as pt

from plait.errors import SourceError
from plait.local.sources.bad import DEFAULT_LIMIT, BadRows
from plait.local.sources.base import Chunk
from plait.local.sources.csv_records import line_ends, read_records, records
from plait.local.sources.text import (
    BLOCK_BYTES,
    BYTE_ORDER_MARK,
    MAX_RECORD_BYTES,
    Block,
    culprits,
    name_of,
    total_size,
)
from plait.local.sources.types import check_columns, exact_type, likely_type, settled

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
        max_record_bytes: int = MAX_RECORD_BYTES,
    ) -> None:
        self.name = name_of(paths)
        self.bad = BadRows(max_bad_rows)
        self.size = total_size(paths)
        self._paths = list(paths)
        self._delimiter = delimiter
        self._block_bytes = block_bytes
        self._max_record_bytes = max_record_bytes
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
        blocks = read_records(
            path,
            self._delimiter,
            block_bytes=self._block_bytes,
            max_record_bytes=self._max_record_bytes,
        )
        first = next((block for block in blocks if not _BLANK.match(block.data)), None)
        if first is None:
            raise SourceError(f"{path} is empty", remedy="give a file with a header and rows")
        end = len(first.data)
        if not first.fault:
            starts, _ = records(first.data, self._delimiter)
            end = int(starts[1]) if len(starts) > 1 else end
        header = self._header(path, first.data[:end])
        check_columns(path, header)
        rest = Block(first.data[end:], first.line + line_ends(first.data[:end]), first.end)

        def following() -> Iterator[Block]:
            if rest.data:
                yield rest
            yield from blocks

        return header, following()

    def _header(self, path: Path, record: bytes) -> list[str]:
        try:
            text = io.StringIO(record.decode("utf-8").lstrip("\r\n"), newline="")
            names = next(csv.reader(text, delimiter=self._delimiter, strict=True))
        except (UnicodeDecodeError, csv.Error) as error:
            what = "no text in UTF-8" if isinstance(error, UnicodeDecodeError) else "malformed"
            raise SourceError(
                f"the header of {path} is {what}: {error}",
                remedy="is it a CSV file? Its name says so",
            ) from None
        return [name.strip() for name in names]

    def _infer(self, given: Types) -> pa.Schema:
        path = self._paths[0]
        header, blocks = self._open(path)
        check_columns(path, header, given)
        rows = (block.data for block in blocks if not block.fault and not _BLANK.match(block.data))
        seen: Types = {}
        for data in rows:
            if seen := _first_types(header, data, given, self._delimiter):
                break
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

    data = _RightLength(data, delimiter, len(header)).data

    def read(types: Types, only: Sequence[str] = ()) -> pa.Table:
        return _parse(header, data, types, delimiter, only)

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
    # Text may hold numbers or times, and Arrow makes doubles of whole numbers that are large.
    doubtful = [n for n, t in types.items() if pt.is_string(t) or pt.is_float64(t)]
    raw = read(dict.fromkeys(doubtful, pa.binary()), doubtful) if doubtful else rows
    for name in doubtful:
        values = _one_array(raw.column(name)).drop_null()
        if pt.is_string(types[name]):
            types[name] = likely_type(len(values), partial(_fits, values)) or pa.string()
        types[name] = exact_type(types[name], values)
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
        if block.fault:
            bad.add(self._path, block.line, block.fault, block.data)
            return pa.RecordBatch.from_pylist([], self._schema)
        only = list(self._judged)
        try:
            table = _parse(self._header, block.data, self._judged, self._delimiter, only)
        except pa.ArrowInvalid:
            return self._read_with_care(block, bad)
        arrays = [_one_array(table.column(name)) for name in self._schema.names]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _read_with_care(self, block: Block, bad: BadRows) -> pa.RecordBatch:
        records = _RightLength(block.data, self._delimiter, len(self._header))
        wrong = dict(records.others)
        raw = dict.fromkeys(self._header, pa.binary())
        table = _parse(self._header, records.data, raw, self._delimiter)
        good = np.ones(table.num_rows, np.bool_)
        values = {name: _one_array(table.column(name)) for name in self._header}
        for name, type_ in self._judged.items():
            for row in _misfits(values[name], type_, bad.limit + 1):
                good[row] = False
                shown = values[name][row].as_py()[:40].decode("utf-8", "backslashreplace")
                wrong.setdefault(int(records.kept[row]), f"{name} is {shown!r}, not {type_}")
        line, at = block.line, 0
        for record in sorted(wrong):
            start, end = records.bounds[record : record + 2].tolist()
            line, at = line + line_ends(block.data[at:start]), start
            bad.add(self._path, line, wrong[record], block.data[start:end])
        keep = pa.array(good)
        arrays = [_convert(values[f.name].filter(keep), f.type) for f in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)


class _RightLength:
    """The records of a block that have as many fields as the header, and the others."""

    def __init__(self, data: bytes, delimiter: str, fields: int) -> None:
        starts, counts = records(data, delimiter)
        self.bounds = np.append(starts, len(data))
        right = counts == fields
        self.kept = np.flatnonzero(right)
        """The number of each record that is kept."""
        self.others = {
            n: f"{counts[n]} field{'s' if counts[n] > 1 else ''} instead of {fields}"
            for n in np.flatnonzero(~right).tolist()
        }
        self.data = data
        if self.others:
            edges = np.flatnonzero(np.diff(right, prepend=False, append=False))
            spans = self.bounds[edges].reshape(-1, 2).tolist()
            self.data = b"".join(data[start:end] for start, end in spans)


def _parse(
    header: Sequence[str],
    data: bytes,
    types: Types,
    delimiter: str,
    only: Sequence[str] = (),
) -> pa.Table:
    """Arrow's reader on one block; the first malformed row raises ArrowInvalid."""
    if _BLANK.match(data):
        names = list(only) or header
        return pa.table({name: pa.array([], types.get(name, pa.null())) for name in names})
    if data.startswith(BYTE_ORDER_MARK[:1]):
        # Arrow would take the mark off at the beginning of any block, and refuse a part of it. An
        # empty line before it prevents that, and is no record.
        data = b"\n" + data
    return pcsv.read_csv(
        pa.BufferReader(data),
        pcsv.ReadOptions(column_names=header, block_size=len(data) + 1, use_threads=False),
        pcsv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pcsv.ConvertOptions(
            column_types=types,
            include_columns=list(only),
            null_values=[""],
            strings_can_be_null=True,
        ),
    )


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
    if not len(raw):
        return pa.array([], type_)
    if pt.is_string(type_) or pt.is_binary(type_):
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
