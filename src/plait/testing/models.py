"""Small models that the examples and tests of this package use."""

from __future__ import annotations

from plait.optimize.costs import PAPER, Costs
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics
from plait.query.query import Query
from plait.testing.examples import chain


def model_of(query: Query, rates: list[float], chances: list[float], costs: Costs = PAPER) -> Model:
    """A model from the rates of the streams and the selectivities of the equalities, in order."""
    names = dict(zip(query.names, rates, strict=True))
    texts = dict(zip(map(str, query.equalities), chances, strict=True))
    return Model(query, Statistics.of(names, texts, batch=1.0), costs)


def chain_model() -> Model:
    """Three streams in a chain; a with b is selective, b with c is not.

    >>> chain_model().stored(0b011), chain_model().stored(0b110)
    (2000.0, 20000.0)
    """
    return model_of(chain(3), [20, 20, 20], [0.05, 0.5])


def long_chain_model() -> Model:
    """Four streams in a chain."""
    return model_of(chain(4), [10, 10, 10, 10], [0.1, 0.15, 0.1])
