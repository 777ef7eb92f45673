"""Key types for generated queries: families whose members can be equal, and values that meet.

`values(type)` lists a family's values in one order for all its types, so that the same position
means an equal key in every stream; a type that cannot hold one has another value in its place,
chosen to look alike: the bits of -1, a string with a zero byte, a nanosecond more.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal

import pyarrow as pa
import pyarrow.types as pt

Values = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """Types that may share a key class, and the values of each."""

    name: str
    types: tuple[pa.DataType, ...]
    values: Callable[[pa.DataType], Values]


def _integers(type_: pa.DataType) -> Values:
    if pt.is_signed_integer(type_):
        bits = type_.bit_width - 1
        return (0, 1, 2, -1, -(2**bits), 2**bits - 1)
    return (0, 1, 2, 2**type_.bit_width - 1, 3, 2 ** (type_.bit_width - 1))


def _exact_numbers(type_: pa.DataType) -> Values:
    if pt.is_integer(type_):
        return (0, 1, 2, 10, 100)
    unit = Decimal(1).scaleb(-type_.scale)
    return (Decimal(0), Decimal(1), Decimal(2), unit, 1 + unit)


def _floats(type_: pa.DataType) -> Values:
    tenth = 0.1 if type_ == pa.float64() else 0.125
    return (0.0, float("nan"), -0.0, 1.5, float("inf"), tenth)


def _strings(type_: pa.DataType) -> Values:
    return ("a", "b", "", "ab", "a\0", "é")


def _binaries(type_: pa.DataType) -> Values:
    if pt.is_fixed_size_binary(type_):
        return (b"ab", b"a\0", b"\0\0", b"\xff\xff")
    return (b"ab", b"a", b"", b"\xff")


def _dates(type_: pa.DataType) -> Values:
    day = 86_400_000 if pt.is_date64(type_) else 1
    return (0, day, -day, 20_000 * day)


def _instants(type_: pa.DataType) -> Values:
    second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[type_.unit]
    return (0, second, -second, 1, 1_700_000_000 * second)


def _times_of_day(type_: pa.DataType) -> Values:
    second = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[type_.unit]
    return (0, second, 3_600 * second, 1)


def _booleans(_: pa.DataType) -> Values:
    return (False, True)


INTEGERS = Family("integer", (pa.int64(), pa.int32(), pa.int16()), _integers)
_TEXTS = (pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string()))
_DECIMALS = (pa.decimal128(10, 2), pa.decimal128(12, 4))
FAMILIES = (
    INTEGERS,
    Family("string", _TEXTS, _strings),
    Family("float", (pa.float64(), pa.float32()), _floats),
    Family("decimal", (*_DECIMALS, pa.int64(), pa.int32()), _exact_numbers),
    Family("unsigned", (pa.int64(), pa.uint64(), pa.uint32()), _integers),
    Family("date", (pa.date32(), pa.date64()), _dates),
    Family("timestamp", tuple(pa.timestamp(unit) for unit in ("us", "ns", "ms", "s")), _instants),
    Family("zoned", (pa.timestamp("us", "UTC"), pa.timestamp("us", "Asia/Tokyo")), _instants),
    Family("boolean", (pa.bool_(),), _booleans),
    Family("binary", (pa.binary(), pa.large_binary(), pa.binary(2)), _binaries),
    Family("time", (pa.time64("us"), pa.time64("ns"), pa.time32("s")), _times_of_day),
)
"""From the plainest to the oddest, the order in which a failing example is simplified."""

INTERNED = tuple(f for f in FAMILIES if f.name in ("string", "decimal", "binary"))
"""Those whose values are given codes."""


_OTHER_NAN: float = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]


def disguises(value: object) -> Values:
    """Values that are equal to this one as keys, but look different.

    >>> disguises(0.0), len(disguises(float("nan"))), disguises(1)
    ((0.0, -0.0), 2, (1,))
    """
    if isinstance(value, float) and value == 0:
        return (0.0, -0.0)
    return (value, _OTHER_NAN) if isinstance(value, float) and math.isnan(value) else (value,)


def values_of(type_: pa.DataType) -> Values:
    """The values of a key type, those of the first family that has it.

    >>> values_of(pa.int64())[:3]
    (0, 1, 2)
    """
    return next(f.values(type_) for f in FAMILIES if type_ in f.types)
