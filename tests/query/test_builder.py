"""The fluent builder, and that SQL asks the same."""

from __future__ import annotations

import datetime as dt
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest

import plait
from plait import errors
from plait.query.bounds import show
from plait.query.builder import JoinBuilder, schema_of

TRADES = pa.schema([("sym", pa.string()), ("price", pa.float64()), ("ts", pa.timestamp("us"))])
QUOTES = pa.schema([("sym", pa.string()), ("bid", pa.float64()), ("ts", pa.timestamp("ns"))])
NEWS = pa.schema([("sym", pa.string()), ("ts", pa.timestamp("ms")), ("made", pa.timestamp("us"))])
TABLES = {"trades": TRADES, "quotes": QUOTES, "news": NEWS}


def two() -> JoinBuilder:
    return plait.join(trades=TRADES, quotes=QUOTES)


def joined() -> JoinBuilder:
    return two().on("trades.sym = quotes.sym")


def test_the_join_of_the_readme() -> None:
    query = (
        plait.join(**TABLES)
        .time(trades="ts", quotes="ts", news="ts")
        .watermark("2 seconds")
        .on("trades.sym = quotes.sym")
        .on("quotes.sym = news.sym")
        .within("10 seconds")
        .select("trades.sym", "trades.price", "quotes.bid", "news.made")
        .query
    )
    assert query.names == ("trades", "quotes", "news")
    assert query.bounds.uniform == 10_000_000
    assert [s.delay for s in query.streams] == [2_000_000] * 3
    assert query.schema.names == ["sym", "price", "bid", "made"]


EQUAL: list[tuple[JoinBuilder, str, dict[str, Any]]] = [
    (
        joined().within("5 s").select("trades.sym"),
        "SELECT trades.sym FROM trades JOIN quotes USING (sym) WITHIN 5 SECONDS",
        {},
    ),
    (
        joined().within("5 s").select("*"),
        "SELECT * FROM trades, quotes WHERE quotes.sym = trades.sym WITHIN 5 SECONDS",
        {},
    ),
    (
        two()
        .on("trades.sym = quotes.sym", "quotes.ts BETWEEN trades.ts AND trades.ts + INTERVAL 1 DAY")
        .where("price > bid * 1.5 AND trades.sym LIKE 'A%'")
        .watermark(trades="1 s")
        .select("price - bid AS spread", "trades.ts, quotes.ts"),
        """SELECT price - bid AS spread, trades.ts, quotes.ts
           FROM trades JOIN quotes ON trades.sym = quotes.sym
           WHERE trades.sym LIKE 'A%' AND quotes.ts <= trades.ts + INTERVAL 24 HOURS
             AND quotes.ts >= trades.ts AND price > bid * 1.5""",
        {"watermark": {"trades": "1 s"}},
    ),
    (
        plait.join(a=NEWS, b=NEWS)
        .on("a.sym = b.sym AND b.made - a.made BETWEEN INTERVAL 0 SECONDS AND INTERVAL 5 SECONDS")
        .within("4 s")
        .select("a.*", "b.made AS later"),
        """SELECT a.*, b.made AS later FROM news a JOIN news b
           ON a.sym = b.sym AND b.made >= a.made AND b.made <= a.made + INTERVAL 5 SECONDS
           WITHIN 4 SECONDS""",
        {},
    ),
    (
        plait.join(trades=TRADES, news=NEWS)
        .time(news="made")
        .on("trades.sym = news.sym")
        .within("1 min")
        .select("trades.sym AS s"),
        "SELECT trades.sym s FROM trades JOIN news ON trades.sym = news.sym WITHIN 1 MINUTE",
        {"time": {"news": "made"}},
    ),
]


@pytest.mark.parametrize(("builder", "text", "settings"), EQUAL)
def test_both_front_ends_give_the_same_value(
    builder: JoinBuilder, text: str, settings: dict[str, Any]
) -> None:
    asked = plait.sql(TABLES, text, **settings)
    assert builder.query == asked.query == builder.build() == asked.build()
    assert list(asked.sources) == list(asked.query.names)


def test_a_builder_is_a_value() -> None:
    base = joined()
    narrow, wide = base.within("1 s"), base.within("1 hour")
    assert narrow.query.bounds.uniform == 1_000_000
    assert wide.query.bounds.uniform == 3_600_000_000
    with pytest.raises(errors.UnboundedPair):
        base.build()
    assert base.within("1 s").query == narrow.query
    later = narrow.time(trades="ts").watermark("1 s").watermark(quotes="3 s")
    assert narrow.query.streams[0].delay == 0
    assert [s.delay for s in later.query.streams] == [1_000_000, 3_000_000]


def test_idle_timeouts() -> None:
    base = joined().within("1 s")
    assert [s.idle for s in base.query.streams] == [None, None]
    assert [s.idle for s in base.idle("2 s").query.streams] == [2_000_000, 2_000_000]
    mixed = base.idle("2 s").idle(quotes="1 minute")
    assert [s.idle for s in mixed.query.streams] == [2_000_000, 60_000_000]
    text = "SELECT t.price FROM trades t JOIN quotes ON t.sym = quotes.sym WITHIN 1 SECOND"
    for idle, expected in (
        (None, [None, None]),
        ("2 s", [2_000_000, 2_000_000]),
        ({"t": "2 s"}, [2_000_000, None]),
        ({"trades": "2 s", "quotes": "3 s"}, [2_000_000, 3_000_000]),
    ):
        found = plait.sql(TABLES, text, idle=idle).query.streams
        assert [s.idle for s in found] == expected
    with pytest.raises(errors.UnknownStream, match="there is no stream 'trade'"):
        plait.sql(TABLES, text, idle={"trade": "2 s"})


def test_without_select_all_columns_are_there() -> None:
    names = joined().within("1 s").query.schema.names
    assert names[:2] == ["trades_sym", "trades_price"]
    assert len(names) == 6


def test_windows_by_stream() -> None:
    query = joined().within(trades="5 s", quotes=dt.timedelta(seconds=10)).query
    assert show(query.names, query.bounds) == "trades - 10 s <= quotes <= trades + 5 s"
    both = joined().within("7 s").within(trades="5 s", quotes="10 s").query
    assert show(both.names, both.bounds) == "trades - 7 s <= quotes <= trades + 5 s"


def test_selects_add_up_and_share_names() -> None:
    query = joined().within("1 s").select("trades.ts").select("quotes.ts").query
    assert query.schema.names == ["trades_ts", "quotes_ts"]


def test_the_event_time_is_inferred_as_in_sql() -> None:
    builder = plait.join(trades=TRADES, news=NEWS).on("trades.sym = news.sym")
    with pytest.raises(errors.TimeColumnError, match="which column of 'news'"):
        builder.within("1 s").build()
    bounded = builder.on("news.made BETWEEN trades.ts AND trades.ts + INTERVAL 1 SECOND")
    assert bounded.query.streams[1].time == "made"


@pytest.mark.parametrize(
    "source",
    [
        TRADES,
        TRADES.empty_table(),
        pa.RecordBatch.from_pylist([], TRADES),
        pa.RecordBatchReader.from_batches(TRADES, []),
    ],
)
def test_sources(source: Any) -> None:
    assert schema_of(source) == TRADES
    builder = plait.join(trades=source, quotes=QUOTES)
    assert builder.sources["trades"] is source
    assert builder.on("trades.sym = quotes.sym").within("1 s").sources["trades"] is source


def test_what_is_no_source() -> None:
    with pytest.raises(errors.SourceError) as caught:
        plait.join(trades=[1, 2], quotes=QUOTES)
    assert str(caught.value) == (
        "a list is not a source of rows; give an Arrow schema, table, batch or reader"
    )
    with pytest.raises(errors.QueryError, match="at least two streams, not 1"):
        plait.join(trades=TRADES)


@pytest.mark.parametrize(
    ("call", "type_", "message"),
    [
        (lambda b: b.time(trade="ts"), errors.UnknownStream,
         "there is no stream 'trade'; did you mean 'trades'? known: trades, quotes"),
        (lambda b: b.time(trades="t"), errors.TimeColumnError,
         "stream 'trades' has no column 't' to take the event time from; timestamp columns: ts"),
        (lambda b: b.time(trades="sym"), errors.TimeColumnError,
         "the event-time column trades.sym is of type string, not a timestamp"),
        (lambda b: b.watermark(trade="1 s"), errors.UnknownStream, "there is no stream 'trade'"),
        (lambda b: b.watermark("-1 s"), errors.WindowError, "the watermark delay is '-1 s'"),
        (lambda b: b.watermark(trades="soon"), errors.WindowError,
         "the watermark delay of 'trades' 'soon' is not a length of time"),
        (lambda b: b.idle(trade="1 s"), errors.UnknownStream, "there is no stream 'trade'"),
        (lambda b: b.idle("0 s"), errors.WindowError, "the idle timeout is '0 s'"),
        (lambda b: b.idle(quotes="soon"), errors.WindowError,
         "the idle timeout of 'quotes' 'soon' is not a length of time"),
        (lambda b: b.on("trades.sym = quote.sym"), errors.UnknownStream,
         "line 1, column 14: there is no stream 'quote'; did you mean 'quotes'?"),
        (lambda b: b.on("trades.sim = quotes.sym"), errors.UnknownColumn,
         "line 1, column 1: stream 'trades' has no column 'sim'; did you mean 'sym'?"),
        (lambda b: b.where("sym = 'A'"), errors.AmbiguousColumn,
         "line 1, column 1: column 'sym' is in several streams: trades, quotes"),
        (lambda b: b.where("trades.sym > 5"), errors.TypeMismatch,
         "trades.sym > 5 has no meaning: trades.sym is string and 5 is int64"),
        (lambda b: b.on("trades.sym = quotes.bid"), errors.TypeMismatch,
         "trades.sym is string and quotes.bid is double: they can never be equal"),
        (lambda b: b.on("sum(price) > 1"), errors.UnsupportedSql,
         "line 1, column 1: the aggregate function SUM is not supported"),
        (lambda b: b.within("0 seconds"), errors.WindowError,
         "the window is '0 seconds': a window must be longer than 0"),
        (lambda b: b.within("-5 s"), errors.WindowError, "the window is '-5 s': a window must be"),
        (lambda b: b.within("soon"), errors.WindowError,
         "the window 'soon' is not a length of time"),
        (lambda b: b.within(trades="5 s"), errors.WindowError,
         "within names no window for quotes; name every stream"),
        (lambda b: b.within(trades="5 s", quotes="0 s"), errors.WindowError,
         "the window of 'quotes' is '0 s': a window must be longer than 0"),
        (lambda b: b.within(trade="5 s", quotes="1 s"), errors.UnknownStream, "no stream 'trade'"),
        (lambda b: b.within(), errors.WindowError, "either one width, or one for each stream"),
        (lambda b: b.within("1 s", trades="1 s"), errors.WindowError, "either one width"),
        (lambda b: b.select("trades.prize"), errors.UnknownColumn,
         "line 1, column 1: stream 'trades' has no column 'prize'; did you mean 'price'?"),
        (lambda b: b.select(), errors.QueryError, "select names no column"),
        (lambda b: b.select("price AS x", "bid AS x").on("trades.sym = quotes.sym").within("1 s")
         .build(), errors.DuplicateName, "two result columns are called 'x'"),
        (lambda b: b.within("1 s").build(), errors.DisconnectedJoin,
         "no key joins trades with quotes"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_refused_at_the_call(
    call: Any, type_: type[errors.PlaitError], message: str
) -> None:
    with pytest.raises(type_) as caught:
        call(two())
    assert message in str(caught.value)


@pytest.mark.slow
def test_importing_plait_is_cheap() -> None:
    code = (
        "import sys, plait; assert plait.__version__; plait.errors.PlaitError; "
        "heavy = {'pyarrow', 'numpy', 'sqlglot', 'numba'} & set(sys.modules); "
        "assert not heavy, heavy; plait.join; "
        "assert 'sqlglot' not in sys.modules; assert 'join' in dir(plait)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    with pytest.raises(AttributeError, match="no attribute 'joyn'"):
        plait.joyn  # noqa: B018
