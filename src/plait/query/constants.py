"""Write constants of expressions as plain data, and read them.

What JSON has a value for is that value; every other constant is an object that names its kind.

>>> constant_to_data(5), constant_to_data(Decimal("1.50"))
(5, {'decimal': '1.50'})
"""

from __future__ import annotations

import base64
import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plait.errors import QueryError
from plait.query.reading import Reader, shown

_READ = Reader(QueryError)
_MICROSECOND = dt.timedelta(microseconds=1)


def constant_to_data(value: object) -> object:
    """Write a constant in the types of JSON."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if type(value) is dt.datetime and isinstance(value.tzinfo, ZoneInfo):
        return {"timestamp": value.isoformat(), "zone": value.tzinfo.key}
    for kind, (class_, write, _) in _KINDS.items():
        if type(value) is class_:
            return {kind: write(value)}
    raise QueryError(
        f"the constant {value} is a {type(value).__name__}, which cannot be written",
        remedy="use a plain Python value",
    )


def constant_from_data(data: object, path: str) -> object:
    """Read what `constant_to_data` wrote.

    >>> constant_from_data({"date": "2024-02-30"}, "$.literal")
    Traceback (most recent call last):
    plait.errors.QueryError: $.literal is {"date": "2024-02-30"}, no date
    """
    if data is None or isinstance(data, bool | int | str | float):
        return data
    fields = _READ.mapping(data, path)
    kind = next((name for name in fields if name in _KINDS), None)
    if kind is None:
        raise QueryError(
            f"{path} is {shown(data)}, no constant", remedy=f"known: {', '.join(_KINDS)}"
        )
    zoned = kind == "timestamp" and "zone" in fields
    _READ.fields(data, path, (kind, "zone") if zoned else (kind,))
    try:
        value = _KINDS[kind][2](fields[kind])
        return _in_zone(value, _text(fields["zone"])) if zoned else value
    except (TypeError, ValueError, OverflowError, InvalidOperation, ZoneInfoNotFoundError):
        raise QueryError(f"{path} is {shown(data)}, no {kind}") from None


def _in_zone(value: object, zone: str) -> dt.datetime:
    # Without its offset it would be taken for an instant in the zone of this machine.
    if not isinstance(value, dt.datetime) or value.tzinfo is None:
        raise ValueError("no instant")
    return value.astimezone(ZoneInfo(zone))


def _text(data: object) -> str:
    if not isinstance(data, str):
        raise TypeError("not a text")
    return data


def _float(data: object) -> float:
    # The constant and not a new NaN, so that queries that have it are equal.
    values = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
    if data not in values:
        raise ValueError("a finite number is written as such")
    return values[_text(data)]


def _length(data: object) -> dt.timedelta:
    if type(data) is not int:
        raise TypeError("not a number of microseconds")
    return dt.timedelta(microseconds=data)


_KINDS: dict[str, tuple[type, Callable[..., object], Callable[[object], object]]] = {
    "float": (float, str, _float),
    "decimal": (Decimal, str, lambda data: Decimal(_text(data))),
    "bytes": (
        bytes,
        lambda value: base64.b64encode(value).decode("ascii"),
        lambda data: base64.b64decode(_text(data), validate=True),
    ),
    "date": (dt.date, dt.date.isoformat, lambda data: dt.date.fromisoformat(_text(data))),
    "time": (dt.time, dt.time.isoformat, lambda data: dt.time.fromisoformat(_text(data))),
    "timestamp": (
        dt.datetime,
        dt.datetime.isoformat,
        lambda data: dt.datetime.fromisoformat(_text(data)),
    ),
    "duration": (dt.timedelta, lambda value: value // _MICROSECOND, _length),
}
"""Constants without a JSON value: their class, and how they are written and read."""
