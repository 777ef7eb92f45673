"""Budgets: what people write, and what is refused."""

from __future__ import annotations

import math

import pytest

from plait.errors import BudgetError
from plait.optimize.budget import Budget, parse_bytes
from plait.optimize.model import Cost


@pytest.mark.parametrize(
    ("text", "amount"),
    [("2 GB", 2e9), ("1.5 mb", 1.5e6), ("512KiB", 524288), ("7", 7), ("10 bytes", 10), (12, 12)],
)
def test_amounts(text: str | float, amount: float) -> None:
    assert parse_bytes(text) == amount


@pytest.mark.parametrize(
    "text", ["", "much", "2 XB", "-1 GB", "0", 0, -5, math.inf, math.nan, True]
)
def test_amounts_that_are_none(text: str | float) -> None:
    with pytest.raises(BudgetError):
        parse_bytes(text)


@pytest.mark.parametrize("cpu", [0, -0.5, math.nan, math.inf, "all", True])
def test_cpu_that_is_none(cpu: float) -> None:
    with pytest.raises(BudgetError, match="CPU"):
        Budget.of(cpu=cpu)


def test_what_holds_and_what_binds() -> None:
    budget = Budget.of(cpu=0.5, memory="1 kB")
    assert budget.holds(Cost(0.5, 0, 1000)) and not budget.holds(Cost(0.5, 0, 1001))
    assert budget.binding(Cost(0.5, 0, 100)) == "cpu"
    assert budget.binding(Cost(0.1, 0, 5000)) == "memory"
    assert budget.excess(Cost(0.1, 0, 5000)) == 5
    assert Budget().binding(Cost(1, 1, 1)) is None and Budget().holds(Cost(1e9, 1, 1e99))
