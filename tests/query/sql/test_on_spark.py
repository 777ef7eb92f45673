"""Numbers and times as Spark computes them, on Spark only."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from plait import errors
from plait.query.dialect import PLAIN, Dialect
from plait.query.evaluate import evaluate
from plait.query.query import Field, Stream
from plait.query.sql import parse_condition, parse_output

INSTANT = pa.timestamp("us", "UTC")
COLUMNS: dict[str, pa.Array] = {
    "i": pa.array([2**31 - 1], pa.int32()),
    "l": pa.array([2**63 - 1]),
    "f": pa.array([0.1], pa.float32()),
    "x": pa.array([float("nan")]),
    "s": pa.array(["7.9"]),
    "bin": pa.array([b"\xff"]),
    "ts": pa.array(["2024-03-30 11:00:00"]).cast(pa.timestamp("us")).cast(INSTANT),
    "n": pa.array(["2024-03-30 11:00:00"]).cast(pa.timestamp("us")),
}
T = Stream("t", tuple(Field(name, column.type) for name, column in COLUMNS.items()), "ts")
U = Stream("u", (Field("ts", INSTANT), Field("k", pa.int64())), "ts")
BERLIN = Dialect("Europe/Berlin")
LENIENT = Dialect("Europe/Berlin", ansi=False)


def value(text: str, dialect: Dialect) -> object:
    (output,) = parse_output(f"{text} AS x", [T], dialect)
    (found,) = evaluate(output.expr, lambda column: COLUMNS[column.name], 1).to_pylist()
    return found


@pytest.mark.parametrize(
    ("text", "plain", "ansi", "lenient"),
    [
        ("i + 1", 2**31, None, -(2**31)),
        ("i + 1L", 2**31, 2**31, 2**31),
        ("try_add(i, 1)", 2**31, None, None),
        ("l + 1", None, None, -(2**63)),
        ("l * 2", None, None, -2),
        ("-(-l - 1)", None, None, -(2**63)),
        ("abs(-l - 1)", None, None, -(2**63)),
        ("(-l - 1) DIV -1", None, None, -(2**63)),
        ("round(i, -1)", 2**31 + 2, None, -(2**31) + 2),
        ("CAST(l AS INT)", None, None, -1),
        ("TRY_CAST(l AS INT)", None, None, None),
        ("CAST(s AS INT)", None, None, 7),
        ("CAST(x AS INT)", None, None, 0),
        ("ceil(x)", None, 0, 0),
        ("f * f", 0.1 * 0.1, None, None),
    ],
)
def test_numbers(text: str, plain: object, ansi: object, lenient: object) -> None:
    if text == "f * f":
        for dialect in (BERLIN, LENIENT):
            (output,) = parse_output("f * f AS x", [T], dialect)
            product = evaluate(output.expr, lambda column: COLUMNS[column.name], 1)
            assert product.type == pa.float32()
        return
    assert [value(text, d) for d in (PLAIN, BERLIN, LENIENT)] == [plain, ansi, lenient]


def test_days_are_those_of_the_calendar() -> None:
    """From noon to noon 23 hours passed that day in Berlin."""
    later = "CAST(ts + INTERVAL 1 DAY AS STRING)"
    assert value(later, BERLIN) == "2024-03-31 12:00:00"
    assert value(later, Dialect("UTC")) == "2024-03-31 11:00:00"
    apart = "(ts + INTERVAL 23 HOURS) - ts = INTERVAL 24 HOURS"
    assert value(apart, BERLIN) is True
    assert value(apart, Dialect("UTC")) is False


def test_windows_count_the_time_that_passes() -> None:
    kept, bounds = parse_condition("u.ts <= t.ts + INTERVAL 2 DAYS", [T, U], BERLIN)
    assert [str(k) for k in kept] == []
    assert [b.micros for b in bounds] == [2 * 86_400_000_000]


def test_names_of_results_are_as_written() -> None:
    names = [output.name for output in parse_output("i + 1, -f, try_cast(s AS INT)", [T], LENIENT)]
    assert names == ["t.i + 1", "-t.f", "CAST(t.s AS int32)"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("CAST(bin AS STRING)", "a cast of BINARY to STRING"),
        ("concat(bin, s)", "a BINARY among strings"),
        ("CAST(n AS BIGINT)", "a cast between TIMESTAMP_NTZ and a number"),
        ("CAST(l AS TIMESTAMP_NTZ)", "a cast between TIMESTAMP_NTZ and a number"),
    ],
)
def test_what_would_differ_is_refused(text: str, name: str) -> None:
    with pytest.raises(errors.UnsupportedSql, match=name):
        value(text, BERLIN)


def test_constants_with_a_type_are_constants() -> None:
    assert value("l IN (1L, 9223372036854775807L)", BERLIN) is True


@pytest.mark.parametrize(
    ("text", "older", "newer"),
    [
        ("CAST(2e23 AS STRING)", "1.9999999999999998E23", "2.0E23"),
        ("string(2e23)", "1.9999999999999998E23", "2.0E23"),
        ("concat('=', 2e23)", "=1.9999999999999998E23", "=2.0E23"),
        ("concat_ws('-', 2e23, 1)", "1.9999999999999998E23-1", "2.0E23-1"),
        ("CAST(2e23 AS DECIMAL(38, 0))", Decimal("199999999999999980000000"), Decimal(2 * 10**23)),
        ("round(5e22, -23)", 0.0, 1e23),
        ("bround(5e22, -22)", 5e22, 5e22),
        ("CAST(f AS STRING)", "0.1", "0.1"),
        ("CAST(f AS DECIMAL(20, 18))", *[Decimal("0.100000001490116120")] * 2),
        ("CAST(x AS STRING)", "NaN", "NaN"),
        ("CAST(x AS DECIMAL(20, 18))", None, None),
    ],
)
def test_the_digits_are_those_of_the_sessions_java(text: str, older: object, newer: object) -> None:
    for ansi in (True, False):
        assert value(text, Dialect("UTC", ansi=ansi, shortest=False)) == older
        assert value(text, Dialect("UTC", ansi=ansi)) == newer
    assert value(text, PLAIN) == newer
