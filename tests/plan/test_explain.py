from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from plait.errors import PlanError
from plait.plan.explain import WIDTH, explain
from plait.plan.jtree import Join, Leaf, joins, mjoin, parse_shape
from plait.query.bounds import Constraint
from plait.query.expr import Call, Column, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.examples import SECOND, chain, clique, keyed, trades_quotes_news
from plait_lab.exhaustive.plans import all_shapes

Golden = Callable[[str, str], None]


def shop() -> Query:
    """Keys of several names and types, intervals of several lengths, conditions over several."""
    time = Field("at", pa.timestamp("us"))

    def stream(name: str, delay: int, *keys: str) -> Stream:
        return Stream(name, (time, *(Field(k, pa.int64()) for k in keys)), "at", delay)

    def equal(left: tuple[str, str], right: tuple[str, str]) -> Call:
        return Call("eq", (Column(*left), Column(*right)))

    total = Column("orders", "total")
    paid = Call("add", (Column("payments", "amount"), Column("vouchers", "amount")))
    return make_query(
        (
            stream("clicks", 250_000, "id"),
            stream("orders", 2 * SECOND, "id", "click", "user", "total"),
            stream("payments", 60 * SECOND, "order", "amount"),
            stream("vouchers", 0, "order", "amount"),
        ),
        (
            equal(("clicks", "id"), ("orders", "click")),
            equal(("orders", "id"), ("payments", "order")),
            equal(("orders", "id"), ("vouchers", "order")),
            Call("ge", (paid, total)),
            Call("ne", (Column("clicks", "id"), Column("orders", "id"))),
            Call("gt", (Column("payments", "amount"), Literal(0, pa.int64()))),
        ),
        (
            Constraint(0, 1, 60 * SECOND),
            Constraint(1, 0, 0),
            Constraint(1, 2, 3600 * SECOND),
            Constraint(2, 1, 0),
            Constraint(1, 3, 5 * SECOND),
            Constraint(3, 1, 5 * SECOND),
        ),
        (Output("user", Column("orders", "user")), Output("paid", paid)),
    )


def test_golden_mjoin(golden: Golden) -> None:
    golden("explain_mjoin.txt", explain(trades_quotes_news, mjoin(trades_quotes_news)))


def test_golden_binary_tree_with_notes(golden: Golden) -> None:
    query = trades_quotes_news
    notes = {
        frozenset({"trades", "quotes", "news"}): "CPU 2 %, 40 results/s",
        frozenset({"trades", "quotes"}): "CPU 11 %, 3 MB, 900 tuples/s",
        frozenset({"news"}): "64 kB",
        frozenset({"quotes", "news"}): "not in this plan",
    }
    text = explain(query, parse_shape(query, "((trades quotes) news)"), notes)
    golden("explain_binary_notes.txt", text)
    assert "not in this plan" not in text


def test_golden_intervals(golden: Golden) -> None:
    query = shop()
    golden(
        "explain_intervals.txt",
        explain(query, parse_shape(query, "(clicks orders (payments vouchers))")),
    )


def test_golden_mixture(golden: Golden) -> None:
    query = keyed("x", "xy", "y", "yxz", "z")
    golden("explain_mixture.txt", explain(query, parse_shape(query, "((a b) c (d e))")))


def test_golden_bushy(golden: Golden) -> None:
    query = chain(4)
    golden("explain_bushy.txt", explain(query, parse_shape(query, "((a b) (c d))")))


def test_a_plan_of_another_query_is_refused() -> None:
    with pytest.raises(PlanError, match="lacks the stream 'c'"):
        explain(clique(3), Join((Leaf("a"), Leaf("b")), ((1,), (0,))))


def test_every_tree_has_one_line_per_operator_window_and_input() -> None:
    query = clique(4)
    for plan in all_shapes(query):
        tree = explain(query, plan).split(f"plan {plan}\n")[1].splitlines()
        operators = list(joins(plan))
        inputs = sum(len(join.children) for join in operators)
        assert sum(": window" in line for line in tree) == 4
        assert sum("join → " in line for line in tree) == len(operators)
        assert sum("join → results" in line for line in tree) == 1
        assert len(tree) == 4 + len(operators) + inputs


def test_long_lists_are_broken() -> None:
    query = clique(12)
    header = explain(query, mjoin(query)).split("\n\n")[0].splitlines()
    assert max(len(line) for line in header if " = " not in line) <= WIDTH
    assert sum(line.endswith(",") for line in header) >= 2
