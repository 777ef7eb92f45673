"""Whole queries in SQL: what is understood, and what is refused by name and place."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait import errors
from plait.query.bounds import show
from plait.query.query import Query
from plait.query.sql import parse_query

CATALOG = {
    "trades": pa.schema(
        [("sym", pa.string()), ("price", pa.float64()), ("ts", pa.timestamp("us"))]
    ),
    "quotes": pa.schema([("sym", pa.string()), ("bid", pa.float64()), ("ts", pa.timestamp("ns"))]),
    "news": pa.schema(
        [("sym", pa.string()), ("ts", pa.timestamp("ms")), ("made", pa.timestamp("us"))]
    ),
    "names": pa.schema([("sym", pa.string()), ("name", pa.string())]),
    "db.deep": pa.schema([("sym", pa.string()), ("ts", pa.timestamp("us"))]),
}
FROM = "FROM trades t JOIN quotes q ON t.sym = q.sym"
NEAR = "q.ts BETWEEN t.ts - INTERVAL 10 SECONDS AND t.ts + INTERVAL 5 SECONDS"


def ask(text: str, **settings: Any) -> Query:
    return parse_query(text, CATALOG, **settings)


def bounds(query: Query) -> str:
    return show(query.names, query.bounds)


def test_the_query_of_the_readme() -> None:
    query = ask(
        """
        SELECT t.sym, t.price, q.bid, n.made
        FROM trades t
        JOIN quotes q ON t.sym = q.sym
             AND q.ts BETWEEN t.ts - INTERVAL 10 SECONDS AND t.ts + INTERVAL 10 SECONDS
        JOIN news n ON t.sym = n.sym
             AND n.made BETWEEN t.ts - INTERVAL 10 SECONDS AND t.ts
        """
    )
    assert query.names == ("t", "q", "n")
    assert [str(e) for e in query.equalities] == ["t.sym = q.sym", "t.sym = n.sym"]
    assert [str(r) for r in query.residuals] == [
        "q.ts <= t.ts + INTERVAL '10 s'",
        "t.ts <= q.ts + INTERVAL '10 s'",
    ], "quotes have nanoseconds"
    assert [s.time for s in query.streams] == ["ts", "ts", "made"]
    assert query.schema.names == ["sym", "price", "bid", "made"]
    assert bounds(query) == (
        "t - 10 s <= q <= t + 10 s, t - 10 s <= n <= t + 0 s, q - 20 s <= n <= q + 10 s"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT t.sym {FROM} WITHIN 90 SECONDS",
        f"SELECT t.sym {FROM} WITHIN INTERVAL 90 SECONDS;",
        f"SELECT t.sym {FROM} WITHIN 1 MINUTE 30 SECONDS",
        f"SELECT t.sym {FROM} within 90000 milliseconds",
        f"SELECT t.sym {FROM} WITHIN 90s -- a comment",
        f"SELECT t.sym {FROM} WITHIN INTERVAL '90' SECOND /* another */ ;",
        f"SELECT t.sym {FROM} WITHIN '90 seconds'",
        "SELECT t.sym FROM trades t, quotes q WHERE t.sym = q.sym WITHIN 90 SECONDS",
        "SELECT t.sym FROM trades AS t INNER JOIN quotes AS q ON (q.sym = t.sym) WITHIN 90 SECONDS",
        "SELECT t.sym FROM trades t JOIN quotes q USING (sym) WITHIN 90 SECONDS",
        "SELECT sym FROM trades t JOIN quotes q USING (sym) WITHIN 90 SECONDS",
        "SELECT ALL T.SYM FROM TRADES t JOIN Quotes q WHERE q.SYM = t.sym WITHIN 90 SECONDS",
        f"SELECT t.sym {FROM} WHERE 1 = 1 WITHIN 90 SECONDS",
    ],
)
def test_one_question_in_many_words(text: str) -> None:
    assert ask(text) == ask(f"SELECT t.sym {FROM} WITHIN 90 SECONDS")
    assert bounds(ask(text)) == "all within 90 s"


def test_within_and_intervals_both_hold() -> None:
    assert bounds(ask(f"SELECT * {FROM} AND {NEAR} WITHIN 7 SECONDS")) == "t - 7 s <= q <= t + 5 s"


def test_within_may_also_be_a_name() -> None:
    catalog = {
        name: pa.schema([("within", pa.int64()), ("ts", pa.timestamp("us"))]) for name in "ab"
    }
    query = parse_query(
        "SELECT a.within FROM a JOIN b ON a.within = b.within WITHIN 5 SECONDS", catalog
    )
    assert [str(e) for e in query.equalities] == ["a.within = b.within"]


def test_a_table_joined_with_itself() -> None:
    query = ask(
        "SELECT a.ts, b.ts FROM trades a JOIN trades b "
        "ON a.sym = b.sym AND b.ts > a.ts AND b.ts < a.ts + INTERVAL 1 SECOND"
    )
    assert query.names == ("a", "b")
    assert bounds(query) == "a + 1 us <= b <= a + 999999 us"
    assert query.schema.names == ["a_ts", "b_ts"]


def test_using_shows_its_column_once() -> None:
    query = ask("SELECT * FROM trades JOIN quotes USING (sym) WITHIN 1 SECOND")
    assert query.schema.names == ["sym", "price", "trades_ts", "bid", "quotes_ts"]
    three = ask(
        "SELECT sym FROM trades t JOIN quotes q USING (sym) JOIN `db`.deep USING (sym) WITHIN 1 s"
    )
    assert [str(e) for e in three.equalities] == ["t.sym = q.sym", "t.sym = deep.sym"]


def test_settings_by_stream_or_by_table() -> None:
    text = "SELECT a.sym FROM news a JOIN news b ON a.sym = b.sym WITHIN 1 SECOND"
    query = ask(text, time={"news": "made", "b": "ts"}, watermark={"news": "2 s", "a": "1 s"})
    assert [(s.time, s.delay) for s in query.streams] == [("made", 1_000_000), ("ts", 2_000_000)]
    assert [s.delay for s in ask(text, time={"news": "ts"}, watermark="3 s").streams] == [
        3_000_000,
        3_000_000,
    ]


@pytest.mark.parametrize(
    ("text", "line", "column", "name"),
    [
        ("SELECT * FROM trades t LEFT JOIN quotes q ON t.sym = q.sym", 1, 24, "LEFT JOIN"),
        ("SELECT * FROM trades t\n LEFT OUTER JOIN quotes q ON 1=1", 2, 2, "LEFT OUTER JOIN"),
        ("SELECT * FROM trades RIGHT JOIN quotes USING (sym)", 1, 22, "RIGHT JOIN"),
        ("SELECT * FROM trades FULL OUTER JOIN quotes USING (sym)", 1, 22, "FULL OUTER JOIN"),
        ("SELECT * FROM trades LEFT SEMI JOIN quotes USING (sym)", 1, 22, "LEFT SEMI JOIN"),
        ("SELECT * FROM trades SEMI JOIN quotes USING (sym)", 1, 22, "SEMI JOIN"),
        ("SELECT * FROM trades LEFT ANTI JOIN quotes USING (sym)", 1, 22, "LEFT ANTI JOIN"),
        ("SELECT * FROM trades CROSS JOIN quotes", 1, 22, "CROSS JOIN"),
        ("SELECT * FROM trades NATURAL JOIN quotes", 1, 22, "NATURAL JOIN"),
        (f"SELECT sym {FROM}\nGROUP BY sym", 2, 1, "GROUP BY"),
        (f"SELECT sym {FROM} HAVING 1 = 1", 1, 57, "HAVING"),
        (f"SELECT sym {FROM} ORDER BY 1", 1, 57, "ORDER BY"),
        (f"SELECT sym {FROM} SORT BY 1", 1, 57, "SORT BY"),
        (f"SELECT sym {FROM} CLUSTER BY 1", 1, 57, "CLUSTER BY"),
        (f"SELECT sym {FROM} DISTRIBUTE BY 1", 1, 57, "DISTRIBUTE BY"),
        (f"SELECT sym {FROM} LIMIT 5", 1, 57, "LIMIT"),
        (f"SELECT sym {FROM} OFFSET 5", 1, 57, "OFFSET"),
        (f"SELECT sym {FROM} QUALIFY 1", 1, 57, "QUALIFY"),
        (f"SELECT sym {FROM} WINDOW w AS (ORDER BY x)", 1, 57, "WINDOW"),
        (f"SELECT DISTINCT sym {FROM}", 1, 8, "DISTINCT"),
        (f"SELECT /*+ BROADCAST(q) */ sym {FROM}", 1, 8, "a hint (/*+ ... */)"),
        (f"SELECT * {FROM} LATERAL VIEW explode(x) e AS y", 1, 55, "LATERAL VIEW"),
        ("SELECT * FROM trades t, LATERAL (SELECT 1) x", 1, 25, "LATERAL"),
        ("SELECT * FROM trades JOIN LATERAL (SELECT 1) x", 1, 27, "LATERAL"),
        ("SELECT * FROM (SELECT 1) x JOIN quotes", 1, 15, "a subquery"),
        ("SELECT * FROM trades JOIN (SELECT 1 AS a) x", 1, 27, "a subquery"),
        ("SELECT * FROM trades JOIN (quotes JOIN news USING (sym)) USING (sym)", 1, 27,
         "a join in parentheses"),
        (f"SELECT * {FROM} WHERE t.sym IN (SELECT sym FROM news)", 1, 61, "a subquery"),
        (f"SELECT * {FROM} WHERE EXISTS (SELECT 1)", 1, 61, "EXISTS"),
        (f"SELECT (SELECT 1) {FROM}", 1, 8, "a subquery"),
        ("WITH x AS (SELECT 1) SELECT * FROM x", 1, 1, "WITH (a common table expression)"),
        ("SELECT 1 FROM trades UNION ALL SELECT 2", 1, 22, "UNION"),
        ("SELECT 1 FROM trades EXCEPT SELECT 2", 1, 22, "EXCEPT"),
        ("SELECT 1 FROM trades INTERSECT SELECT 2", 1, 22, "INTERSECT"),
        (f"SELECT row_number() OVER (ORDER BY t.ts) {FROM}", 1, 8, "a window function (OVER)"),
        (f"SELECT sum(price) {FROM}", 1, 8, "the aggregate function SUM"),
        (f"SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY 1) {FROM}", 1, 8, "WITHIN GROUP"),
        (f"SELECT foo(price) {FROM}", 1, 8, "the function FOO"),
        (f"SELECT ? {FROM}", 1, 8, "a parameter"),
        (f"SELECT price {FROM} AND t.price > :least", 1, 73, "a parameter"),
        ("SELECT 1; SELECT 2", 1, 11, "a second statement"),
        ("INSERT INTO x SELECT 1", 1, 1, "INSERT"),
        ("CREATE TABLE x (a INT)", 1, 1, "CREATE"),
        ("DROP TABLE x", 1, 1, "DROP"),
        ("SHOW TABLES", 1, 1, "SHOW"),
        ("(SELECT 1)", 1, 1, "a query in parentheses"),
        ("SELECT 1", 1, 1, "SELECT without FROM"),
        ("SELECT FROM trades", 1, 1, "SELECT without columns"),
        ("SELECT * FROM range(10) JOIN trades", 1, 15, "a table function"),
        ("SELECT * FROM VALUES (1) AS v(a) JOIN trades", 1, 15, "VALUES"),
        ("SELECT * FROM trades TABLESAMPLE (5 ROWS) JOIN quotes USING (sym)", 1, 22,
         "TABLESAMPLE"),
        ("SELECT * FROM trades AS t(a, b) JOIN quotes USING (sym)", 1, 25,
         "an alias with column names"),
        ("SELECT * FROM trades PIVOT (sum(x) FOR y IN (1)) JOIN quotes", 1, 22, "PIVOT"),
        (f"SELECT t.* EXCEPT (sym) {FROM}", 1, 10, "* with EXCEPT"),
        (f"SELECT TRANSFORM(t.sym) USING 'x' {FROM}", 1, 8, "TRANSFORM"),
        (f"SELECT * {FROM} WITHIN 5 SECONDS WHERE price > 1", 1, 72, "WHERE after WITHIN"),
        (f"SELECT * {FROM} WITHIN 5 SECONDS LIMIT 1", 1, 72, "LIMIT after WITHIN"),
    ],
)  # fmt: skip
def test_refused_by_name_and_place(text: str, line: int, column: int, name: str) -> None:
    with pytest.raises(errors.UnsupportedSql) as caught:
        ask(text)
    assert f"line {line}, column {column}: {name} is not supported" in str(caught.value)
    assert (caught.value.line, caught.value.column) == (line, column)


@pytest.mark.parametrize(
    ("text", "type_", "message"),
    [
        ("", errors.UnsupportedSql, "line 1, column 1: the query is empty; write SELECT"),
        ("SELECT (price FROM trades", errors.UnsupportedSql,
         "line 1, column 15: syntax error near 'FROM': Expecting )"),
        ("SELECT 'x FROM trades", errors.UnsupportedSql,
         "line 1, column 8: syntax error: a ' without its end"),
        ("SELECT * FROM", errors.UnsupportedSql, "syntax error"),
        ("SELECT * FROM trades", errors.QueryError, "a join needs at least two streams"),
        ("SELECT * FROM tradez JOIN quotes USING (sym)", errors.UnknownStream,
         "line 1, column 15: there is no table 'tradez'; did you mean 'trades'? known: trades,"),
        (f"SELECT trades.sym {FROM}", errors.UnknownStream,
         "line 1, column 8: there is no stream 'trades'; known: t, q"),
        (f"SELECT t.prize {FROM}", errors.UnknownColumn,
         "line 1, column 8: stream 't' has no column 'prize'; did you mean 'price'?"),
        (f"SELECT\n  sym {FROM} AND {NEAR}", errors.AmbiguousColumn,
         "line 2, column 3: column 'sym' is in several streams: t, q; write t.sym"),
        ("SELECT * FROM trades JOIN quotes USING (bid)", errors.UnknownColumn,
         "line 1, column 41: no table before JOIN has a column 'bid'"),
        ("SELECT * FROM trades JOIN quotes USING (price)", errors.UnknownColumn,
         "line 1, column 41: stream 'quotes' has no column 'price'"),
        ("SELECT * FROM trades JOIN trades USING (sym)", errors.DuplicateName,
         "line 1, column 27: two tables are called 'trades'; give one an alias"),
        (f"SELECT price AS x, bid AS x {FROM} AND {NEAR}", errors.DuplicateName,
         "two result columns are called 'x'"),
        (f"SELECT t.sym + 1 {FROM} AND {NEAR}", errors.TypeMismatch,
         "line 1, column 8: t.sym + 1 has no meaning: t.sym is string and 1 is int64"),
        (f"SELECT * {FROM} AND {NEAR} AND t.sym > price", errors.TypeMismatch,
         "t.sym > t.price has no meaning: t.sym is string and t.price is double"),
        ("SELECT * FROM trades t JOIN quotes q ON t.price = q.sym WITHIN 1 s",
         errors.TypeMismatch,
         "line 1, column 41: t.price is double and q.sym is string: they can never be equal"),
        (f"SELECT * {FROM}", errors.UnboundedPair, "bound the pair (t, q)"),
        (f"SELECT * {FROM} AND q.ts >= t.ts", errors.UnboundedPair, "bound the pair (t, q)"),
        ("SELECT * FROM trades t JOIN quotes q ON t.price < q.bid WITHIN 1 s",
         errors.DisconnectedJoin, "no key joins t with q: t.price < q.bid is no equality of"),
        (f"SELECT * {FROM} AND q.ts BETWEEN t.ts AND t.ts - INTERVAL 5 SECONDS",
         errors.WindowError, "line 1, column 59: the interval q.ts >= t.ts AND q.ts <= t.ts - "
         "INTERVAL '5 s' is empty"),
        (f"SELECT * {FROM} AND q.ts > t.ts AND q.ts < t.ts", errors.WindowError,
         "the time conditions on t and q contradict each other"),
        (f"SELECT * {FROM} WITHIN 0 SECONDS", errors.WindowError,
         "line 1, column 55: WITHIN is '0 SECONDS': a window must be longer than 0"),
        (f"SELECT * {FROM} WITHIN -5 SECONDS", errors.WindowError,
         "WITHIN is '-5 SECONDS': a window must be longer than 0"),
        (f"SELECT * {FROM} WITHIN 5 parsecs", errors.WindowError,
         "line 1, column 55: WITHIN '5 parsecs' is not a length of time"),
        ("SELECT * FROM trades JOIN news USING (sym) WITHIN 1 s", errors.TimeColumnError,
         "which column of 'news' is its event time? it has several timestamp columns: ts, made"),
        ("SELECT * FROM trades JOIN names USING (sym) WITHIN 1 s", errors.TimeColumnError,
         "stream 'names' has no timestamp column to take the event time from"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said(text: str, type_: type[errors.PlaitError], message: str) -> None:
    with pytest.raises(type_) as caught:
        ask(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "type_", "message"),
    [
        ({"time": {"t": "price"}}, errors.TimeColumnError,
         "the event-time column t.price is of type double, not a timestamp"),
        ({"time": {"t": "x"}}, errors.TimeColumnError, "stream 't' has no column 'x'"),
        ({"time": {"x": "ts"}}, errors.UnknownStream,
         "there is no stream 'x' in the query; known: t, q"),
        ({"watermark": {"x": "1 s"}}, errors.UnknownStream, "there is no stream 'x' in the query"),
        ({"watermark": "-1 s"}, errors.WindowError, "the watermark delay is '-1 s'"),
        ({"watermark": "soon"}, errors.WindowError, "'soon' is not a length of time"),
    ],
)  # fmt: skip
def test_bad_settings(
    settings: dict[str, object], type_: type[errors.PlaitError], message: str
) -> None:
    with pytest.raises(type_) as caught:
        ask(f"SELECT t.sym {FROM} WITHIN 1 SECOND", **settings)
    assert message in str(caught.value)


SOUP = """SELECT FROM trades t quotes q JOIN ON USING ( ) , . * = <= + - / AND OR NOT sym price bid
t.sym q.sym t.ts q.ts t.sym=q.sym INTERVAL 5 '5' SECONDS WITHIN WHERE BETWEEN LIKE 'a%' IN CASE WHEN
THEN ELSE END CAST AS INT NULL IS TRUE 1.5 1e3 :x ? ; -- /* */ ' ` DISTINCT GROUP BY sum abs round
LEFT CROSS LATERAL UNION WITH OVER X'ff' DATE '2024-01-01' || :: [ ] -> ts"""
WORDS = [*SOUP.split(), "\n"]
SKELETON = ["SELECT", "*", "FROM", "trades t JOIN quotes q", "ON", "t.sym = q.sym", "WITHIN 5 s"]


@given(st.lists(st.sampled_from(WORDS), max_size=12), st.integers(0, 7), st.booleans())
def test_any_text_is_a_query_or_a_plait_error(words: list[str], at: int, whole: bool) -> None:
    text = " ".join(words if not whole else [*SKELETON[:at], *words, *SKELETON[at:]])
    try:
        query = ask(text)
    except errors.PlaitError as error:
        assert str(error)
    else:
        assert len(query.streams) >= 2
