"""Event-time columns that do, that do not, and that count since 1970."""

from __future__ import annotations

import datetime as dt

import pyarrow as pa
import pytest

from plait.errors import TimeColumnError
from plait.local.sources import EpochSource, check_time
from plait.local.sources.memory import TableSource

MILLIS = 1_704_103_200_250
STAMP = dt.datetime(2024, 1, 1, 10, 0, 0, 250_000)


def source(**columns: list[object]) -> TableSource:
    return TableSource(pa.table(columns), "trades.csv")


@pytest.mark.parametrize(("unit", "ticks"), [("ms", 1), ("us", 10**3), ("ns", 10**6)])
def test_integers_become_timestamps(unit: str, ticks: int) -> None:
    counted = EpochSource(source(k=[1, 2], ts=[MILLIS * ticks, None]), "trades", "ts", unit)
    (chunk,) = counted.scan()
    assert chunk.rows.schema == counted.schema
    first = chunk.rows.column("ts").cast(pa.timestamp("us")).to_pylist()
    assert first == [STAMP, None]
    (plain,) = counted.scan(["k"])
    assert plain.rows.schema.names == ["k"]


def test_a_unit_that_leads_beyond_all_calendars() -> None:
    with pytest.raises(TimeColumnError, match=r"after the year 9999 when counted in s; give an"):
        list(EpochSource(source(ts=[MILLIS]), "trades", "ts", "s").scan())


def test_only_integers_are_counted() -> None:
    with pytest.raises(TimeColumnError, match=r"trades\.ts is of type string: only integers"):
        EpochSource(source(ts=["x"]), "trades", "ts", "ms")
    with pytest.raises(TimeColumnError, match="no column 'at'"):
        EpochSource(source(ts=[1]), "trades", "at", "ms")


@pytest.mark.parametrize(
    ("columns", "column", "message"),
    [
        ({"k": [1], "ts": [STAMP]}, "at", "no column 'at' .* k, ts; .* --time trades=ts"),
        ({"k": [1]}, "kk", "trades.csv has k; did you mean 'k'"),
        ({"ts": [MILLIS]}, "ts", "int64, not a timestamp; if it counts ms .* trades=ts:ms"),
        ({"ts": [MILLIS // 1000]}, "ts", "if it counts s since 1970, write --time trades=ts:s"),
        ({"ts": ["noon"]}, "ts", "is of type string, not a timestamp; write times in ISO 8601"),
        ({"ts": [1.5], "at": [STAMP]}, "ts", "is of type double.*timestamp columns: at"),
    ],
)
def test_what_is_no_event_time(columns: dict[str, list[object]], column: str, message: str) -> None:
    with pytest.raises(TimeColumnError, match=message):
        check_time("trades", source(**columns), column)


def test_a_timestamp_will_do() -> None:
    check_time("trades", source(ts=[STAMP]), "ts")
