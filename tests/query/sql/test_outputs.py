"""Select lists and the names of result columns."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait import errors
from plait.query.query import Field, Stream
from plait.query.sql import parse_output, parse_select

TRADES = Stream(
    "trades",
    (Field("sym", pa.string()), Field("price", pa.float64()), Field("ts", pa.timestamp("us"))),
    "ts",
)
QUOTES = Stream(
    "quotes",
    (Field("sym", pa.string()), Field("bid", pa.float64()), Field("ts", pa.timestamp("us"))),
    "ts",
)
STREAMS = [TRADES, QUOTES]


def shown(*texts: str) -> list[str]:
    return [f"{o.expr} -> {o.name}" for o in parse_select(texts, STREAMS)]


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["trades.sym"], ["trades.sym -> sym"]),
        (["price"], ["trades.price -> price"]),
        (["trades.price * 2 AS p"], ["trades.price * 2 -> p"]),
        (["price * 2 `twice as much`"], ["trades.price * 2 -> twice as much"]),
        (["price * 2"], ["trades.price * 2 -> trades.price * 2"]),
        (["trades.*"],
         ["trades.sym -> sym", "trades.price -> price", "trades.ts -> ts"]),
        (["*"],
         ["trades.sym -> trades_sym", "trades.price -> price", "trades.ts -> trades_ts",
          "quotes.sym -> quotes_sym", "quotes.bid -> bid", "quotes.ts -> quotes_ts"]),
        (["trades.ts, quotes.ts"], ["trades.ts -> trades_ts", "quotes.ts -> quotes_ts"]),
        (["trades.ts", "quotes.ts"], ["trades.ts -> trades_ts", "quotes.ts -> quotes_ts"]),
        (["trades.ts", "quotes.ts AS q"], ["trades.ts -> ts", "quotes.ts -> q"]),
        (["bid AS sym", "trades.sym"], ["quotes.bid -> sym", "trades.sym -> trades_sym"]),
        (["PRICE"], ["trades.price -> price"]),
        (["Trades.SYM"], ["trades.sym -> sym"]),
    ],
)  # fmt: skip
def test_names(texts: list[str], expected: list[str]) -> None:
    assert shown(*texts) == expected


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("", errors.QueryError, "'' selects nothing"),
        ("trade.sym", errors.UnknownStream,
         "line 1, column 1: there is no stream 'trade'; did you mean 'trades'?"),
        ("price,\n  trades.prize", errors.UnknownColumn,
         "line 2, column 3: stream 'trades' has no column 'prize'; did you mean 'price'?"),
        ("sym", errors.AmbiguousColumn, "line 1, column 1: column 'sym' is in several streams"),
        ("nothing", errors.UnknownColumn, "line 1, column 1: no stream has a column 'nothing'"),
        ("t.*", errors.UnknownStream, "line 1, column 1: there is no stream 't'"),
        ("1, sym + 1", errors.AmbiguousColumn, "line 1, column 4"),
        ("1, trades.sym + 1", errors.TypeMismatch,
         "line 1, column 4: trades.sym + 1 has no meaning"),
        ("* EXCEPT (price)", errors.UnsupportedSql, "line 1, column 1: * with EXCEPT is not"),
        ("trades.* AS x", errors.UnsupportedSql, "is not"),
        ("price FROM trades", errors.UnsupportedSql,
         "line 1, column 7: FROM in a select list is not supported; list columns"),
        ("price; price", errors.UnsupportedSql, "line 1, column 8: a second statement"),
        ("DISTINCT price", errors.UnsupportedSql, "line 1, column 1: DISTINCT in a select list"),
        ("price +", errors.UnsupportedSql, "syntax error"),
        ("'open", errors.UnsupportedSql, "line 1, column 1: syntax error: a ' without its end"),
    ],
)  # fmt: skip
def test_bad_select_lists(text: str, type_: type[errors.PlaitError], message: str) -> None:
    with pytest.raises(type_) as caught:
        parse_output(text, STREAMS)
    assert message in str(caught.value)
