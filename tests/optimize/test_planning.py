"""Planning in words: golden explanations, and errors that name the limit and the nearest plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.errors import NoQualifiedPlan
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.planning import plan_query
from plait.optimize.statistics import Statistics
from plait.plan.serde import from_dict
from plait.testing.examples import chain, trades_quotes_news

GOLDEN = Path(__file__).parent.parent / "golden" / "optimize"
KNOWN = Statistics.of(
    {"a": 200, "b": 200, "c": 800, "d": 300},
    {"a.a = b.a": 0.0001, "b.b = c.b": 0.05, "c.c = d.c": 0.001},
    batch=1.0,
)

CASES = {
    "qualified": (chain(4), KNOWN, Budget.of(cpu=0.8, memory="2 MB")),
    "none": (chain(4), KNOWN, Budget.of(cpu=0.0003, memory="1 GB")),
    "unknown": (trades_quotes_news, Statistics(), Budget()),
}


@pytest.mark.parametrize("name", CASES)
def test_golden_explanations(name: str) -> None:
    query, known, budget = CASES[name]
    text = plan_query(query, known, budget, DEFAULT).explain() + "\n"
    assert text == (GOLDEN / f"{name}.txt").read_text(encoding="utf-8")


def test_an_impossible_budget_names_the_limit_the_excess_and_the_nearest_plan() -> None:
    planned = plan_query(chain(4), KNOWN, Budget.of(cpu=0.0003, memory="1 GB"), DEFAULT)
    assert not planned.qualified
    with pytest.raises(NoQualifiedPlan) as caught:
        planned.require()
    text = str(caught.value)
    assert "no plan fits 0.0003 CPU, 1 GB" in text
    assert "the limit of 0.0003" in text
    assert str(planned.plan) in text
    small = plan_query(chain(4), KNOWN, Budget.of(memory="10 kB"), DEFAULT)
    with pytest.raises(NoQualifiedPlan, match=r"of memory, [\d.]+ times the limit of 10 kB"):
        small.require()


def test_plain_data_has_the_plan_and_the_reasons() -> None:
    planned = plan_query(chain(4), KNOWN, Budget.of(cpu=0.8, memory="2 MB"), DEFAULT)
    data = json.loads(json.dumps(planned.to_dict()))
    assert from_dict(data["plan"], chain(4)) == planned.plan
    assert data["binding"] in ("cpu", "memory")
    assert data["alternatives"] and data["assumptions"] == []
    assert planned.require() == planned.plan
