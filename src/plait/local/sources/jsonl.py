"""Read JSON lines: one object per line; missing fields are null, new ones are ignored.

*Types* come from the first block of the first file, unless given: those of JSON, and strings that
are (nearly) all timestamps in ISO 8601 become timestamps.

*Whole numbers are exact.* A column of whole numbers is of int64, and of decimal128(38, 0) if the
first block has one beyond it. A number that does not fit makes its line malformed: it is never
rounded. Only a column in which numbers with a point or an exponent were seen holds doubles, and
then also whole numbers as the nearest double.

*Malformed* is a line that is no object in JSON, that is no UTF-8, that is nested deeper than
`max_depth` levels (readers of JSON call themselves for each level, and the stack is finite), or
that has a value which its column's type does not have. A block with such a line is read once more
to find and set aside the lines to blame.

*One verdict.* Whether a line is well-formed does not depend on the lines around it. Arrow would
also read an object over several lines, and several objects in one. But where each line begins with
`{` and ends with `}`, no object goes over a line end: within one, there would have to be a comma
between the two. So if there are as many rows as lines, each line is one object. NaN and Infinity
are no JSON, but Arrow reads them, as Spark does, in columns of doubles.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from plait.errors import SourceError
from plait.local.sources.bad import DEFAULT_LIMIT, BadRows
from plait.local.sources.base import Chunk
from plait.local.sources.lines import MAX_DEPTH, Lines
from plait.local.sources.text import (
    BLOCK_BYTES,
    MAX_RECORD_BYTES,
    Block,
    culprits,
    name_of,
    read_lines,
    total_size,
)
from plait.local.sources.types import WIDE, check_columns, likely_type, settled

_PER_LINE = "write one JSON object per line"
_NINETEEN_DIGITS = re.compile(rb"[0-9]{19}")
"""Fewer are within int64."""


class JsonlSource:
    """One or more files of JSON lines."""

    once = False

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        columns: Mapping[str, pa.DataType] | None = None,
        max_bad_rows: int = DEFAULT_LIMIT,
        block_bytes: int = BLOCK_BYTES,
        max_record_bytes: int = MAX_RECORD_BYTES,
        max_depth: int = MAX_DEPTH,
    ) -> None:
        self.name = name_of(paths)
        self.bad = BadRows(max_bad_rows)
        self.size = total_size(paths)
        self._paths = list(paths)
        self._block_bytes = block_bytes
        self._max_record_bytes = max_record_bytes
        self._max_depth = max_depth
        self.schema = self._infer(columns or {})

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """The rows, one block at a time."""
        wanted = self.schema.names if columns is None else list(columns)
        # All columns when it counts: whether a line is malformed is up to the file alone.
        schema = self.schema if report else pa.schema([self.schema.field(n) for n in wanted])
        bad = self.bad if report else BadRows(self.bad.limit)
        before = 0
        for path in self._paths:
            end = 0
            for block in self._blocks(path):
                end = block.end
                rows = _read(str(path), block, schema, bad, self._max_depth)
                if rows.num_rows:
                    yield Chunk(rows.select(wanted), before + end)
            before += end

    def _blocks(self, path: Path) -> Iterator[Block]:
        return read_lines(
            path, block_bytes=self._block_bytes, max_record_bytes=self._max_record_bytes
        )

    def _infer(self, given: Mapping[str, pa.DataType]) -> pa.Schema:
        path = self._paths[0]
        rows, data = self._first_rows(path)
        check_columns(path, rows.schema.names)
        types = {f.name: _settle(f.type, rows.column(f.name)) for f in rows.schema}
        if _NINETEEN_DIGITS.search(data):
            objects = [json.loads(line) for line in Lines(data)]
            types = {n: _exact(t, [o.get(n) for o in objects]) for n, t in types.items()}
        types |= given
        if not types:
            raise SourceError(f"{path} has objects without a field", remedy=_PER_LINE)
        return pa.schema(list(types.items()))

    def _first_rows(self, path: Path) -> tuple[pa.Table, bytes]:
        """The rows from which the types are taken, and their lines."""
        fault, faults = "", 0
        for block in self._blocks(path):
            lines = Lines(block.data)
            if not len(lines):
                continue
            if not faults and lines[0].startswith(b"["):
                raise SourceError(
                    f"{path} is one JSON array, not a line per row",
                    remedy=f"{_PER_LINE}, for example with jq -c '.[]'",
                )
            if found := _agreeing(lines, self._max_depth):
                return found
            fault = fault or lines.fault(0, self._max_depth) or _why_not(lines[0], None)
            faults += len(lines)
            if faults > self.bad.limit:
                break
        if not faults:
            raise SourceError(f"{path} is empty", remedy=_PER_LINE)
        raise SourceError(f"{path} has no JSON object in a line: {fault}", remedy=_PER_LINE)


def _agreeing(lines: Lines, max_depth: int) -> tuple[pa.Table, bytes] | None:
    """The first lines whose values agree in their types, times as strings, if there are any."""
    if lines.sound(max_depth):
        try:
            table = _untyped(lines.data)
            if table.num_rows == len(lines):
                return table, lines.data
        except pa.ArrowInvalid:
            pass
    safe = [line for n, line in enumerate(lines) if not lines.fault(n, max_depth)]
    found = _longest_start([line for line in safe if not _fault(line)])
    if found is None:
        # What Python refuses Arrow may read, NaN for example: better than nothing.
        found = _longest_start([line for line in safe if not _refusal([line], None)])
    return found


def _longest_start(lines: Sequence[bytes]) -> tuple[pa.Table, bytes] | None:
    """About as many of the first lines as agree in their types."""
    taken = len(lines)
    while lines:
        data = b"\n".join(lines[:taken])
        try:
            return _untyped(data), data
        except pa.ArrowInvalid:
            # What Arrow does not even read alone is no example.
            lines, taken = (lines, taken // 2) if taken > 1 else (lines[1:], len(lines) - 1)
    return None


def _untyped(data: bytes) -> pa.Table:
    """The lines in the types that Arrow sees in them, times as strings."""
    table = _parse(data, None)
    if not any(pt.is_timestamp(f.type) for f in table.schema):
        return table
    return _parse(data, _times_as_strings(table.schema))


def _settle(type_: pa.DataType, column: pa.ChunkedArray) -> pa.DataType:
    values = column.drop_null()

    def fits(candidate: pa.DataType, a: int, b: int) -> bool:
        try:
            values.slice(a, b - a).cast(candidate)
        except pa.ArrowInvalid:
            return False
        return True

    if pt.is_string(type_) and len(values):
        stamps = [pa.timestamp(u, zone) for u in ("us", "ns") for zone in (None, "UTC")]
        whole = (t for t in stamps if fits(t, 0, len(values)))
        return next(whole, None) or likely_type(len(values), fits, stamps) or type_
    return settled(type_, lambda t: fits(t, 0, len(values)))


def _exact(type_: pa.DataType, values: Sequence[Any]) -> pa.DataType:
    """The type with decimals for doubles where the numbers are whole and one is beyond int64."""
    if pt.is_list(type_):
        items = [item for value in values if isinstance(value, list) for item in value]
        return pa.list_(type_.value_field.with_type(_exact(type_.value_type, items)))
    if pt.is_struct(type_):
        objects = [value for value in values if isinstance(value, dict)]
        return pa.struct(
            [f.with_type(_exact(f.type, [o.get(f.name) for o in objects])) for f in type_]
        )
    whole = [value for value in values if type(value) is int]
    if not pt.is_float64(type_) or any(isinstance(value, float) for value in values):
        return type_
    return WIDE if any(not -(2**63) <= value < 2**63 for value in whole) else type_


def _read(
    path: str, block: Block, schema: pa.Schema, bad: BadRows, max_depth: int
) -> pa.RecordBatch:
    """The well-formed rows of a block."""
    lines = Lines(block.data)
    if lines.sound(max_depth):
        try:
            table = _typed(block.data, schema)
            if table.num_rows == len(lines):
                return _one_batch(table)
        except pa.ArrowInvalid:
            pass
    return _read_with_care(path, block, lines, schema, bad, max_depth)


def _read_with_care(
    path: str, block: Block, lines: Lines, schema: pa.Schema, bad: BadRows, max_depth: int
) -> pa.RecordBatch:
    faults: dict[int, str] = {}
    texts = list(lines)
    readable: list[int] = []
    for n, line in enumerate(texts):
        fault = lines.fault(n, max_depth)
        if not fault and not (line.startswith(b"{") and line.endswith(b"}")):
            fault = _fault(line) or "no JSON object"
        if fault:
            faults[n] = fault
        else:
            readable.append(n)

    def fits(a: int, b: int) -> bool:
        return not _refusal([texts[n] for n in readable[a:b]], schema)

    found = culprits(len(readable), fits, bad.limit + 1)
    for row in found:
        faults[readable[row]] = _why_not(texts[readable[row]], schema)
    for n in sorted(faults):
        bad.add(path, block.line + int(lines.numbers[n]), faults[n], texts[n])
    kept = [texts[n] for n in readable if n not in faults]
    return _one_batch(_typed(b"\n".join(kept), schema))


def _refusal(lines: Sequence[bytes], schema: pa.Schema | None) -> str:
    """Why Arrow does not read the lines as one row each; empty if it does."""
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in lines):
        return "no object"
    data = b"\n".join(lines)
    try:
        rows = (_parse(data, None) if schema is None else _typed(data, schema)).num_rows
    except pa.ArrowInvalid as error:
        return str(error).partition("\n")[0]
    return "" if rows == len(lines) else f"{rows} objects in {len(lines)} lines"


def _why_not(line: bytes, schema: pa.Schema | None) -> str:
    """Why a line that was refused is malformed."""
    if fault := _fault(line):
        return fault
    # Nothing is read from it: a name that is longer than the line is not in it.
    if refusal := _refusal([line], pa.schema([("-" * len(line), pa.null())])):
        return f"no JSON: {refusal.removeprefix('JSON parse error: ')}"
    for field in schema or ():
        if _refusal([line], pa.schema([field])):
            value = json.dumps(json.loads(line).get(field.name), ensure_ascii=False)
            return f"{field.name} is {value[:40]}, not {field.type}"
    return _refusal([line], schema)


def _typed(data: bytes, schema: pa.Schema) -> pa.Table:
    """The lines in the types of a schema, or ArrowInvalid."""
    if not data.strip():
        return schema.empty_table()
    # Timestamps are cast from strings, which tells times with a zone from those without.
    return _parse(data, _times_as_strings(schema)).cast(schema)


def _times_as_strings(schema: pa.Schema) -> pa.Schema:
    return pa.schema(
        [pa.field(f.name, pa.string()) if pt.is_timestamp(f.type) else f for f in schema]
    )


def _parse(data: bytes, schema: pa.Schema | None) -> pa.Table:
    return pj.read_json(
        pa.BufferReader(data),
        pj.ReadOptions(use_threads=False, block_size=len(data) + 1),
        pj.ParseOptions(
            explicit_schema=schema,
            unexpected_field_behavior="infer" if schema is None else "ignore",
        ),
    )


def _fault(line: bytes) -> str:
    """Why a line, in UTF-8 and not too deep, is no JSON object; empty if it is one."""
    try:
        value = json.loads(line.decode("utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
    except json.JSONDecodeError as error:
        return f"no JSON: {error.msg} at character {error.pos + 1}"
    except ValueError as error:
        return f"no JSON: {error}"
    if not isinstance(value, dict):
        kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null"}
        return f"{kinds.get(type(value), 'a number')}, not an object"
    return ""


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the field {twice!r} is there twice")
    return found


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], table.schema)
