"""The table of functions: how many arguments each takes, and what it does with columns.

Their meaning is Spark's, which `tests/spark/test_answers.py` compares. Names are Spark's too, where
it has one; the translation of SQL knows the others (`plait.query.sql.functions`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pyarrow.compute as pc

from plait.query.values import (
    arithmetic,
    clocks,
    dates,
    datetime_formats,
    digests,
    java,
    numbers,
    regex,
    strings,
    text,
)
from plait.query.values.compare import extreme
from plait.query.values.convert import as_java_17_writes, convert
from plait.query.values.forms import Value
from plait.query.values.unify import unify


@dataclass(frozen=True, slots=True)
class Function:
    """What a function does, and the fewest and most arguments that it takes."""

    apply: Callable[..., Value]
    least: int = 1
    most: float = 1


def _coalesce(*values: Value) -> Value:
    common = unify([v.type for v in values])
    return pc.coalesce(*(convert(v, common) for v in values))


def _named(make: Callable[[str], Callable[..., Value]], *names: str) -> dict[str, Function]:
    return {name: Function(make(name)) for name in names}


FUNCTIONS: dict[str, Function] = {
    # conditions
    "coalesce": Function(_coalesce, 1, math.inf),
    "greatest": Function(lambda *v: extreme("greatest", v), 1, math.inf),
    "least": Function(lambda *v: extreme("least", v), 1, math.inf),
    "isnan": Function(numbers.is_nan),
    "nanvl": Function(numbers.nanvl, 2, 2),
    # numbers
    "abs": Function(arithmetic.absolute),
    "and_bits": Function(partial(numbers.bitwise, "and"), 2, 2),
    "bit_count": Function(numbers.bit_count),
    "bit_get": Function(numbers.bit_get, 2, 2),
    "not_bits": Function(numbers.bitwise_not),
    "or_bits": Function(partial(numbers.bitwise, "or"), 2, 2),
    "xor_bits": Function(partial(numbers.bitwise, "xor"), 2, 2),
    "bround": Function(numbers.round_half_even, 1, 2),
    "ceil": Function(partial(arithmetic.whole, "ceil")),
    "degrees": Function(numbers.degrees),
    "factorial": Function(numbers.factorial),
    "floor": Function(partial(arithmetic.whole, "floor")),
    "intdiv": Function(numbers.integral_quotient, 2, 2),
    "pmod": Function(numbers.positive_remainder, 2, 2),
    "radians": Function(numbers.radians),
    "rint": Function(numbers.to_even),
    "round": Function(arithmetic.round_half_up, 1, 2),
    "shiftleft": Function(partial(numbers.shifted, "left"), 2, 2),
    "shiftright": Function(partial(numbers.shifted, "right"), 2, 2),
    "shiftrightunsigned": Function(partial(numbers.shifted, "unsigned"), 2, 2),
    "sign": Function(numbers.sign),
    "sqrt": Function(numbers.square_root),
    "width_bucket": Function(numbers.width_bucket, 4, 4),
    # what Spark does without ANSI
    "add_wrapping": Function(partial(java.wrapping, "add"), 2, 2),
    "java_integer": Function(java.integer_of, 2, 2),
    "mul_wrapping": Function(partial(java.wrapping, "mul"), 2, 2),
    "sub_wrapping": Function(partial(java.wrapping, "sub"), 2, 2),
    # what Java 17 and 18 make of floating-point numbers
    "java17_bround": Function(partial(numbers.round_half_even, written=as_java_17_writes), 1, 2),
    "java17_round": Function(partial(arithmetic.round_half_up, written=as_java_17_writes), 1, 2),
    "java17_text": Function(java.text_of),
    # strings
    "ascii": Function(strings.ascii_code),
    "bit_length": Function(strings.bit_length),
    "chr": Function(strings.character),
    "concat": Function(lambda *v: text.concat(v), 1, math.inf),
    "concat_ws": Function(strings.concat_ws, 1, math.inf),
    "contains": Function(partial(strings.affix, "in"), 2, 2),
    "endswith": Function(partial(strings.affix, "end"), 2, 2),
    "find_in_set": Function(strings.find_in_set, 2, 2),
    "initcap": Function(strings.initcap),
    "length": Function(text.length),
    "levenshtein": Function(strings.levenshtein, 2, 2),
    "locate": Function(strings.locate, 2, 3),
    "lower": Function(text.lower),
    "lpad": Function(partial(strings.pad, "left"), 2, 3),
    "ltrim": Function(partial(strings.trimmed, "left"), 1, 2),
    "octet_length": Function(strings.octet_length),
    "overlay": Function(strings.overlay, 3, 4),
    "repeat": Function(strings.repeat, 2, 2),
    "replace": Function(strings.replace, 2, 3),
    "reverse": Function(strings.reverse),
    "right": Function(strings.right, 2, 2),
    "rpad": Function(partial(strings.pad, "right"), 2, 3),
    "rtrim": Function(partial(strings.trimmed, "right"), 1, 2),
    "split_part": Function(strings.split_part, 3, 3),
    "startswith": Function(partial(strings.affix, "start"), 2, 2),
    "substring": Function(text.substring, 2, 3),
    "substring_index": Function(strings.substring_index, 3, 3),
    "translate": Function(strings.translate, 3, 3),
    "trim": Function(partial(strings.trimmed, "both"), 1, 2),
    "upper": Function(text.upper),
    # bytes
    "base64": Function(digests.to_base64),
    "bin": Function(digests.binary_digits),
    "crc32": Function(digests.crc32),
    "hex": Function(digests.hexadecimal),
    "md5": Function(digests.md5),
    "sha1": Function(digests.sha1),
    "sha2": Function(digests.sha2, 2, 2),
    "unhex": Function(digests.from_hexadecimal),
    # patterns
    "regexp_count": Function(regex.regexp_count, 2, 2),
    "regexp_extract": Function(regex.regexp_extract, 2, 3),
    "regexp_replace": Function(regex.regexp_replace, 3, 3),
    "regexp_substr": Function(regex.regexp_substr, 2, 2),
    "rlike": Function(regex.rlike, 2, 2),
    # dates
    **_named(
        lambda field: partial(dates.date_field, field),
        *("year", "quarter", "month", "day", "dayofyear", "dayofweek", "weekday", "weekofyear"),
        "yearofweek",
    ),
    "add_months": Function(dates.add_months, 2, 2),
    "date_add": Function(dates.date_add, 2, 2),
    "date_from_unix_date": Function(dates.from_unix_date),
    "datediff": Function(dates.date_diff, 2, 2),
    "dayname": Function(dates.day_name),
    "last_day": Function(dates.last_day),
    "make_date": Function(dates.make_date, 3, 3),
    "monthname": Function(dates.month_name),
    "next_day": Function(dates.next_day, 2, 2),
    "trunc": Function(dates.truncate_date, 2, 2),
    "unix_date": Function(dates.unix_date),
    # timestamps
    **_named(lambda field: partial(clocks.clock_field, field), "hour", "minute", "second"),
    "date_format": Function(datetime_formats.date_format, 2, 2),
    "date_trunc": Function(clocks.truncate_timestamp, 2, 2),
    "instant_at": Function(java.last_instant),
    "make_timestamp": Function(clocks.make_timestamp, 6, 6),
    "months_between": Function(clocks.months_between, 2, 3),
    "parse_timestamp": Function(datetime_formats.parse_timestamp, 2, 2),
    "plus_days": Function(clocks.plus_days, 2, 2),
    "second_with_fraction": Function(clocks.seconds_with_fraction),
    "timestamp_micros": Function(clocks.from_epoch("us")),
    "timestamp_millis": Function(clocks.from_epoch("ms")),
    "timestamp_seconds": Function(clocks.from_epoch("s")),
    "unix_micros": Function(partial(clocks.since_epoch, "us")),
    "unix_millis": Function(partial(clocks.since_epoch, "ms")),
    "unix_seconds": Function(partial(clocks.since_epoch, "s")),
}


def apply(name: str, values: list[Value]) -> Value:
    """The function's value for these columns and constants.

    >>> import pyarrow as pa
    >>> apply("replace", [pa.array(["a-b"]), pa.scalar("-"), pa.scalar("+")]).to_pylist()
    ['a+b']
    """
    return FUNCTIONS[name].apply(*values)
