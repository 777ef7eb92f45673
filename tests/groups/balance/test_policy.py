from __future__ import annotations

from typing import Any

import pytest

from plait.errors import PolicyError
from plait.groups.balance.policy import BalancePolicy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("by", "rows"),
        ("spread", 1),
        ("margin", -0.1),
        ("margin", float("nan")),
        ("margin", True),
        ("headroom", 1.1),
        ("cool", 2),
        ("worth", -1),
        ("half_life", 0),
        ("rest", -1),
        ("latency", "soon"),
        ("memory", float("inf")),
        ("comparable", 0.9),
        ("confirm", 0),
        ("confirm", 1.5),
        ("moves", True),
        ("active", 0),
        ("least_active", None),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=f"{name}="):
        BalancePolicy(**{name: value})


def test_there_is_room_between_shrinking_and_growing() -> None:
    """Otherwise one processor would join and leave for ever."""
    with pytest.raises(PolicyError, match="shrink be less than grow"):
        BalancePolicy(grow=0.3, shrink=0.3)
    assert BalancePolicy(grow=0.3, shrink=0.29).shrink == 0.29
    assert BalancePolicy(grow=0.3).shrink is None
