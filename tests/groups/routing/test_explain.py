from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

import plait
from plait.groups.routing.explain import explain_routing
from plait.groups.routing.routing import route
from plait.query.query import Query
from plait.testing.examples import chain, clique, cycle, keyed, trades_quotes_news

VENUE = pa.int32()
QUERIES = {
    "one key": (trades_quotes_news, (1, 2, 3, 200)),
    "chain": (chain(4), (1, 2, 8)),
    "cycle": (cycle(3), (8,)),
    "two keys, one of them everywhere": (keyed("xy", "xy", "x"), (4,)),
}


def test_the_text_says_where_rows_go(golden: Callable[[str, str], None]) -> None:
    texts = [
        f"{name}\n{explain_routing(query, route(query.graph, n))}"
        for name, (query, counts) in QUERIES.items()
        for n in counts
    ]
    golden("explain_routing.txt", "\n\n".join(texts))


def test_a_question_says_it_after_its_plan(golden: Callable[[str, str], None]) -> None:
    """The whole text, as for DataFrames of Spark."""
    rows = {
        "trades": pa.schema([("ts", pa.timestamp("us")), ("sym", pa.string())]),
        "quotes": pa.schema([("ts", pa.timestamp("us")), ("sym", pa.string()), ("venue", VENUE)]),
        "fees": pa.schema([("ts", pa.timestamp("us")), ("venue", VENUE), ("fee", pa.float64())]),
    }
    asked = (
        plait.join(**rows)
        .watermark("5 seconds")
        .idle(fees="1 hour")
        .on("trades.sym = quotes.sym", "quotes.venue = fees.venue", "fee > 0.0")
        .within("6 seconds")
        .select("trades.sym", "fee")
    )
    texts = [asked.explain(processors=4), asked.engine("teddies").explain(processors=1)]
    golden("explain_question.txt", "\n\n---\n\n".join(texts))
    assert "partitioning" not in asked.explain(), "tables have no processors"


@pytest.mark.parametrize("query", [clique(3), chain(3), cycle(4)])
def test_the_number_of_processors_is_that_of_the_routing(query: Query) -> None:
    """A hypercube may leave processors unused; the text says what is used."""
    for count in range(1, 9):
        routing = route(query.graph, count)
        first = explain_routing(query, routing).splitlines()[0]
        assert first.split()[2] == str(routing.processors)
