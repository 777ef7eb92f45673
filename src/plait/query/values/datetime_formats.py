"""Format and parse dates and times: the letters of Java that mean the same everywhere.

`yyyy`, `MM`, `dd`, `HH`, `hh`, `mm`, `ss`, `S` (a digit of the fraction each), single letters for
numbers without zeros before them, `MMM` and `E` for short English names, `a` for AM and PM, other
signs as they are, and letters in quotes. What depends on more is refused by name.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from plait.query.values.clocks import as_timestamp, clock_field, shown
from plait.query.values.convert import convert
from plait.query.values.dates import constant_text, date_field, day_name, month_name
from plait.query.values.forms import Unfit, Value, as_text, by_value, ints, spread

_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()
_PIECE = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")
_WRITTEN = frozenset(
    {"yyyy", "M", "MM", "MMM", "d", "dd", "H", "HH", "h", "hh", "m", "mm", "s", "ss", "a"}
    | {"E", "EE", "EEE"}
)
_READ: dict[str, tuple[str, str]] = {
    "yyyy": ("year", r"\+\d{5,6}|-?\d{4}"),
    "M": ("month", r"\d{1,19}"),
    "MM": ("month", r"\d\d"),
    "d": ("day", r"\d{1,19}"),
    "dd": ("day", r"\d\d"),
    "H": ("hour", r"\d{1,19}"),
    "HH": ("hour", r"\d\d"),
    "m": ("minute", r"\d{1,19}"),
    "mm": ("minute", r"\d\d"),
    "s": ("second", r"\d{1,19}"),
    "ss": ("second", r"\d\d"),
}
_REMEDY = "compute it with Spark before the join, in a column"


def _pieces(pattern: str) -> list[tuple[str, bool]]:
    """The format's letters and its literal signs: text, and whether it is letters."""
    pieces: list[tuple[str, bool]] = []
    at = 0
    while at < len(pattern):
        found = _PIECE.match(pattern, at)
        if found is None or re.search(r"[\[\]{}#]", found[0]):
            raise Unfit(f"the format {pattern!r} is not read as Java reads it; {_REMEDY}")
        at = found.end()
        if found[2]:
            pieces.append((found[0], True))
        elif found[1] is not None:
            pieces.append((found[1].replace("''", "'") or "'", False))
        else:
            pieces.append((found[0], False))
    return pieces


def _unknown(letters: str, pattern: str) -> Unfit:
    return Unfit(f"{letters} in the format {pattern!r} is not known here; {_REMEDY}")


def date_format(value: Value, pattern: Value) -> Value:
    """Format local time.

    >>> noon = pa.array(["2024-05-17 12:04:56"]).cast(pa.timestamp("us"))
    >>> date_format(noon, pa.scalar("d MMM yyyy, HH:mm")).to_pylist()
    ['17 May 2024, 12:04']
    """
    text = constant_text(pattern, "the format")
    times = spread(shown(as_timestamp(value)), 1)
    if text is None:
        return pa.nulls(len(times), pa.string())
    date = convert(times, pa.date32())
    parts: list[Value] = []
    for piece, letters in _pieces(text):
        if not letters:
            parts.append(pa.scalar(piece))
        elif set(piece) == {"S"} and len(piece) <= 9:
            parts.append(_fraction(times, len(piece)))
        elif piece in _WRITTEN:
            parts.append(_written(piece, times, date))
        else:
            raise _unknown(piece, text)
    if not parts:
        return pc.if_else(pc.is_valid(times), pa.scalar(""), pa.scalar(None, pa.string()))
    joined = pc.binary_join_element_wise(*parts, pa.scalar(""), null_handling="emit_null")
    return pc.if_else(pc.is_valid(times), joined, pa.scalar(None, pa.string()))


def _written(letters: str, times: pa.Array, date: pa.Array) -> Value:
    names: dict[str, Callable[[], Value]] = {
        "MMM": lambda: month_name(date),
        "E": lambda: day_name(date),
        "y": lambda: date_field("year", date),
        "M": lambda: date_field("month", date),
        "d": lambda: date_field("day", date),
        "H": lambda: clock_field("hour", times),
        "m": lambda: clock_field("minute", times),
        "s": lambda: clock_field("second", times),
    }
    if letters == "MMM" or letters[0] == "E":
        return names[letters if letters == "MMM" else "E"]()
    if letters == "a":
        return pc.if_else(pc.less(clock_field("hour", times), 12), "AM", "PM")
    if letters[0] == "h":
        hour = clock_field("hour", times)
        number = pa.array((ints(hour) + 11) % 12 + 1, pa.int64())
    else:
        number = names[letters[0]]()
    if letters == "yyyy":
        return by_value(_year, pa.string(), number)
    return pc.utf8_lpad(pc.cast(number, pa.string()), width=len(letters), padding="0")


def _year(number: int) -> str:
    return f"+{number}" if number > 9999 else f"{'-' if number < 0 else ''}{abs(number):04}"


def _fraction(times: pa.Array, digits: int) -> Value:
    micros = pc.cast(pa.array(ints(times) % 1_000_000), pa.string())
    full = pc.utf8_rpad(pc.utf8_lpad(micros, width=6, padding="0"), width=9, padding="0")
    return pc.utf8_slice_codeunits(full, start=0, stop=digits)


@lru_cache(maxsize=256)
def _reader(pattern: str) -> Callable[[str], int | None]:
    """A function from a text in this format to microseconds since 1970-01-01."""
    regex, fields = "", []
    before = False
    for piece, letters in _pieces(pattern):
        if not letters:
            regex += re.escape(piece)
        elif set(piece) == {"S"} and len(piece) <= 9 and not before:
            fields.append("fraction")
            regex += rf"(\d{{1,{len(piece)}}})"
        elif piece in _READ and (not before or len(piece) == 2):
            name, shape = _READ[piece]
            if name in fields:
                raise _unknown(f"{piece} twice", pattern)
            fields.append(name)
            regex += f"({shape})"
        else:
            raise _unknown(piece, pattern)
        before = letters and len(piece) != 2
        if before and piece == "yyyy":
            before = False
    whole = re.compile(regex, re.ASCII | re.IGNORECASE)

    def read(text: str) -> int | None:
        found = whole.fullmatch(text)
        if found is None:
            return None
        given = dict(zip(fields, found.groups(), strict=True))
        fraction = int(given.pop("fraction", "0").ljust(9, "0")) // 1000
        numbers = {name: int(number) for name, number in given.items()}
        year, month, day = (numbers.get(name, least) for name, least in _LEAST)
        hour, minute, second = (numbers.get(name, 0) for name in ("hour", "minute", "second"))
        if hour > 23 or minute > 59 or second > 59:
            return None
        try:
            # Calendars repeat after 400 years.
            days = dt.date(year % 400 + 2000, month, day).toordinal() - _EPOCH_DAY
        except (ValueError, OverflowError):
            return None
        days += (year // 400 - 5) * 146_097
        micros = ((days * 24 + hour) * 60 + minute) * 60_000_000 + second * 1_000_000 + fraction
        return micros if -(2**63) <= micros < 2**63 else None

    return read


_LEAST = (("year", 1970), ("month", 1), ("day", 1))


def parse_timestamp(value: Value, pattern: Value) -> Value:
    """Parse local time from a text in a format; null where the text does not match.

    >>> parse_timestamp(pa.array(["17.05.2024", "x"]), pa.scalar("dd.MM.yyyy")).to_pylist()
    [datetime.datetime(2024, 5, 17, 0, 0), None]
    """
    text = constant_text(pattern, "the format")
    given = as_text(value)
    if text is None:
        return pa.nulls(len(spread(given, 1)), pa.timestamp("us"))
    return by_value(_reader(text), pa.timestamp("us"), given)
