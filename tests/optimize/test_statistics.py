"""Statistics: what is refused, and what is assumed for what is missing."""

from __future__ import annotations

import math

import pytest

from plait.errors import StatisticsError, UnknownStream
from plait.optimize.statistics import (
    Estimate,
    Statistics,
    read_statistics,
    resolve,
)
from plait.testing.examples import chain, clique, trades_quotes_news


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"rates": {"a": -1}}, "rates of a: a value of -1 rows/s"),
        ({"rates": {"a": math.nan}}, "rates of a: a value of NaN"),
        ({"rates": {"a": math.inf}}, "rates of a: a value of inf"),
        ({"rates": {"a": "fast"}}, "value is 'fast', not a number"),
        ({"rates": {"a": True}}, "value is True, not a number"),
        ({"selectivities": {"a.a = b.a": 1.5}}, "a probability of 1.5"),
        ({"selectivities": {"a.a = b.a": -0.1}}, "a probability of -0.1"),
        ({"selectivities": {"a.a = b.a": math.nan}}, "a value of NaN"),
        ({"rates": {"a": {"value": 1, "confidence": 2}}}, "a confidence of 2"),
        ({"rates": {"a": {"value": 1, "age": -1}}}, "an age of -1"),
        ({"rates": {"a": {"value": 1, "unit": "rows/h"}}}, "is in rows/h; give it in rows/s"),
        ({"rates": {"a": {"value": 1, "colour": 2}}}, "has an entry 'colour'"),
        ({"rate": {}}, "has an entry 'rate'; did you mean 'rates'"),
        ({"rates": [1]}, "rates is not an object"),
        ([], "is not an object"),
    ],
)
def test_values_that_cannot_be(data: object, message: str) -> None:
    with pytest.raises(StatisticsError) as caught:
        read_statistics(data)
    assert message in str(caught.value)


def test_statistics_of_a_stream_that_is_not_in_the_query() -> None:
    with pytest.raises(
        UnknownStream, match=r"'z', which is not a stream of the query; known: a, b"
    ):
        resolve(chain(2), Statistics.of({"z": 1}))


@pytest.mark.parametrize("text", ["a.a = c.b", "a.a", "a.a = a.a", "a.a > b.a", "x = y"])
def test_selectivities_of_conditions_that_are_not_in_the_query(text: str) -> None:
    with pytest.raises(StatisticsError, match="not a condition of the query"):
        resolve(chain(3), Statistics.of({}, {text: 0.1}))


def test_units_ages_and_confidence_are_kept() -> None:
    known = read_statistics({"rates": {"a": {"value": 2, "age": "5 s", "confidence": 0.5}}})
    assert known.rates["a"] == Estimate(2.0, "rows/s", 5.0, 0.5)


def test_null_is_unknown_not_zero() -> None:
    known = read_statistics({"rates": {"a": None, "b": {"value": None, "age": 3}, "c": 0}})
    assert list(known.rates) == ["c"]


def test_nothing_known_is_defined() -> None:
    found = resolve(chain(3), Statistics())
    assert found.rates == (1.0, 1.0, 1.0)
    assert found.pairs == ({(0, 1): 0.1}, {(1, 2): 0.1})
    assert len(found.assumptions) == 6


def test_residuals_reduce_what_is_stored_or_what_passes() -> None:
    known = Statistics.of(
        {"trades": 100, "quotes": 10, "news": 1},
        {"trades.size >= 100": 0.2, "trades.price > quotes.ask": 0.5},
    )
    found = resolve(trades_quotes_news, known)
    assert found.rates == (20.0, 10.0, 1.0)
    assert set(found.residuals) == {0.2, 0.5}


def test_equalities_of_one_key_either_way_round() -> None:
    found = resolve(clique(3), Statistics.of({}, {"c.k = a.k": 0.1, "a.k = b.k": 0.2}))
    assert found.pairs == ({(0, 2): 0.1, (0, 1): 0.2, (1, 2): 0.1},)
    assert not any("selectivity" in text for text in found.assumptions)
