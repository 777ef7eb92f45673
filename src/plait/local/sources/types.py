"""Choose the types of columns in text files: given by name, or inferred from values."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.errors import SourceError, UnknownColumn, did_you_mean
from plait.local.sources.text import culprits

TYPE_NAMES = {
    "bool": pa.bool_(),
    "boolean": pa.bool_(),
    "int": pa.int32(),
    "int32": pa.int32(),
    "int64": pa.int64(),
    "bigint": pa.int64(),
    "long": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
    "timestamptz": pa.timestamp("us", "UTC"),
}
"""Types that `--type` knows by name, besides decimal(precision, scale)."""


def parse_type(text: str) -> pa.DataType:
    """Parse the name of a type.

    >>> parse_type("double"), parse_type("decimal(10, 2)")
    (DataType(double), Decimal128Type(decimal128(10, 2)))
    """
    name = text.strip().lower()
    if name in TYPE_NAMES:
        return TYPE_NAMES[name]
    decimal = re.fullmatch(r"decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)", name)
    if decimal and 0 <= int(decimal[2]) <= int(decimal[1]) <= 38:
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    raise SourceError(
        f"there is no type {text!r}",
        remedy=did_you_mean(name, [*TYPE_NAMES, "decimal(precision, scale)"]),
    )


def settled(inferred: pa.DataType, fits: Callable[[pa.DataType], bool]) -> pa.DataType:
    """The type for a column of which only the beginning has been seen.

    Timestamps are of microseconds, so that whole seconds may be followed by fractions, unless the
    values seen need nanoseconds (`fits` says). A column without a value yet is of strings, and so
    is one in which some bytes are no UTF-8: a text file has no other bytes.
    """
    if pt.is_null(inferred) or pt.is_binary(inferred):
        return pa.string()
    if pt.is_timestamp(inferred):
        zone = None if inferred.tz is None else "UTC"
        micros = pa.timestamp("us", zone)
        return micros if inferred.unit != "ns" or fits(micros) else pa.timestamp("ns", zone)
    return inferred


Fits = Callable[[pa.DataType, int, int], bool]
"""Whether the values from one index to another are all of a type."""

LIKELY_TYPES = (
    # Booleans after numbers: 0 and 1 would do for both.
    pa.int64(),
    pa.float64(),
    pa.bool_(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
)


WIDE = pa.decimal128(38, 0)
"""The type of whole numbers beyond int64."""

_LEAST, _MOST = (pa.scalar(decimal.Decimal(n), WIDE) for n in (-(2**63), 2**63 - 1))

_WHOLE = r"^\s*[+-]?[0-9]+\s*$"
_NUMBER = r"^\s*[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|(?i:nan|inf(inity)?))\s*$"


def exact_type(type_: pa.DataType, texts: pa.Array) -> pa.DataType:
    """The type for numbers, given as text, of which `type_` would round or refuse some.

    Where all numbers are whole, and one is beyond int64: decimals of 38 digits if that is enough,
    else strings.

    >>> exact_type(pa.float64(), pa.array([b"1", b"18446744073709551615"]))
    Decimal128Type(decimal128(38, 0))
    >>> exact_type(pa.float64(), pa.array([b"1.5", b"18446744073709551615"]))
    DataType(double)
    """
    if not (pt.is_float64(type_) or pt.is_int64(type_)):
        return type_
    whole = texts.filter(pc.match_substring_regex(texts, _WHOLE))
    if pt.is_float64(type_):
        numbers = pc.sum(pc.match_substring_regex(texts, _NUMBER)).as_py() or 0
        if not len(whole) or len(whole) < numbers:
            return type_
    digits = pc.ascii_trim_whitespace(whole.cast(pa.string()))
    longest = pc.max(pc.binary_length(pc.ascii_ltrim(digits, "+-0"))).as_py() or 0
    if longest < 19:
        return type_
    if longest > WIDE.precision:
        return pa.string()
    values = pc.ascii_ltrim(digits, "+").cast(WIDE)
    beyond = pc.or_(pc.less(values, _LEAST), pc.greater(values, _MOST))
    return WIDE if pc.any(beyond).as_py() else type_


def likely_type(
    values: int, fits: Fits, types: Sequence[pa.DataType] = LIKELY_TYPES
) -> pa.DataType | None:
    """The type of nearly all the values, or None: so that few malformed ones do not decide it.

    Nearly all means all but one, or at least nine in ten.

    >>> column = ["1", "2", "x", "4"]
    >>> likely_type(4, lambda t, a, b: t == pa.int64() and "x" not in column[a:b])
    DataType(int64)
    """

    def fits_nearly(type_: pa.DataType, count: int) -> bool:
        allowed = min(max(1, count // 10), 1000)
        found = culprits(count, partial(fits, type_), most=allowed + 1)
        return len(found) <= allowed

    # A few values first: most candidates fail right there.
    looks = [count for count in (10, 1000) if count < values] + [values]
    if values < 3:
        return None
    return next((t for t in types if all(fits_nearly(t, count) for count in looks)), None)


def check_columns(path: Path, header: Sequence[str], given: Collection[str] = ()) -> None:
    """Refuse a header with a name missing or twice, and types given for columns it lacks."""
    if "" in header:
        raise SourceError(
            f"column {header.index('') + 1} of {path} has no name",
            remedy="the first line must name every column",
        )
    if twice := next((name for name in header if header.count(name) > 1), None):
        raise SourceError(f"{path} has two columns {twice!r}", remedy="rename one of them")
    for name in given:
        if name not in header:
            raise UnknownColumn(
                f"{path} has no column {name!r} to give a type to",
                remedy=did_you_mean(name, header),
            )
