"""Check event-time columns, and turn counts since 1970 into timestamps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.errors import TimeColumnError, did_you_mean
from plait.local.sources.bad import BadRows
from plait.local.sources.base import Chunk, Source

UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Ticks per second of the units in which event times may be counted."""

_YEAR_9999 = 253_402_300_799
"""In seconds: an event later than this was counted in another unit."""


def check_time(stream: str, source: Source, column: str) -> None:
    """Refuse an event-time column that is missing or holds no timestamps, and suggest another."""
    stamps = [f.name for f in source.schema if pt.is_timestamp(f.type)]
    position = source.schema.get_field_index(column)
    if position < 0:
        raise TimeColumnError(
            f"stream {stream!r} has no column {column!r} to take the event time from: "
            f"{source.name} has {', '.join(source.schema.names)}",
            remedy=f"name another one, for example --time {stream}={stamps[0]}"
            if stamps
            else did_you_mean(column, source.schema.names),
        )
    type_ = source.schema.field(position).type
    if pt.is_timestamp(type_):
        return
    remedy = f"timestamp columns: {', '.join(stamps)}" if stamps else "it has no timestamp column"
    if pt.is_integer(type_):
        unit = _likely_unit(source, column)
        choice = f"timestamp columns: {', '.join(stamps)}; " if stamps else ""
        remedy = (
            f"{choice}if it counts {unit} since 1970, write --time {stream}={column}:{unit} "
            "(or :s, :ms, :us, :ns)"
        )
    elif pt.is_string(type_) or pt.is_large_string(type_):
        remedy = "write times in ISO 8601, such as 2024-01-31T09:30:00.250; " + remedy
    raise TimeColumnError(
        f"the event-time column {stream}.{column} is of type {type_}, not a timestamp",
        remedy=remedy,
    )


def _likely_unit(source: Source, column: str) -> str:
    """The unit in which the first value would be a recent date."""
    if source.once:
        return "ms"
    for chunk in source.scan([column], report=False):
        values = chunk.rows.column(0).drop_null()
        if len(values):
            first = abs(values[0].as_py())
            return next((u for u in UNITS if first < 10**11 * UNITS[u]), "ns")
    return "ms"


class EpochSource:
    """A source whose integer column `column` is turned into timestamps."""

    def __init__(self, source: Source, stream: str, column: str, unit: str) -> None:
        if unit not in UNITS:
            raise TimeColumnError(f"there is no unit {unit!r} of time", remedy="s, ms, us or ns")
        position = source.schema.get_field_index(column)
        if position < 0:
            check_time(stream, source, column)
        type_ = source.schema.field(position).type
        if not pt.is_integer(type_):
            raise TimeColumnError(
                f"{stream}.{column} is of type {type_}: only integers are counted in {unit}",
                remedy=f"write --time {stream}={column}" if pt.is_timestamp(type_) else "",
            )
        self._source = source
        self._stream = stream
        self._column = column
        self._unit = unit
        self._type = pa.timestamp("ns" if unit == "ns" else "us")
        self.schema = source.schema.set(position, pa.field(column, self._type))

    @property
    def name(self) -> str:
        """The name of the source."""
        return self._source.name

    @property
    def size(self) -> int | None:
        """The size of the source."""
        return self._source.size

    @property
    def once(self) -> bool:
        """Whether the source can be scanned only once."""
        return self._source.once

    @property
    def bad(self) -> BadRows:
        """The malformed rows of the source."""
        return self._source.bad

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """The rows, with timestamps."""
        for chunk in self._source.scan(columns, report=report):
            position = chunk.rows.schema.get_field_index(self._column)
            if position < 0:
                yield chunk
                continue
            times = self._convert(chunk.rows.column(position))
            rows = chunk.rows.set_column(position, pa.field(self._column, self._type), times)
            yield Chunk(rows, chunk.position)

    def _convert(self, ticks: pa.Array) -> pa.Array:
        ticks = ticks.cast(pa.int64())
        largest = pc.max(pc.abs(ticks)).as_py()
        if largest is not None and largest // UNITS[self._unit] > _YEAR_9999:
            raise TimeColumnError(
                f"{self._stream}.{self._column} has a value {largest}, which is after the year "
                f"9999 when counted in {self._unit}",
                remedy=f"give another unit: --time {self._stream}={self._column}:ms "
                "(or :s, :us, :ns)",
            )
        return ticks.cast(pa.timestamp(self._unit)).cast(self._type)
