"""JSON lines: one object per line; a field that is missing is null, one that is new is ignored.

*Types* come from the first block of the first file, unless given: those of JSON, and strings that
are (nearly) all timestamps in ISO 8601 become timestamps.

*Malformed* is a line that is no JSON or no object, or a value that its column's type does not
have. A block with such a line is read once more to find and set aside the lines to blame.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pj
import pyarrow.types as pt

from plait.errors import SourceError
from plait.runtime.sources.bad import DEFAULT_LIMIT, BadRows
from plait.runtime.sources.base import Chunk
from plait.runtime.sources.text import (
    BLOCK_BYTES,
    Block,
    culprits,
    name_of,
    read_lines,
    total_size,
)
from plait.runtime.sources.types import check_columns, likely_type, settled

_PER_LINE = "write one JSON object per line"


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
    ) -> None:
        self.name = name_of(paths)
        self.bad = BadRows(max_bad_rows)
        self.size = total_size(paths)
        self._paths = list(paths)
        self._block_bytes = block_bytes
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
                rows = _read(str(path), block, schema, bad)
                if rows.num_rows:
                    yield Chunk(rows.select(wanted), before + end)
            before += end

    def _blocks(self, path: Path) -> Iterator[Block]:
        return read_lines(path, block_bytes=self._block_bytes)

    def _infer(self, given: Mapping[str, pa.DataType]) -> pa.Schema:
        path = self._paths[0]
        first = next(self._blocks(path), None)
        if first is None or not first.data.strip():
            raise SourceError(f"{path} is empty", remedy=_PER_LINE)
        if first.data.lstrip().startswith(b"["):
            raise SourceError(
                f"{path} is one JSON array, not a line per row",
                remedy=f"{_PER_LINE}, for example with jq -c '.[]'",
            )
        rows = _agreeing(path, first.data)
        check_columns(path, rows.schema.names)
        types = {f.name: _settle(f.type, rows.column(f.name)) for f in rows.schema}
        if missing := [name for name in given if name not in types]:
            types |= {name: given[name] for name in missing}
        return pa.schema([(name, given.get(name, type_)) for name, type_ in types.items()])


def _agreeing(path: Path, data: bytes) -> pa.Table:
    """The first lines whose values agree in their types, times as strings."""
    try:
        table = _untyped(data)
        if table.num_rows == _count_lines(data):
            return table
    except pa.ArrowInvalid:
        pass
    lines = [line for _, line in _lines(data) if not _fault(line)]
    if not lines:
        fault = next(_fault(line) for _, line in _lines(data))
        raise SourceError(f"{path} has no JSON object in a line: {fault}", remedy=_PER_LINE)
    while True:
        try:
            return _untyped(b"\n".join(lines))
        except pa.ArrowInvalid as error:
            if len(lines) == 1:
                raise SourceError(f"{path} cannot be read: {error}", remedy=_PER_LINE) from None
            lines = lines[: len(lines) // 2]


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


def _read(path: str, block: Block, schema: pa.Schema, bad: BadRows) -> pa.RecordBatch:
    """The well-formed rows of a block."""
    try:
        table = _typed(block.data, schema)
        if table.num_rows == _count_lines(block.data):
            return _one_batch(table)
    except pa.ArrowInvalid:
        pass
    return _read_with_care(path, block, schema, bad)


def _read_with_care(path: str, block: Block, schema: pa.Schema, bad: BadRows) -> pa.RecordBatch:
    faults: dict[int, tuple[bytes, str]] = {}
    good: list[tuple[int, bytes]] = []
    for number, line in _lines(block.data):
        if fault := _fault(line):
            faults[number] = (line, fault)
        else:
            good.append((number, line))

    def fits(a: int, b: int, part: pa.Schema = schema) -> bool:
        try:
            _typed(b"\n".join(line for _, line in good[a:b]), part)
        except pa.ArrowInvalid:
            return False
        return True

    found = culprits(len(good), fits, bad.limit + 1)
    for row in found:
        number, line = good[row]
        value = json.loads(line)
        misfit = next(
            (f for f in schema if not fits(row, row + 1, pa.schema([f]))), schema.field(0)
        )
        shown = json.dumps(value.get(misfit.name), ensure_ascii=False)[:40]
        faults[number] = (line, f"{misfit.name} is {shown}, not {misfit.type}")
    for number in sorted(faults):
        line, reason = faults[number]
        bad.add(path, block.line + number, reason, line)
    dropped = set(found)
    kept = [line for row, (_, line) in enumerate(good) if row not in dropped]
    return _one_batch(_typed(b"\n".join(kept), schema))


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


def _lines(data: bytes) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, numbered from 0."""
    for number, line in enumerate(data.split(b"\n")):
        if line.strip():
            yield number, line


def _count_lines(data: bytes) -> int:
    ends = data.count(b"\n") + (not data.endswith(b"\n"))
    if data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data:
        return sum(1 for _ in _lines(data))
    return ends


def _fault(line: bytes) -> str:
    """Why a line is no JSON object; empty if it is one."""
    try:
        value = json.loads(line, parse_constant=_refuse, object_pairs_hook=_unique)
    except UnicodeDecodeError as error:
        return f"no text in UTF-8: {error.reason} at byte {error.start + 1}"
    except json.JSONDecodeError as error:
        return f"no JSON: {error.msg} at character {error.pos + 1}"
    except (ValueError, RecursionError) as error:
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
