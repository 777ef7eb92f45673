"""Find the columns, event-time column and watermark delay of each stream."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.types as pt

from plait.errors import TimeColumnError, UnknownStream, WindowError, did_you_mean
from plait.query.differences import differences
from plait.query.durations import Duration, micros, positive
from plait.query.expr import Expr
from plait.query.query import Field, check_time_column


def fields_of(columns: pa.Schema | Sequence[Field]) -> tuple[Field, ...]:
    """The columns of a schema as fields.

    >>> fields_of(pa.schema([("k", pa.int64())]))
    (Field(name='k', type=DataType(int64)),)
    """
    if isinstance(columns, pa.Schema):
        return tuple(Field(f.name, f.type) for f in columns)
    return tuple(columns)


def check_names(given: Iterable[str], known: Sequence[str]) -> None:
    """Refuse a name that is not a stream."""
    for name in given:
        if name not in known:
            raise UnknownStream(f"there is no stream {name!r}", remedy=did_you_mean(name, known))


def delays_of(
    names: Sequence[str], watermark: Duration | Mapping[str, Duration] | None
) -> dict[str, int]:
    """The watermark delay of each stream in microseconds: one for all, or one each, or none.

    >>> delays_of(["a", "b"], {"a": "2 seconds"})
    {'a': 2000000, 'b': 0}
    """
    if watermark is None:
        return dict.fromkeys(names, 0)
    if not isinstance(watermark, Mapping):
        return dict.fromkeys(names, _delay(watermark, "the watermark delay"))
    check_names(watermark, names)
    given = {n: _delay(d, f"the watermark delay of {n!r}") for n, d in watermark.items()}
    return {name: given.get(name, 0) for name in names}


def idle_of(names: Sequence[str], idle: Duration | Mapping[str, Duration] | None) -> dict[str, int]:
    """The idle timeout of each stream that has one, in microseconds: one for all, or one each.

    >>> idle_of(["a", "b"], {"a": "1 minute"}), idle_of(["a", "b"], None)
    ({'a': 60000000}, {})
    """
    return _by_name(names, idle, "the idle timeout")


def ahead_of(
    names: Sequence[str], ahead: Duration | Mapping[str, Duration] | None
) -> dict[str, int]:
    """The microseconds that rows of a stream may be ahead of the clock, where that is bounded.

    >>> ahead_of(["a", "b"], "1 hour")
    {'a': 3600000000, 'b': 3600000000}
    """
    return _by_name(names, ahead, "how far ahead rows may be")


def _by_name(
    names: Sequence[str], given: Duration | Mapping[str, Duration] | None, what: str
) -> dict[str, int]:
    """A duration for all streams, or one each."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, positive(given, what=what))
    check_names(given, names)
    return {n: positive(d, what=f"{what} of {n!r}") for n, d in given.items()}


def _delay(duration: Duration, what: str) -> int:
    total = micros(duration, what=what)
    if total < 0:
        raise WindowError(f"{what} is {duration!r}", remedy="give a length of time >= 0")
    return total


def time_columns(
    tables: Sequence[tuple[str, tuple[Field, ...]]],
    given: Mapping[str, str],
    conditions: Sequence[Expr],
) -> tuple[str, ...]:
    """The event-time column of each stream.

    In this order: the `given` one, the one that interval conditions use, the only timestamp
    column. Raises TimeColumnError with the candidates if none of these decides.
    """
    check_names(given, [name for name, _ in tables])
    stamps = {name: [f.name for f in fields if pt.is_timestamp(f.type)] for name, fields in tables}
    used: dict[str, list[str]] = {name: [] for name, _ in tables}
    for d in (d for condition in conditions for d in differences(condition)):
        pair = (d.earlier, d.later)
        if all(c.name in stamps[c.stream] for c in pair) and all(
            given.get(c.stream, c.name) == c.name for c in pair
        ):
            for column in pair:
                used[column.stream].append(column.name)
    return tuple(
        _time_column(name, fields, given.get(name), list(dict.fromkeys(used[name])), stamps[name])
        for name, fields in tables
    )


def _time_column(
    stream: str, fields: Sequence[Field], given: str | None, used: list[str], stamps: list[str]
) -> str:
    if given is not None:
        check_time_column(stream, fields, given)
        return given
    if len(used) == 1:
        return used[0]
    if len(stamps) == 1:
        return stamps[0]
    if not stamps:
        raise TimeColumnError(
            f"stream {stream!r} has no timestamp column to take the event time from",
            remedy="cast a column to a timestamp first; "
            f"columns: {', '.join(f'{f.name} ({f.type})' for f in fields)}",
        )
    candidates = used or stamps
    reason = "the interval conditions use several" if used else "it has several timestamp columns"
    raise TimeColumnError(
        f"which column of {stream!r} is its event time? {reason}: {', '.join(candidates)}",
        remedy=f'say it with time, for example time({stream}="{candidates[0]}")',
    )
