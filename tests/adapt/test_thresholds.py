"""Policies refuse what is no number, and names that they do not know."""

from __future__ import annotations

import math

import pytest

from plait.adapt.policy import PlanPolicy
from plait.adapt.thresholds import known_thresholds
from plait.errors import PolicyError
from plait.groups.balance.policy import BalancePolicy


@pytest.mark.parametrize("kind", [PlanPolicy, BalancePolicy])
@pytest.mark.parametrize("value", [-1, math.nan, math.inf, True, "1", None])
def test_what_is_no_number_is_refused(kind: type, value: object) -> None:
    with pytest.raises(PolicyError, match="a policy with margin="):
        kind(margin=value)


@pytest.mark.parametrize("kind", [PlanPolicy, BalancePolicy])
def test_names_are_known_or_refused(kind: type) -> None:
    assert known_thresholds(kind, {"margin": 0.5}) == {"margin": 0.5}
    with pytest.raises(PolicyError, match="a policy has no 'marjin'; did you mean 'margin'"):
        known_thresholds(kind, {"marjin": 0.5})
