"""Functions one value at a time, in plain Python and as naively as they can be said.

Values are those of `scalar`: times in nanoseconds, dates in days. What depends on a time zone is a
matter of tables and not defined here; Spark itself is compared with in `tests/spark`.
"""

from __future__ import annotations

import base64
import calendar
import datetime as dt
import hashlib
import math
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from fractions import Fraction
from typing import Any

import pyarrow as pa
import pyarrow.types as pt

from plait.testing.oracle.scalar_cast import (
    NAN,
    casted,
    fits_int64,
    is_float,
    java_17_decimal,
    java_17_text,
    shortest,
)

Types = Sequence[pa.DataType]
Definition = Callable[[Sequence[Any], Types, pa.DataType], Any]

_SECOND = 1_000_000_000
_DAY = 86_400 * _SECOND
_EPOCH = dt.date(1970, 1, 1)
_NAMES = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_BITS = {pa.int8(): 8, pa.int16(): 16, pa.int32(): 32, pa.int64(): 64}


def _plain(function: Callable[..., Any]) -> Definition:
    """A definition that needs no types."""
    return lambda values, _, __: function(*values)


def _octets(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _date(days: int) -> dt.date:
    return _EPOCH + dt.timedelta(days=days)


def _days(date: dt.date) -> int:
    return (date - _EPOCH).days


def _of_date(part: Callable[[dt.date], Any]) -> Definition:
    return lambda values, _, __: part(_date(values[0]))


def _moved(function: Callable[[dt.date], dt.date]) -> Definition:
    return lambda values, _, __: _days(function(_date(values[0])))


def _of_clock(part: Callable[[int], Any]) -> Definition:
    def function(values: Sequence[Any], types: Types, _: pa.DataType) -> Any:
        _no_zone(types)
        return part(values[0])

    return function


def _no_zone(types: Types) -> None:
    if any(pt.is_timestamp(t) and t.tz is not None for t in types):
        raise NotImplementedError("the oracle knows no time zones")


def _pad(side: str) -> Definition:
    def function(text: str, size: int, fill: str = " ") -> str:
        while fill and len(text) < size:
            missing = size - len(text)
            text = (
                (fill * missing)[:missing] + text
                if side == "left"
                else text + (fill * missing)[:missing]
            )
        return text[: max(size, 0)]

    return _plain(function)


def _translate(text: str, old: str, new: str) -> str:
    changed = ""
    for sign in text:
        place = old.find(sign)
        changed += sign if place < 0 else new[place] if place < len(new) else ""
    return changed


def _locate(values: Sequence[Any], _: Types, __: pa.DataType) -> int | None:
    part, text, start = (*values, 1)[:3]
    if start is None:
        return 0
    if part is None or text is None:
        return None
    if start < 1:
        return 0
    places = [i for i in range(len(text)) if text.startswith(part, i) and i >= start - 1]
    return 1 if not part else places[0] + 1 if places else 0


def _concat_ws(values: Sequence[Any], types: Types, result: pa.DataType) -> str | None:
    texts = [
        casted(v, t, pa.string())
        for v, t in zip(values[1:], types[1:], strict=True)
        if v is not None
    ]
    return None if values[0] is None else str(values[0]).join(texts)


def _split_part(text: str, delimiter: str, number: int) -> str | None:
    parts = [text] if not delimiter else text.split(delimiter)
    if number == 0:
        return None
    from_end = parts if number > 0 else parts[::-1]
    return from_end[abs(number) - 1] if abs(number) <= len(parts) else ""


def _substring_index(text: str, delimiter: str, count: int) -> str:
    if not delimiter or count == 0:
        return ""
    if count < 0:
        return _substring_index(text[::-1], delimiter[::-1], -count)[::-1]
    found = [i for i in range(len(text)) if text.startswith(delimiter, i)]
    return text[: found[count - 1]] if count <= len(found) else text


def _overlay(text: str, new: str, start: int, count: int = -1) -> str:
    size = count if count >= 0 else len(new)
    rest = start + size
    tail = text[rest - 1 :] if rest > 0 else text if rest == 0 or -rest > len(text) else text[rest:]
    return text[: max(start - 1, 0)] + new + tail


def _levenshtein(a: str, b: str) -> int:
    if not a or not b:
        return len(a) + len(b)
    return min(
        _levenshtein(a[1:], b) + 1,
        _levenshtein(a, b[1:]) + 1,
        _levenshtein(a[1:], b[1:]) + (a[0] != b[0]),
    )


def _unhex(text: str) -> bytes | None:
    if re.fullmatch("[0-9a-fA-F]*", text) is None:
        return None
    return bytes.fromhex("0" * (len(text) % 2) + text)


def _sha2(value: str | bytes, bits: int) -> str | None:
    names = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}
    return hashlib.new(names[bits], _octets(value)).hexdigest() if bits in names else None


def _python(pattern: str) -> re.Pattern[str]:
    """Only for texts without ends of lines, where `.` and `$` mean the same in Java."""
    return re.compile(pattern, re.ASCII)


def _extract(text: str, pattern: str, group: int = 1) -> str:
    found = _python(pattern).search(text)
    return (found[group] or "") if found else ""


def _replace_regex(text: str, pattern: str, replacement: str) -> str:
    return _python(pattern).sub(re.sub(r"\$(\d)", r"\\\1", replacement), text)


def _first_match(text: str, pattern: str) -> str | None:
    found = _python(pattern).search(text)
    return found[0] if found else None


def _sign(values: Sequence[Any], _: Types, __: pa.DataType) -> float:
    number = float(values[0])
    return number if number == 0 or math.isnan(number) else math.copysign(1.0, number)


def _root(value: Any) -> float:
    number = float(value)
    return math.sqrt(number) if number >= 0 else NAN


def _rint(value: Any) -> float:
    number = float(value)
    return math.copysign(float(round(number)), number) if math.isfinite(number) else number


def _bround(written: Callable[[float], Decimal]) -> Definition:
    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
        value, digits = (*values, 0)[:2]
        if isinstance(value, float) and not math.isfinite(value):
            return value
        exact = written(value) if isinstance(value, float) else Decimal(value)
        with localcontext(prec=1000):
            near = exact.quantize(Decimal(1).scaleb(-digits), ROUND_HALF_EVEN)
            if is_float(result):
                return float(near) + 0.0
            if pt.is_decimal(result):
                return near.quantize(Decimal(1).scaleb(-result.scale))
            whole = int(near)
        return whole if _fits(whole, result) else None

    return function


def _fits(number: int, type_: pa.DataType) -> bool:
    return _signed(number, _BITS[type_]) == number


def _signed(number: int, bits: int) -> int:
    number &= 2**bits - 1
    return number - 2**bits if number >= 2 ** (bits - 1) else number


def _java_remainder(a: Any, b: Any) -> Any:
    if isinstance(a, float):
        return NAN if math.isinf(a) or math.isnan(a) or math.isnan(b) else math.fmod(a, b)
    exact = Fraction(a) - Fraction(b) * math.trunc(Fraction(a) / Fraction(b))
    return exact


def _pmod(values: Sequence[Any], types: Types, result: pa.DataType) -> Any:
    a, b = (float(v) if is_float(result) else v for v in values)
    if b == 0:
        return None
    rest = _java_remainder(a, b)
    if rest < 0:
        total = rest + b
        if pt.is_integer(result):
            total = _signed(int(total), _BITS[result])
        rest = _java_remainder(total, b)
    if is_float(result):
        return rest
    if pt.is_decimal(result):
        with localcontext(prec=80):
            return Decimal(rest.numerator) / Decimal(rest.denominator)
    return int(rest)


def _intdiv(a: int, b: int) -> int | None:
    return None if b == 0 else fits_int64(math.trunc(Fraction(a, b)))


def _shift(how: str) -> Definition:
    def function(values: Sequence[Any], types: Types, result: pa.DataType) -> int:
        bits = _BITS[result]
        number, by = values[0], values[1] % bits
        if how == "left":
            return _signed(number << by, bits)
        return number >> by if how == "right" else _signed((number & (2**bits - 1)) >> by, bits)

    return function


def _bit_get(values: Sequence[Any], types: Types, _: pa.DataType) -> int | None:
    number, place = values
    return (number >> place) & 1 if 0 <= place < _BITS[types[0]] else None


def _width_bucket(value: Any, low: Any, high: Any, buckets: int) -> int | None:
    v, a, b = float(value), float(low), float(high)
    if buckets <= 0 or math.isnan(v) or a == b or not (math.isfinite(a) and math.isfinite(b)):
        return None
    if a < b:
        inside = int(buckets * (v - a) / (b - a)) + 1 if a <= v < b else 0
        return buckets + 1 if v >= b else inside
    inside = int(buckets * (a - v) / (a - b)) + 1 if b < v <= a else 0
    return buckets + 1 if v <= b else inside


def _month_later(days: int, count: int) -> int | None:
    date = _date(days)
    months = date.year * 12 + date.month - 1 + count
    year, month = divmod(months, 12)
    if not 1 <= year <= 9999:
        return None
    last = calendar.monthrange(year, month + 1)[1]
    return _days(dt.date(year, month + 1, min(date.day, last)))


def _last_of(date: dt.date) -> dt.date:
    return date.replace(day=calendar.monthrange(date.year, date.month)[1])


def _next_day(days: int, name: str) -> int | None:
    long = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    for after in range(1, 8):
        day = long[_date(days + after).weekday()]
        if name.lower() in (day, day[:3], day[:2]):
            return days + after
    return None


_TRUNCATIONS: Mapping[str, Callable[[dt.date], dt.date]] = {
    **dict.fromkeys(("year", "yyyy", "yy"), lambda d: d.replace(month=1, day=1)),
    "quarter": lambda d: d.replace(month=(d.month - 1) // 3 * 3 + 1, day=1),
    **dict.fromkeys(("month", "mm", "mon"), lambda d: d.replace(day=1)),
    "week": lambda d: d - dt.timedelta(days=d.weekday()),
}


def _trunc(days: int, unit: str) -> int | None:
    cut = _TRUNCATIONS.get(unit.lower())
    return None if cut is None else _days(cut(_date(days)))


def _date_trunc(values: Sequence[Any], types: Types, _: pa.DataType) -> int | None:
    _no_zone(types)
    unit, nanos = values
    sizes = {"microsecond": 1000, "millisecond": 10**6, "second": _SECOND, "minute": 60 * _SECOND}
    sizes |= {"hour": 3600 * _SECOND, "day": _DAY, "dd": _DAY}
    size = sizes.get(unit.lower())
    if size is not None:
        return int(nanos) // size * size
    days = _trunc(int(nanos) // _DAY, unit)
    return None if days is None else days * _DAY


def _make_date(year: int, month: int, day: int) -> int | None:
    try:
        within = _days(dt.date(2000 + year % 400, month, day))
    except (ValueError, OverflowError):
        return None
    days = within + (year - (2000 + year % 400)) // 400 * 146_097  # days of 400 years
    return days if -(2**31) <= days < 2**31 else None


def _make_timestamp(values: Sequence[Any], types: Types, _: pa.DataType) -> int | None:
    year, month, day, hour, minute, second = values
    days = _make_date(year, month, day)
    micros = Fraction(casted(second, types[5], pa.decimal128(16, 6))) * 10**6
    if days is None or not (0 <= hour < 24 and 0 <= minute < 60 and 0 <= micros <= 60_000_000):
        return None
    return days * _DAY + int(hour * 60 + minute) * 60 * _SECOND + int(micros) * 1000


def _months_between(values: Sequence[Any], types: Types, _: pa.DataType) -> float:
    _no_zone(types)
    a, b, rounded = (*values, True)[:3]
    first, second = _date(a // _DAY), _date(b // _DAY)
    months = (first.year - second.year) * 12 + first.month - second.month
    if first.day == second.day or (first == _last_of(first) and second == _last_of(second)):
        return float(months)
    seconds = (first.day - second.day) * 86_400 + a % _DAY // _SECOND - b % _DAY // _SECOND
    exact: float = months + seconds / (31 * 86_400)
    return math.floor(exact * 1e8 + 0.5) / 1e8 if rounded else exact


def _date_format(values: Sequence[Any], types: Types, _: pa.DataType) -> str:
    _no_zone(types)
    nanos, pattern = values
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=nanos // 1000)
    hour = (moment.hour + 11) % 12 + 1
    letters = {
        "yyyy": f"{moment.year:04}", "MMM": f"{moment:%b}", "MM": f"{moment.month:02}",
        "dd": f"{moment.day:02}", "HH": f"{moment.hour:02}", "hh": f"{hour:02}",
        "mm": f"{moment.minute:02}", "ss": f"{moment.second:02}",
        "SSSSSS": f"{moment.microsecond:06}", "SSS": f"{moment.microsecond // 1000:03}",
        "M": str(moment.month), "d": str(moment.day), "H": str(moment.hour), "h": str(hour),
        "m": str(moment.minute), "s": str(moment.second), "E": f"{moment:%a}",
        "a": "AM" if moment.hour < 12 else "PM",
    }  # fmt: skip
    found = re.findall(r"'([^']*)'|([a-zA-Z]+)|([^a-zA-Z']+)", pattern)
    return "".join(quoted or signs or letters[word] for quoted, word, signs in found)


_STRPTIME = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}


def _parse(text: str, pattern: str) -> int | None:
    """Only formats in which every field has its full number of digits."""
    format_ = re.sub("|".join(_STRPTIME), lambda found: _STRPTIME[found[0]], pattern)
    if len(text) != len(pattern):
        return None
    try:
        moment = dt.datetime.strptime(text, format_)
    except ValueError:
        return None
    if "yyyy" not in pattern:
        moment = moment.replace(year=1970)
    return (moment - dt.datetime(1970, 1, 1)) // dt.timedelta(microseconds=1) * 1000


def _plus(values: Sequence[Any], types: Types, _: pa.DataType) -> int:
    _no_zone(types)
    return int(values[0] + values[1])


def _java_integer(values: Sequence[Any], types: Types, _: pa.DataType) -> int | None:
    value, bits = values
    if isinstance(value, str):
        found = re.fullmatch(r"([+-]?)([0-9]*)(?:\.[0-9]*)?", value.strip())
        if found is None or value.strip() in ("", "+", "-"):
            return None
        number = int(found[1] + (found[2] or "0"))
        return number if _signed(number, bits) == number else None
    if isinstance(value, float):
        if math.isnan(value):
            return 0
        most = 2 ** (max(bits, 32) - 1)
        return _signed(min(max(_cut(value), -most), most - 1), bits)
    return _signed(int(value), bits)


def _cut(value: float) -> int:
    """A double without what is behind the point; 2**70 for all that is beyond."""
    return int(value) if abs(value) < 2.0**70 else int(math.copysign(2.0**70, value))


LAZY: Mapping[str, Definition] = {
    "concat_ws": _concat_ws,
    "isnan": lambda values, _, __: values[0] is NAN,
    "locate": _locate,
    "nanvl": lambda values, _, __: (
        (None if values[1] is None else float(values[1]))
        if values[0] is NAN
        else None
        if values[0] is None
        else float(values[0])
    ),
}
"""Functions that have a value although an argument is null."""

STRICT: Mapping[str, Definition] = {
    # numbers
    "and_bits": _plain(lambda a, b: a & b),
    "or_bits": _plain(lambda a, b: a | b),
    "xor_bits": _plain(lambda a, b: a ^ b),
    "not_bits": _plain(lambda a: ~a),
    "bit_count": _plain(lambda a: (int(a) & (2**64 - 1)).bit_count()),
    "bit_get": _bit_get,
    "bround": _bround(shortest),
    "degrees": _plain(lambda a: float(a) * 57.29577951308232),
    "factorial": _plain(lambda n: math.prod(range(1, n + 1)) if 0 <= n <= 20 else None),
    "intdiv": _plain(_intdiv),
    "pmod": _pmod,
    "radians": _plain(lambda a: float(a) * 0.017453292519943295),
    "rint": _plain(_rint),
    "shiftleft": _shift("left"),
    "shiftright": _shift("right"),
    "shiftrightunsigned": _shift("unsigned"),
    "sign": _sign,
    "sqrt": _plain(_root),
    "width_bucket": _plain(_width_bucket),
    # what Spark does without ANSI
    "add_wrapping": _plain(lambda a, b: _signed(a + b, 64)),
    "java_integer": _java_integer,
    "mul_wrapping": _plain(lambda a, b: _signed(a * b, 64)),
    "sub_wrapping": _plain(lambda a, b: _signed(a - b, 64)),
    # what Java 17 and 18 make of floating-point numbers
    "java17_bround": _bround(java_17_decimal),
    "java17_text": lambda values, types, _: java_17_text(values[0], types[0]),
    # strings
    "ascii": _plain(lambda s: ord(s[0]) if s else 0),
    "bit_length": _plain(lambda s: 8 * len(_octets(s))),
    "chr": _plain(lambda n: "" if n < 0 else bytes([n % 256]).decode("latin-1")),
    "contains": _plain(lambda s, part: part in s),
    "endswith": _plain(lambda s, part: s[len(s) - len(part) :] == part and len(part) <= len(s)),
    "find_in_set": _plain(
        lambda s, listed: listed.split(",").index(s) + 1 if s in listed.split(",") else 0
    ),
    "initcap": _plain(lambda s: " ".join(word.capitalize() for word in s.split(" "))),
    "levenshtein": _plain(_levenshtein),
    "lpad": _pad("left"),
    "ltrim": _plain(lambda s, signs=" ": s.lstrip(signs) if signs else s),
    "octet_length": _plain(lambda s: len(_octets(s))),
    "overlay": _plain(_overlay),
    "repeat": _plain(lambda s, n: "".join(s for _ in range(n))),
    "replace": _plain(lambda s, old, new="": new.join(s.split(old)) if old else s),
    "reverse": _plain(lambda s: "".join(reversed(s))),
    "right": _plain(lambda s, n: s[max(len(s) - n, 0) :] if n > 0 else ""),
    "rpad": _pad("right"),
    "rtrim": _plain(lambda s, signs=" ": s.rstrip(signs) if signs else s),
    "split_part": _plain(_split_part),
    "startswith": _plain(lambda s, part: s[: len(part)] == part),
    "substring_index": _plain(_substring_index),
    "translate": _plain(_translate),
    "trim": _plain(lambda s, signs=" ": s.strip(signs) if signs else s),
    # bytes
    "base64": _plain(lambda b: base64.b64encode(_octets(b)).decode()),
    "bin": _plain(lambda n: format(n % 2**64, "b")),
    "crc32": _plain(lambda b: zlib.crc32(_octets(b))),
    "hex": _plain(
        lambda v: format(v % 2**64, "X") if isinstance(v, int) else _octets(v).hex().upper()
    ),
    "md5": _plain(lambda b: hashlib.new("md5", _octets(b)).hexdigest()),
    "sha1": _plain(lambda b: hashlib.new("sha1", _octets(b)).hexdigest()),
    "sha2": _plain(_sha2),
    "unhex": _plain(_unhex),
    # patterns
    "regexp_count": _plain(lambda s, p: len(_python(p).findall(s))),
    "regexp_extract": _plain(_extract),
    "regexp_replace": _plain(_replace_regex),
    "regexp_substr": _plain(_first_match),
    "rlike": _plain(lambda s, p: _python(p).search(s) is not None),
    # dates
    "year": _of_date(lambda d: d.year),
    "quarter": _of_date(lambda d: (d.month + 2) // 3),
    "month": _of_date(lambda d: d.month),
    "day": _of_date(lambda d: d.day),
    "dayofyear": _of_date(lambda d: d.timetuple().tm_yday),
    "dayofweek": _of_date(lambda d: d.isoweekday() % 7 + 1),
    "weekday": _of_date(lambda d: d.weekday()),
    "weekofyear": _of_date(lambda d: d.isocalendar().week),
    "yearofweek": _of_date(lambda d: d.isocalendar().year),
    "dayname": _of_date(lambda d: _NAMES[d.weekday()]),
    "monthname": _of_date(lambda d: f"{d:%b}"),
    "last_day": _moved(_last_of),
    "add_months": _plain(_month_later),
    "date_add": _plain(lambda days, count: days + count if abs(days + count) < 2**31 else None),
    "date_from_unix_date": _plain(lambda n: n if -(2**31) <= n < 2**31 else None),
    "datediff": _plain(lambda end, start: end - start),
    "make_date": _plain(_make_date),
    "next_day": _plain(_next_day),
    "trunc": _plain(_trunc),
    "unix_date": _plain(lambda days: days),
    # timestamps
    "hour": _of_clock(lambda nanos: nanos // (3600 * _SECOND) % 24),
    "minute": _of_clock(lambda nanos: nanos // (60 * _SECOND) % 60),
    "second": _of_clock(lambda nanos: nanos // _SECOND % 60),
    "second_with_fraction": _of_clock(lambda nanos: Decimal(nanos // 1000 % 60_000_000).scaleb(-6)),
    "date_format": _date_format,
    "date_trunc": _date_trunc,
    "instant_at": _plain(lambda n: max(min(n * 10**6, 2**63 - 1), -(2**63)) * 1000),
    "make_timestamp": _make_timestamp,
    "months_between": _months_between,
    "parse_timestamp": _plain(_parse),
    "plus_days": _plus,
    "timestamp_micros": _plain(lambda n: n * 1000),
    "timestamp_millis": _plain(lambda n: n * 10**6 if fits_int64(n * 1000) is not None else None),
    "timestamp_seconds": _plain(
        lambda n: n * _SECOND if fits_int64(n * 10**6) is not None else None
    ),
    "unix_millis": _plain(lambda nanos: nanos // 10**6),
    "unix_seconds": _plain(lambda nanos: nanos // _SECOND),
}
"""Functions that are null where an argument is."""
