"""Every function of the table against its definition, with constants and with columns."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import TypeMismatch
from plait.query.evaluate import evaluate, type_of
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.values.functions import FUNCTIONS
from plait.testing.oracle import scalar_functions
from plait.testing.oracle.scalar import compiled, inward, outward, python_values

FLOAT = pa.float32()
COLUMNS: dict[str, pa.Array] = {
    "I": pa.array([0, 1, -7, 2**63 - 1, -(2**63), None, 3, 100]),
    "J": pa.array([2, 0, 3, -1, -(2**31), 5, None, 31], pa.int32()),
    "Y": pa.array([-1, 127, -128, 0, None, 5, 6, 7], pa.int8()),
    "K": pa.array([1, 2, 0, -1, 5, -2, 3, None]),
    "X": pa.array([0.0, -0.0, math.nan, math.inf, 2.5, None, -1e30, -3.5]),
    "Z": pa.array([2e23, 8.5e22, 5e-324, 1e-323, None, -(2.0**60), 2.0**-1022, -0.001]),
    "F": pa.array([2.0**-44, 9.671394e24, 2.0**62, None, -0.1, 1e-44, 4.7529286e25, 1e10], FLOAT),
    "D": pa.array(
        [*map(Decimal, ("0", "1.5", "-2.5", "0.05", "99.95", "0.15")), None, Decimal("-7.25")],
        pa.decimal128(7, 2),
    ),
    "S": pa.array(["", "a", "Añ b", " b ", "ab,cd,,e", None, "12", "😀é x1"]),
    "T": pa.array(["a", "", "ñ", "b", ",", "b", None, "x"]),
    "B": pa.array([b"", b"a", b"\xff\x00", None, b"ab", b"x", b"12", b"Z"]),
    "P": pa.array([True, False, None, True, False, True, None, False]),
    "U": pa.array(
        [0, 1, -1, 10**15, -(10**15), None, 1709164799999999, 1711849800123456],
        pa.timestamp("us"),
    ),
    "V": pa.array(
        [5, -1, 0, 10**15 + 10**12, None, 3, 1706659200000000, 1711756800000000],
        pa.timestamp("us"),
    ),
    "C": pa.array([0, -1, 19782, 20_000, -719162, 5, None, 19813], pa.date32()),
    "E": pa.array([31, 0, 19753, 19_999, 1, None, 6, 19905], pa.date32()),
    "W": pa.array(
        ["2024-02-29", "2024-02-30", "1999-12-31", "", "x", None, "0001-01-01", "2024-1-1"]
    ),
}  # fmt: skip
ROWS = 8
CASES: dict[str, list[tuple[object, ...]]] = {
    "and_bits": [("I", "J"), ("Y", 3)],
    "or_bits": [("I", "J"), ("Y", 3)],
    "xor_bits": [("I", "J"), ("Y", 3)],
    "not_bits": [("I",), ("Y",)],
    "bit_count": [("I",), ("Y",), ("P",)],
    "bit_get": [("I", 63), ("Y", "K"), ("J", 40)],
    "bround": [("X",), ("X", 1), ("D",), ("D", 1), ("I", -1), ("Y", -1), ("D", -1)],
    "degrees": [("X",), ("I",)],
    "factorial": [("K",), ("J",)],
    "intdiv": [("I", "K"), ("J", 2), ("I", "J")],
    "pmod": [("I", "K"), ("J", 3), ("X", 2.5), ("D", "K"), ("I", -3), ("Y", "J")],
    "radians": [("X",), ("I",)],
    "rint": [("X",), ("D",)],
    "shiftleft": [("I", "K"), ("J", 33), ("Y", 3)],
    "shiftright": [("I", "K"), ("J", 33), ("Y", 3)],
    "shiftrightunsigned": [("I", "K"), ("J", 33), ("Y", 3)],
    "sign": [("X",), ("I",), ("D",)],
    "sqrt": [("X",), ("I",), ("D",)],
    "width_bucket": [("X", 0, 10, 5), ("K", 5, -2, "J"), ("D", "K", 10, 3)],
    "add_wrapping": [("I", "J"), ("I", 2**62)],
    "mul_wrapping": [("I", "J"), ("I", 2**62)],
    "sub_wrapping": [("I", "J"), (0, "I")],
    "java_integer": [("I", 8), ("X", 64), ("X", 8), ("D", 8), ("S", 32), ("W", 8)],
    "java17_bround": [("X",), ("X", 1), ("Z", -22), ("Z",), ("Z", 1)],
    "java17_text": [("X",), ("Z",), ("F",)],
    "instant_at": [("I",), ("J",)],
    "plus_days": [("U", dt.timedelta(days=2, hours=1)), ("V", dt.timedelta(hours=-30))],
    "isnan": [("X",), ("I",)],
    "nanvl": [("X", "K"), ("X", 1.5)],
    "ascii": [("S",)],
    "bit_length": [("S",), ("B",)],
    "chr": [("I",), ("J",)],
    "concat_ws": [("-", "S", "T"), ("T", "S", "I"), (",",), ("-", "S")],
    "contains": [("S", "b"), ("S", "T"), ("S", "")],
    "endswith": [("S", "b"), ("S", "T"), ("S", "")],
    "startswith": [("S", "a"), ("S", "T"), ("S", "")],
    "find_in_set": [("T", "a,,b"), ("", "S"), ("T", "S")],
    "initcap": [("S",)],
    "levenshtein": [("S", "T"), ("T", "ab")],
    "locate": [("b", "S"), ("T", "S"), ("b", "S", 2), ("T", "S", "K"), ("", "S", 3)],
    "lpad": [("S", 3), ("S", 7, "xy"), ("S", "K", "-"), ("S", 4, ""), ("S", 0, "x")],
    "rpad": [("S", 3), ("S", 7, "xy"), ("S", "K", "-"), ("S", 4, ""), ("S", 0, "x")],
    "ltrim": [("S",), ("S", "a1 "), ("S", "T"), ("S", "")],
    "rtrim": [("S",), ("S", "b1 "), ("S", "T"), ("S", "")],
    "trim": [("S",), ("S", "ab1 "), ("S", "T"), ("S", "")],
    "octet_length": [("S",), ("B",)],
    "overlay": [("S", "XY", 2), ("S", "T", "K"), ("S", "XYZ", 2, 1), ("S", "-", "K", "K")],
    "repeat": [("S", 2), ("S", "K")],
    "replace": [("S", "b", "--"), ("S", "T"), ("S", "", "x"), ("S", "b", "T")],
    "reverse": [("S",)],
    "right": [("S", 2), ("S", "K")],
    "split_part": [("S", ",", 2), ("S", ",", -1), ("S", "T", "K"), ("S", "", 1)],
    "substring_index": [("S", ",", 2), ("S", ",", -2), ("S", "T", "K")],
    "translate": [("S", "ab,", "1"), ("S", "T", "xy"), ("S", "aa", "12")],
    "base64": [("S",), ("B",)],
    "bin": [("I",), ("J",)],
    "crc32": [("S",), ("B",)],
    "hex": [("S",), ("B",), ("I",), ("J",)],
    "md5": [("S",), ("B",)],
    "sha1": [("S",), ("B",)],
    "sha2": [("S", 256), ("B", 0), ("S", 7), ("S", "J")],
    "unhex": [("S",), ("T",), ("W",)],
    "regexp_count": [("S", "[a-b]"), ("S", r"\w\d?")],
    "regexp_extract": [("S", r"([a-z])(\d*)", 2), ("S", "(x)?b"), ("S", "a.", 0)],
    "regexp_replace": [("S", r"([a-z])", "<$1>"), ("S", ",+", "")],
    "regexp_substr": [("S", r"[^ ]+"), ("S", r"\d{2,}?")],
    "rlike": [("S", "^a"), ("S", r"\d$"), ("S", "(a|b),"), ("S", r"^\S*$"), ("S", "")],
    **{
        name: [("C",), ("E",)]
        for name in (
            *("year", "quarter", "month", "day", "dayofyear", "dayofweek", "weekday", "dayname"),
            *("weekofyear", "yearofweek", "monthname", "last_day", "unix_date"),
        )
    },
    "add_months": [("E", 1), ("E", "K"), ("C", 13)],
    "date_add": [("C", 5), ("E", "J")],
    "date_from_unix_date": [("J",), ("I",)],
    "datediff": [("C", "E")],
    "make_date": [(2024, 2, "J"), ("K", 1, 1), (2023, "K", 29)],
    "next_day": [("C", "Mon"), ("E", "su"), ("E", "FRIDAY"), ("E", "x")],
    "trunc": [("E", u) for u in ("year", "MM", "Quarter", "week", "day")],
    "hour": [("U",), ("V",)],
    "minute": [("U",), ("V",)],
    "second": [("U",), ("V",)],
    "second_with_fraction": [("U",), ("V",)],
    "date_format": [("U", "yyyy-MM-dd HH:mm:ss.SSSSSS"), ("V", "E, d MMM h:mm a"), ("U", "'at' H")],
    "date_trunc": [
        (unit, "U")
        for unit in (
            *("year", "quarter", "MON", "week", "DAY", "hour", "minute", "second", "x"),
            *("millisecond", "microsecond"),
        )
    ],
    "make_timestamp": [(2024, 2, "K", 1, 2, 3), (2024, 2, 3, "J", 59, "D"), (1, 1, 1, 0, 0, 60)],
    "months_between": [("U", "V"), ("V", "U", False)],
    "parse_timestamp": [("W", "yyyy-MM-dd"), ("S", "HH")],
    "timestamp_micros": [("J",)],
    "timestamp_millis": [("J",)],
    "timestamp_seconds": [("J",)],
    "unix_millis": [("U",)],
    "unix_seconds": [("U",)],
}


def lookup(column: Column) -> pa.DataType:
    return COLUMNS[column.name].type


def argument(value: object) -> Expr:
    if isinstance(value, str) and value in COLUMNS:
        return Column("r", value)
    return Literal(value, pa.scalar(value).type)


def columns_in(columns: dict[str, pa.Array]) -> Callable[[Column], pa.Array]:
    return lambda column: columns[column.name]


def defined(expr: Expr, columns: dict[str, pa.Array]) -> list[Any]:
    """The expression by its definition, in the form of `python_values`."""
    kind = lambda column: columns[column.name].type  # noqa: E731
    function, type_ = compiled(expr, kind), type_of(expr, kind)
    listed = {name: python_values(column) for name, column in columns.items()}
    return [
        outward(
            function(
                {
                    Column("r", name): inward(values[row], columns[name].type)
                    for name, values in listed.items()
                }
            ),
            type_,
        )
        for row in range(len(next(iter(columns.values()))))
    ]


def test_every_function_has_a_definition_and_cases() -> None:
    known = {*scalar_functions.STRICT, *scalar_functions.LAZY}
    earlier = {
        *("abs", "ceil", "coalesce", "concat", "floor", "greatest", "least", "length", "lower"),
        *("java17_round", "round", "substring", "unix_micros", "upper"),
    }
    assert known | earlier == set(FUNCTIONS)
    assert set(CASES) == known


@pytest.mark.parametrize("op", sorted(CASES))
def test_oracle_functions(op: str) -> None:
    for values in CASES[op]:
        expr = Call(op, tuple(argument(v) for v in values))
        expected = defined(expr, COLUMNS)
        found = evaluate(expr, lambda column: COLUMNS[column.name], ROWS)
        assert python_values(found) == expected, str(expr)
        assert found.type == type_of(expr, lookup)
        # The same with columns in place of constants, where they may be columns.
        spread = {
            f"c{i}": pa.repeat(pa.scalar(v), ROWS)
            for i, v in enumerate(values)
            if not (isinstance(v, str) and v in COLUMNS)
        }
        columns = COLUMNS | spread
        wide = Call(
            op,
            tuple(
                Column("r", f"c{i}") if f"c{i}" in spread else argument(v)
                for i, v in enumerate(values)
            ),
        )
        try:
            again = evaluate(wide, columns_in(columns), ROWS)
        except TypeMismatch as mismatch:
            assert "literal" in str(mismatch) or "has the groups" in str(mismatch)
        else:
            assert python_values(again) == expected, str(wide)


@given(
    st.sampled_from(
        [
            *("locate", "split_part", "substring_index", "replace", "translate", "overlay"),
            *("lpad", "rpad", "right", "find_in_set", "startswith", "endswith", "contains"),
        ]
    ),
    st.text("ab,é😀", max_size=6),
    st.text("ab,é😀", max_size=3),
    st.integers(-4, 7),
)
def test_oracle_texts(op: str, text: str, part: str, number: int) -> None:
    by_number: dict[str, tuple[object, ...]] = {
        **dict.fromkeys(("split_part", "substring_index", "overlay"), (text, part, number)),
        "right": (text, number),
        **dict.fromkeys(("lpad", "rpad"), (text, number, part)),
        "locate": (part, text, number),
        "translate": (text, part, "x,y"),
    }
    values = by_number.get(op, (text, part))
    expr = Call(op, tuple(Literal(v, pa.scalar(v).type) for v in values))
    (expected,) = defined(expr, {"row": pa.array([1])})
    assert evaluate(expr, lambda column: pa.nulls(1), 1).to_pylist() == [expected]


def test_dates_that_python_has_not() -> None:
    """The calendar goes on where Python's ends."""
    far = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    year = evaluate(Call("year", (Column("r", "d"),)), lambda column: far, 2)
    assert year.to_pylist() == [5_881_580, -5_877_641]
    later = evaluate(
        Call("date_add", (Column("r", "d"), Literal(1, pa.int64()))), lambda column: far, 2
    )
    assert later.is_valid().to_pylist() == [False, True]
    assert dt.date.max.year == 9999
