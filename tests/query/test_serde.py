"""Queries go to JSON and come back the same; what is no query is refused with its place."""

from __future__ import annotations

import copy
import datetime as dt
import json
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import PlaitError, QueryError, TypeMismatch, UnknownColumn, WindowError
from plait.query.bounds import Constraint
from plait.query.expr import OPERATORS, Call, Cast, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query, narrowed
from plait.query.serde import query_from_dict, query_to_dict
from plait.query.sql import parse_query
from plait.query.values.functions import FUNCTIONS
from plait.testing.examples import trades_quotes_news
from plait_lab.laws.strategies.histories import cases, crowds
from plait_lab.laws.strategies.queries import plain_queries, queries

Data = dict[str, Any]

NESTED = (
    pa.list_(pa.int64()),
    pa.large_list(pa.field("x", pa.decimal128(20, 3), nullable=False)),
    pa.list_(pa.float32(), 3),
    pa.struct([("a, b>: int64", pa.string()), ("", pa.list_(pa.date32()))]),
    pa.struct([]),
    pa.map_(pa.string(), pa.struct([pa.field("v", pa.timestamp("ns", "Asia/Tokyo"))])),
    pa.dictionary(pa.int8(), pa.large_string(), ordered=True),
    pa.run_end_encoded(pa.int32(), pa.int8()),
)
FLAT = (
    *(pa.decimal128(38, 10), pa.decimal256(70, -3), pa.decimal32(5, 2), pa.decimal64(15, 0)),
    *(pa.timestamp("s"), pa.timestamp("ns", "Europe/Berlin"), pa.timestamp("us", "+05:30")),
    *(pa.binary(7), pa.binary_view(), pa.month_day_nano_interval(), pa.duration("ms")),
    *(pa.time32("ms"), pa.time64("ns"), pa.float16(), pa.uint64(), pa.null(), pa.date64()),
)
US = pa.timestamp("us")
CONSTANTS = [
    *((None, pa.null()), (None, pa.int64()), (True, pa.bool_()), (2**63 - 1, pa.int64())),
    *((1, pa.float64()), (0.1, pa.float64()), (-0.0, pa.float64()), (5e-324, pa.float64())),
    *((math.nan, pa.float64()), (math.inf, pa.float64()), (-math.inf, pa.float32())),
    *(("é\0'\"\n", pa.string()), ("", pa.large_string()), (b"", pa.binary())),
    *((b"\xff\0", pa.binary()), (Decimal("1.50"), pa.decimal128(3, 2))),
    *((Decimal("-1E+5"), pa.decimal128(10, 0)), (dt.date(1, 1, 1), pa.date32())),
    *((dt.datetime(2024, 2, 29, 1, 2, 3, 456789), US), (dt.time(23, 59, 59, 1), pa.time64("us"))),
    (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC")),
    (dt.datetime(2024, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=2))), pa.timestamp("us", "UTC")),
    (dt.timedelta(days=-3, microseconds=1), pa.duration("us")),
]
AUTUMN = dt.datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin"))
"""The second time that it is half past two in that night."""


def again(query: Query) -> Query:
    """The query that comes back from JSON text without numbers that only Python knows."""
    return query_from_dict(json.loads(json.dumps(query_to_dict(query), allow_nan=False)))


@given(st.one_of(queries(), plain_queries(streams=st.integers(2, 6))))
def test_round_trip_of_generated_queries(query: Query) -> None:
    assert again(query) == query
    assert again(narrowed(query)) == narrowed(query)


@given(st.one_of(cases(), crowds()).map(lambda history: history.query))
def test_round_trip_of_the_queries_of_histories(query: Query) -> None:
    assert again(query) == query
    assert again(query).schema == query.schema


def test_round_trip_of_sql() -> None:
    """Constants and expressions as SQL makes them."""
    schema = pa.schema([("ts", US), ("k", pa.int64()), ("v", pa.float64())])
    query = parse_query(
        """
        SELECT a.k, CASE WHEN a.v > 1.50 THEN 'x' ELSE NULL END AS c, CAST(b.v AS DECIMAL(10, 2)) d,
               X'00FF' AS x, a.ts + INTERVAL '1 day 2 hours' AS later, DATE '2024-02-29' AS day
        FROM a JOIN b ON a.k = b.k
                     AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 2 SECONDS
        WHERE a.ts > TIMESTAMP '2024-01-01 00:00:00' AND NOT (a.v IN (1, 2e0) OR b.v <=> -a.v)
        """,
        {"a": schema, "b": schema},
    )
    assert again(query) == query
    assert [str(o) for o in again(query).select] == [str(o) for o in query.select]


def query_of(*, payload: tuple[Field, ...] = (), select: tuple[Expr, ...] = ()) -> Query:
    fields = (Field("ts", US), Field("k", pa.int64()), Field("s", pa.string()), *payload)
    streams = [Stream("a", fields, "ts"), Stream("b", fields, "ts", 5, 9)]
    equal = Call("eq", (Column("a", "k"), Column("b", "k")))
    outputs = [Output(f"o{n}", expr) for n, expr in enumerate(select)]
    bounds = [Constraint(0, 1, 5), Constraint(1, 0, -2)]
    return make_query(streams, [equal], bounds, outputs)


def test_round_trip_of_types() -> None:
    fields = tuple(Field(f"f {n}", type_) for n, type_ in enumerate((*NESTED, *FLAT)))
    query = query_of(payload=fields)
    read = again(query)
    assert read == query
    # Equality of Arrow types does not look at everything that a name tells.
    assert [str(f.type) for f in read.streams[0].fields] == [
        str(f.type) for f in query.streams[0].fields
    ]


def test_only_nested_types_are_encoded() -> None:
    fields = tuple(Field(f"f{n}", type_) for n, type_ in enumerate((*FLAT, *NESTED)))
    data: Data = query_to_dict(query_of(payload=fields))
    types = [field["type"] for field in data["streams"][0]["fields"][3:]]
    assert types[: len(FLAT)] == [str(type_) for type_ in FLAT]
    assert [t["name"] for t in types[len(FLAT) :]] == [str(type_) for type_ in NESTED]


@pytest.mark.parametrize(("value", "type_"), CONSTANTS, ids=repr)
def test_round_trip_of_constants(value: object, type_: pa.DataType) -> None:
    query = query_of(select=(Column("a", "k"), Literal(value, type_)))
    read = again(query)
    assert read == query
    literal = read.select[1].expr
    assert isinstance(literal, Literal)
    assert type(literal.value) is type(value)
    assert str(literal) == str(Literal(value, type_)), "also the sign of zero, and digits"


def test_instants_in_a_zone() -> None:
    """An offset alone would not do: an instant that a zone has twice equals none elsewhere."""
    zoned = Literal(AUTUMN, pa.timestamp("us", "Europe/Berlin"))
    query = query_of(select=(Column("a", "k"), zoned))
    assert again(query) == query
    assert "Europe/Berlin" in json.dumps(query_to_dict(query))


def test_round_trip_of_every_operator() -> None:
    k, s, two = Column("a", "k"), Column("a", "s"), Literal(2, pa.int64())
    yes, ts, part = Call("is_null", (k,)), Column("a", "ts"), Literal("a", pa.string())
    day = Cast(ts, pa.date32())
    of_dates = (
        *("day", "dayname", "dayofweek", "dayofyear", "last_day", "month", "monthname", "quarter"),
        *("unix_date", "weekday", "weekofyear", "year", "yearofweek"),
    )
    of_texts = (
        *("ascii", "bit_length", "initcap", "length", "lower", "ltrim", "octet_length", "reverse"),
        *("rtrim", "trim", "unhex", "upper"),
    )
    of_two_texts = (
        *("concat_ws", "contains", "endswith", "find_in_set", "levenshtein", "locate"),
        *("regexp_count", "regexp_substr", "replace", "rlike", "startswith"),
    )
    special: dict[str, tuple[Expr, ...]] = {
        **dict.fromkeys(("and", "or"), (yes, yes)),
        "not": (yes,),
        **dict.fromkeys(of_dates, (day,)),
        **dict.fromkeys(of_texts, (s,)),
        **dict.fromkeys(of_two_texts, (s, part)),
        **dict.fromkeys(("substring_index", "split_part", "overlay"), (s, part, two)),
        **dict.fromkeys(("translate", "regexp_replace"), (s, part, part)),
        **dict.fromkeys(("lpad", "rpad", "repeat", "right", "sha2"), (s, two)),
        **dict.fromkeys(("hour", "minute", "second", "second_with_fraction"), (ts,)),
        **dict.fromkeys(("unix_micros", "unix_millis", "unix_seconds"), (ts,)),
        **dict.fromkeys(("date_add", "add_months"), (day, two)),
        "datediff": (day, day),
        **dict.fromkeys(("next_day", "trunc"), (day, part)),
        "make_date": (k, two, two),
        "make_timestamp": (k, two, two, two, two, two),
        "months_between": (ts, ts),
        "date_trunc": (part, ts),
        **dict.fromkeys(("date_format", "parse_timestamp"), (ts, Literal("dd", pa.string()))),
        "parse_timestamp": (s, Literal("dd", pa.string())),
        "regexp_extract": (s, Literal("(a)", pa.string())),
        "width_bucket": (k, two, k, two),
        **dict.fromkeys(("md5", "sha1", "crc32", "base64"), (s,)),
        "plus_days": (ts, Literal(dt.timedelta(days=1), pa.duration("us"))),
        **dict.fromkeys(("java17_text", "java17_round"), (Cast(k, pa.float64()),)),
        "java_integer": (k, Literal(32, pa.int64())),
        "like": (s, Literal("a%", pa.string())),
        "concat": (s, s, s),
        "case": (yes, k, yes, two, k),
        "in": (k, two, k),
        "round": (Cast(k, pa.float64()), two),
        "substring": (s, two, two),
        "field": (Column("a", "st"), Literal("x", pa.string())),
    }

    def arguments(op: str) -> tuple[Expr, ...]:
        few = op in FUNCTIONS and FUNCTIONS[op].most == 1
        return special.get(op, (k,) if few or op in ("neg", "is_null", "try") else (k, two))

    calls = tuple(Call(op, arguments(op)) for op in sorted(OPERATORS))
    struct = Field("st", pa.struct([("x", pa.int64())]))
    query = query_of(payload=(struct,), select=calls)
    assert again(query) == query


def test_golden() -> None:
    """The format that files are in; when this changes, so does the version."""
    condition = Call("gt", (Column("a", "k"), Literal(Decimal("1.5"), pa.decimal128(2, 1))))
    assert query_to_dict(query_of(select=(condition, Cast(Column("b", "s"), pa.int32())))) == {
        "version": 1,
        "streams": [
            {
                "name": name,
                "fields": [
                    {"name": "ts", "type": "timestamp[us]"},
                    {"name": "k", "type": "int64"},
                    {"name": "s", "type": "string"},
                ],
                "time": "ts",
                "delay": delay,
                "idle": idle,
            }
            for name, delay, idle in (("a", 0, None), ("b", 5, 9))
        ],
        "equalities": [{"left": ["a", "k"], "right": ["b", "k"]}],
        "residuals": [],
        "bounds": [[0, 5], [-2, 0]],
        "select": [
            {
                "name": "o0",
                "expr": {
                    "call": "gt",
                    "args": [
                        {"column": ["a", "k"]},
                        {"literal": {"decimal": "1.5"}, "type": "decimal128(2, 1)"},
                    ],
                },
            },
            {"name": "o1", "expr": {"cast": {"column": ["b", "s"]}, "type": "int32"}},
        ],
    }


def _set(*path: str | int, to: object) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        place[path[-1]] = to

    return change


def _delete(*path: str | int) -> Callable[[Data], None]:
    def change(data: Data) -> None:
        place: Any = data
        for step in path[:-1]:
            place = place[step]
        del place[path[-1]]

    return change


EXPR = ("select", 0, "expr")
INT = "int64"


@pytest.mark.parametrize(
    ("change", "message", "error"),
    [
        (_set("version", to=2), r"\$.version is 2; this release reads version 1", QueryError),
        (_delete("version"), r"\$ lacks the field 'version'", QueryError),
        (_delete("bounds"), r"\$ lacks the field 'bounds'", QueryError),
        (_set("extra", to=1), r"\$ has an unknown field 'extra'", QueryError),
        (_set("streams", to={}), r"\$.streams is {}, not a list", QueryError),
        (_set("streams", 0, "name", to=5), r"\$.streams\[0\].name is 5", QueryError),
        (_set("streams", 1, "delay", to="1 s"), r'\$.streams\[1\].delay is "1 s"', QueryError),
        (_set("streams", 1, "delay", to=-1), "delay of 'quotes' is negative", WindowError),
        (_set("streams", 1, "idle", to=0.5), r"\$.streams\[1\].idle is 0.5", QueryError),
        (_delete("streams", 0, "idle"), r"\$.streams\[0\] lacks the field 'idle'", QueryError),
        (_set("streams", 0, "fields", 1, "type", to="int46"), r"\[1\].type is no", QueryError),
        (_set("streams", 0, "fields", 1, "type", to="decimal128(99, 1)"), "is no type", QueryError),
        (_set("streams", 0, "fields", 1, "type", to="decimal9(9, 1)"), "is no type", QueryError),
        (
            _set("streams", 0, "fields", 1, "type", to={"name": "x", "encoded": "?"}),
            r"\$.streams\[0\].fields\[1\].type.encoded is no schema",
            QueryError,
        ),
        (
            _set("streams", 0, "fields", 1, "type", to={"name": "x", "encoded": "AAAA"}),
            r"\$.streams\[0\].fields\[1\].type.encoded is no schema",
            QueryError,
        ),
        (_set("equalities", 0, "left", to=["a"]), r"equalities\[0\].left is \[\"a\"\]", QueryError),
        (
            _set("equalities", 0, "left", to=["quotes", "sym"]),
            r"\$.equalities\[0\] is between two columns of 'quotes'",
            QueryError,
        ),
        (_set("equalities", 0, "left", to=["trades", "x"]), "no column 'x'", UnknownColumn),
        (_set("bounds", 0, to=[0]), r"\$.bounds is no matrix of 3 rows", QueryError),
        (_set("bounds", 0, 1, to=None), r"\$.bounds\[0\]\[1\] is null", QueryError),
        (_set("bounds", 1, 1, to=3), r"\$.bounds\[1\]\[1\] is 3", QueryError),
        (_set("bounds", 0, 1, to=-(10**12)), "contradict each other", WindowError),
        (_set("select", to=[]), r"\$.select is empty", QueryError),
        (_set(*EXPR, to={}), r"\$.select\[0\].expr is no expression: {}", QueryError),
        (_set(*EXPR, to={"column": ["trades", 1]}), r"expr.column\[1\] is 1", QueryError),
        (_set(*EXPR, to={"call": "plus", "args": []}), r"expr.call is \"plus\"", QueryError),
        (_set(*EXPR, to={"call": "neg", "args": []}), "no number of arguments of neg", QueryError),
        (_set(*EXPR, to={"literal": "x", "type": INT}), "which is no int64", QueryError),
        (_set(*EXPR, to={"literal": 2**70, "type": INT}), "which is no int64", QueryError),
        (_set(*EXPR, to={"literal": {}, "type": INT}), r"expr.literal is {}, no const", QueryError),
        (_set(*EXPR, to={"literal": {"decimal": "x"}, "type": INT}), "no decimal", QueryError),
        (_set(*EXPR, to={"literal": {"float": "1"}, "type": "double"}), "no float", QueryError),
        (_set(*EXPR, to={"literal": {"float": []}, "type": "double"}), "no float", QueryError),
        (_set(*EXPR, to={"literal": {"bytes": "!"}, "type": "binary"}), "no bytes", QueryError),
        (_set(*EXPR, to={"literal": {"duration": True}, "type": INT}), "no duration", QueryError),
        (
            _set(*EXPR, to={"literal": {"timestamp": "2024-01-01T00Z", "zone": "-"}, "type": INT}),
            "no timestamp",
            QueryError,
        ),
        (
            _set(*EXPR, to={"literal": {"timestamp": "2024-01-01", "zone": "UTC"}, "type": INT}),
            "no timestamp",
            QueryError,
        ),
        (
            _set(*EXPR, to={"literal": {"date": "2024-01-01", "zone": "UTC"}, "type": INT}),
            r"\$.select\[0\].expr.literal has an unknown field 'zone'",
            QueryError,
        ),
        (
            _set("residuals", to=[{"column": ["trades", "sym"]}]),
            "the condition trades.sym is of type",
            TypeMismatch,
        ),
    ],
)  # fmt: skip
def test_what_is_refused(
    change: Callable[[Data], None], message: str, error: type[PlaitError]
) -> None:
    data: Data = copy.deepcopy(query_to_dict(trades_quotes_news))
    assert query_from_dict(data) == trades_quotes_news
    change(data)
    with pytest.raises(QueryError, match=message) as caught:
        query_from_dict(data)
    assert type(caught.value) is error


@pytest.mark.parametrize("data", [None, [], "x", 1])
def test_what_is_no_object_is_refused(data: object) -> None:
    with pytest.raises(QueryError, match=r"\$ is .*, not an object"):
        query_from_dict(data)


@pytest.mark.slow
def test_an_expression_without_end_is_refused() -> None:
    data: Data = query_to_dict(trades_quotes_news)
    expr: Data = {"column": ["trades", "price"]}
    for _ in range(100_000):
        expr = {"call": "neg", "args": [expr]}
    data["select"][0]["expr"] = expr
    with pytest.raises(QueryError, match="nested too deeply"):
        query_from_dict(data)


def test_a_constant_that_has_no_plain_value_is_refused() -> None:
    class Odd(int):
        pass

    query = query_of(select=(Column("a", "k"), Literal(Odd(5), pa.int64())))
    with pytest.raises(QueryError, match="the constant 5 is a Odd"):
        query_to_dict(query)


def test_an_encoded_type_must_have_its_name() -> None:
    data: Data = query_to_dict(query_of(payload=(Field("n", NESTED[0]),)))
    data["streams"][0]["fields"][3]["type"]["name"] = "list<item: int32>"
    with pytest.raises(QueryError, match=r"encoded is not the type that .*\.name says"):
        query_from_dict(data)
