"""Names that are no plain words: a text with them still means one thing only."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from dataclasses import replace
from decimal import Decimal

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import plait
from plait.adapt.knowledge import BatchObservations, Knowledge, geometry
from plait.engine.monitor import Watch
from plait.groups.routing.routing import route
from plait.local.host import LocalRun
from plait.node.durable.contract import contract
from plait.optimize.statistics import Statistics
from plait.optimize.statistics import resolve as resolve_statistics
from plait.plan.explain import explain
from plait.plan.jtree import Leaf, joined, mjoin, parse_shape
from plait.plan.labels import class_labels, plan_label, state_label
from plait.query.bounds import Constraint, global_window
from plait.query.compare import difference
from plait.query.expr import Call, Cast, Column, Expr, Literal
from plait.query.names import bare, quoted, tokens, unquoted
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.query.serde import query_from_dict, query_to_dict
from plait.testing.oracle.answer import multiset, oracle

MEAN = ["x", "x + a.y", "a.b", "", " ", "`", "``", "x` + `y", "and", "NULL", "1", "'", '"', "x'y",
        "é", "е", "a\nb", "(", ",", "=", "k AS v", "x int64, y"]  # fmt: skip
"""Names of columns. The second of the two letters that look like e is Cyrillic."""


@given(st.text(), st.text())
def test_a_quoted_name_is_read_as_it_was(one: str, other: str) -> None:
    assert unquoted(quoted(one)) == one
    assert (quoted(one) == quoted(other)) == (one == other)
    assert [unquoted(t) for t in tokens(f"{quoted(one)} {quoted(other)}")] == [one, other]


def test_plain_words_stay_as_they_are() -> None:
    assert [quoted(n) for n in ("price", "left", "_1")] == ["price", "left", "_1"]
    assert [quoted(n) for n in ("1", "größe", "a.b", "")] == ["`1`", "`größe`", "`a.b`", "``"]
    assert bare(f"a.{quoted('x y')} > 1") == "a.x y > 1"


# -- expressions

_NUMBERS = [1, -1, 0, 5, 2**62]
_LITERALS = [
    *(Literal(n, t) for n in _NUMBERS for t in (pa.int64(), pa.decimal128(38, 0))),
    *(Literal(n, pa.int8()) for n in (1, -1)),
    *(Literal(float(n), t) for n in _NUMBERS for t in (pa.float64(), pa.float32())),
    *(Literal(Decimal(t), pa.decimal128(2, 1)) for t in ("1.0", "1.5", "-1.5")),
    Literal(Decimal("1.50"), pa.decimal128(3, 2)),
    Literal(None, pa.null()),
    Literal(None, pa.int64()),
    Literal("1", pa.string()),
    Literal("1", pa.large_string()),
    Literal("NULL", pa.string()),
    Literal("' + '", pa.string()),
    Literal(True, pa.bool_()),
    Literal(b"'", pa.binary()),
    Literal(dt.timedelta(seconds=1), pa.duration("us")),
    Literal(dt.timedelta(seconds=1), pa.duration("ns")),
    Literal(dt.datetime(2024, 1, 1), pa.timestamp("us")),
    Literal(dt.datetime(2024, 1, 1), pa.timestamp("ms")),
    Literal(dt.datetime(2024, 1, 1, tzinfo=dt.UTC), pa.timestamp("us", "UTC")),
    Literal(dt.date(2024, 1, 1), pa.date32()),
]
_LEAVES: st.SearchStrategy[Expr] = st.sampled_from(_LITERALS) | st.builds(
    Column, st.sampled_from(["a", "b", "a.b", ""]), st.sampled_from(MEAN)
)


def _calls(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
    one = st.tuples(inner)
    two = st.tuples(inner, inner)
    return st.one_of(
        st.builds(Call, st.sampled_from(["neg", "not", "is_null", "abs"]), one),
        st.builds(Call, st.sampled_from(["add", "sub", "mul", "eq", "lt", "nseq", "in"]), two),
        st.builds(Call, st.sampled_from(["coalesce", "case"]), st.tuples(inner, inner, inner)),
        st.builds(Cast, inner, st.sampled_from([pa.int64(), pa.string()])),
    )


_EXPRESSIONS = st.recursive(_LEAVES, _calls, max_leaves=4)


def test_no_two_leaves_have_one_text() -> None:
    columns = [Column(s, n) for s in ("a", "b", "a.b", "") for n in MEAN]
    texts = Counter(str(leaf) for leaf in [*columns, *_LITERALS])
    # An integer cast to int8 at once is the same constant as the one that was cast.
    assert [text for text, times in texts.items() if times > 1] == []


@pytest.mark.slow
@settings(max_examples=300)
@given(_EXPRESSIONS, _EXPRESSIONS)
def test_different_expressions_have_different_texts(one: Expr, other: Expr) -> None:
    if str(one) == str(other):
        assert _folded(one) == _folded(other)


def _folded(expr: Expr) -> Expr:
    """A cast of a constant and the constant of that type are one thing and have one text."""
    match expr:
        case Literal(value, type_):
            return Cast(Literal(value, pa.null()), type_)
        case Cast(Literal(value, _), type_):
            return Cast(Literal(value, pa.null()), type_)
        case Cast(operand, type_):
            return Cast(_folded(operand), type_)
        case Call(op, args):
            return Call(op, tuple(_folded(arg) for arg in args))
    return expr


def test_signs_do_not_run_into_each_other() -> None:
    x, five = Column("a", "x"), Literal(5, pa.int64())
    assert str(Call("neg", (Call("neg", (x,)),))) == "-(-a.x)"
    assert str(Call("neg", (five,))) == "-(5)"
    assert str(Literal(-5, pa.int64())) == "-5"


def test_every_argument_of_and_and_or_is_shown() -> None:
    x, y, z = (Column("a", n) for n in "xyz")
    assert str(Call("or", (x, y, z))) == "a.x OR a.y OR a.z"
    assert str(Call("and", (x, Call("or", (y, z)), z))) == "a.x AND (a.y OR a.z) AND a.z"


# -- queries

A = Stream(
    "a",
    tuple(
        [Field("ts", pa.timestamp("us")), Field("k", pa.int64())]
        + [Field(n, pa.int64()) for n in ("x", "y", "x + a.y")]
    ),
    "ts",
)
B = Stream(
    "b",
    (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("v", pa.int64())),
    "ts",
)
SUM = Call("gt", (Call("add", (Column("a", "x"), Column("a", "y"))), Column("b", "v")))
NAMED = Call("gt", (Column("a", "x + a.y"), Column("b", "v")))
KEY = Call("eq", (Column("a", "k"), Column("b", "k")))
COUNT = [Output("v", Column("b", "v"))]


def asked(*conditions: Expr) -> Query:
    return make_query([A, B], [KEY, *conditions], global_window(2, 5), COUNT)


def test_a_condition_is_not_taken_for_another_one_of_the_same_look() -> None:
    """Regression: residuals were kept by a text in which these two looked the same."""
    both = asked(SUM, NAMED)
    assert set(both.residuals) == {SUM, NAMED}
    rows = {
        "a": [{"ts": 0, "k": 1, "x": 1, "y": 1, "x + a.y": 9}, {"ts": 0, "k": 1, "x": 9, "y": 9,
              "x + a.y": 1}, {"ts": 0, "k": 1, "x": 9, "y": 9, "x + a.y": 9}],
        "b": [{"ts": 0, "k": 1, "v": 5}],
    }  # fmt: skip
    tables = {s.name: pa.Table.from_pylist(rows[s.name], schema=s.schema) for s in (A, B)}
    for question, count in ((asked(SUM), 2), (asked(NAMED), 2), (both, 1)):
        found = multiset(LocalRun(question).push(tables))
        assert found == oracle(question, rows) and found.total() == count


def test_constants_of_other_types_are_other_conditions() -> None:
    """Regression: an int8 and a decimal of the same digits were one condition."""
    x = Column("a", "x")
    one = Call("lt", (Call("add", (x, Literal(1, pa.int64()))), Column("b", "v")))
    other = Call(
        "lt", (Call("add", (x, Literal(Decimal(1), pa.decimal128(38, 0)))), Column("b", "v"))
    )
    assert len(asked(one, other).residuals) == 2
    zero, minus = (
        Call("lt", (x, Call("length", (Cast(Literal(z, pa.float64()), pa.string()),))))
        for z in (0.0, -0.0)
    )
    assert len(asked(zero, minus).residuals) == 2


def test_everything_that_shows_a_query_tells_them_apart() -> None:
    one, other = asked(SUM), asked(NAMED)
    assert explain(one, mjoin(one)) != explain(other, mjoin(other))
    texts = [contract(q, route(q.graph, 2)).to_json() for q in (one, other)]
    assert texts[0] != texts[1]
    assert difference(one, other) == ("conditions a.x + a.y > b.v instead of a.`x + a.y` > b.v")
    assert query_from_dict(query_to_dict(asked(SUM, NAMED))) == asked(SUM, NAMED)
    statistics = Statistics.of({}, {"a.`x + a.y` > b.v": 0.25, "a.x + a.y > b.v": 0.5})
    both = asked(SUM, NAMED)
    known = dict(zip(both.residuals, resolve_statistics(both, statistics).residuals, strict=True))
    assert known == {SUM: 0.5, NAMED: 0.25}


def test_a_signature_says_which_columns_there_are() -> None:
    one = replace(B, fields=(*B.fields[:1], Field("k int64, v", pa.int64())))
    assert one.signature != B.signature
    assert one.signature == "b(ts timestamp[us], `k int64, v` int64)"


@pytest.mark.parametrize("name", MEAN)
def test_a_mean_name_works_from_end_to_end(name: str) -> None:
    """As key, as payload, in a condition, in SQL, and as the name of a result."""
    table = pa.table(
        {
            "ts": pa.array([0, 1, 2], pa.timestamp("us")),
            name: pa.array([1, 2, 3]),
            "w": pa.array([1, 0, 1]),
        }
    )
    column = "`" + name.replace("`", "``") + "`"
    built = (
        plait.join(a=table, b=table)
        .on(f"a.{column} = b.{column}", f"a.{column} + b.w > 2")
        .within("1 second")
        .select(f"a.{column} AS {column}", f"b.{column} AS other")
    )
    assert built.query.schema.names == [name, "other"]
    assert query_from_dict(query_to_dict(built.query)) == built.query
    assert built.explain()
    found = multiset(built.run().table)
    rows = {s: table.to_pylist() for s in "ab"}
    assert found == oracle(built.query, rows) == Counter({(3, 3): 1})


# -- streams

_STREAMS = ["a", "b", "a b", "a⋈b", "(", "b,c", "`", ""]


def strangely_named() -> Query:
    fields = (Field("ts", pa.timestamp("us")), Field("k", pa.int64()), Field("k=k", pa.int64()))
    streams = [Stream(name, fields, "ts") for name in _STREAMS]
    first = _STREAMS[0]
    equal = [Call("eq", (Column(first, "k"), Column(s, "k"))) for s in _STREAMS[1:]]
    equal.append(Call("eq", (Column("b", "k=k"), Column("a b", "k=k"))))
    return make_query(
        streams, equal, global_window(len(streams), 5), [Output("k", Column("a", "k"))]
    )


def test_a_plan_over_strange_streams_is_read_as_it_is_printed() -> None:
    query = strangely_named()
    plan = joined(query, [joined(query, [Leaf("a"), Leaf("b")]), *map(Leaf, _STREAMS[2:])])
    assert str(plan) == "((a b) `a b` `a⋈b` `(` `b,c` ```` ``)"
    assert parse_shape(query, str(plan)) == plan
    others = [joined(query, [Leaf("a b"), Leaf("a")]), joined(query, [Leaf("a"), Leaf("b")])]
    assert len({plan_label(p) for p in [plan, *others]}) == 3


def test_states_and_keys_of_strange_streams_have_labels_of_their_own() -> None:
    query = strangely_named()
    labels = {state_label(query, s) for s in ({0, 1}, {2}, {3}, {0, 2})}
    assert len(labels) == 4
    assert class_labels(query) == ("k", "`k=k`")
    assert explain(query, mjoin(query))


def test_statistics_of_strange_streams() -> None:
    query = strangely_named()
    told = Statistics.of(
        {"a b": 3.0}, {"b.`k=k` = `a b`.`k=k`": 0.125}, joint={"a b": 0.5, "a `a b`": 0.25}
    )
    found = resolve_statistics(query, told)
    assert found.joint == {0b11: 0.5, 0b101: 0.25}
    assert found.pairs[1][1, 2] == 0.125


@pytest.mark.slow
def test_what_the_loop_learns_of_strange_streams_is_understood() -> None:
    """Regression: a stream called `a b` was taken for two, and its name for none."""
    whole = strangely_named()
    streams = [whole.streams[i] for i in (0, 2, 3)]
    equal = [Call("eq", (Column("a", "k"), Column(s.name, "k"))) for s in streams[1:]]
    query = make_query(streams, equal, global_window(3, 5_000_000), [Output("k", Column("a", "k"))])
    stamps = pa.array([i * 1_000 for i in range(2_000)], pa.timestamp("us"))
    keys = pa.array([i % 50 for i in range(2_000)])
    rows = pa.table({"ts": stamps, "k": keys, "k=k": keys})
    run, knowledge = LocalRun(query), Knowledge.of(3, 2.0)
    watch = Watch(run.engine)
    run.push(dict.fromkeys(query.names, rows))
    seen = BatchObservations(2_000_000, 1.0, watch.stored(), watch.looked())
    knowledge = knowledge.learn(seen, geometry(query))
    known = knowledge.statistics(query)
    assert known.joint and resolve_statistics(query, known).joint


def test_columns_whose_texts_would_run_together_keep_their_order() -> None:
    """Regression: classes were ordered by text, so that these two came as the set had them."""
    one = Stream("a", (Field("ts", pa.timestamp("us")), Field("b.c", pa.int64())), "ts")
    other = Stream("a.b", (Field("ts", pa.timestamp("us")), Field("c", pa.int64())), "ts")
    key = Call("eq", (Column("a", "b.c"), Column("a.b", "c")))
    query = make_query([one, other], [key], [Constraint(0, 1, 1), Constraint(1, 0, 1)])
    assert query.graph.classes[0].columns == (("b.c",), ("c",))
    assert query.schema.names == ["a_ts", "a_b.c", "a.b_ts", "a.b_c"]
