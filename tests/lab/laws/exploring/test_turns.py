"""Turns explored, and keepers that are broken on purpose found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.sites.planner.policy import UpdateWay
from plait.sites.protocol.turns import PlannerTurn, SitePlanner, Turns
from plait_lab.laws.exploring.turns import explore_turns

BOTH = {"S1": 300.0, "S2": 10.0}


@pytest.mark.parametrize("update", ["central", "distributed"])
def test_two_sites_that_lose_patience(update: UpdateWay) -> None:
    found = explore_turns(update, BOTH, sites=2, patience=1)
    assert found.broken == ()
    assert found.worlds > 400


@pytest.mark.slow
@pytest.mark.parametrize("update", ["central", "distributed"])
def test_two_streams_of_three_change_at_once(update: UpdateWay) -> None:
    found = explore_turns(update, {"S2": 300.0, "S3": 10.0})
    assert found.broken == ()
    assert found.worlds > 2_000
    assert found.ends >= 1


@pytest.mark.slow
def test_two_sites_that_lose_patience_twice() -> None:
    found = explore_turns("distributed", BOTH, sites=2, patience=2)
    assert found.broken == ()
    assert found.worlds > 20_000


class Hasty(Turns):
    """Grants the first turn to everybody who asks before it has heard of it."""

    def _granted(self, planner: SitePlanner) -> PlannerTurn:
        if not planner.turn:
            planner = replace(planner, finished=frozenset(self.names))
        return super()._granted(planner)


class Forgetful(Turns):
    """Does not tell the keeper that a turn is over."""

    def over(self, planner: SitePlanner) -> PlannerTurn:
        planner, told = super().over(planner)
        return planner, () if planner.me == self.names[1] else told


@pytest.mark.slow
def test_a_keeper_that_grants_one_turn_twice_is_found_out() -> None:
    found = explore_turns("distributed", {"S2": 300.0, "S3": 10.0}, made=Hasty)
    assert any(text.startswith("a site fails") for text in found.broken)


def test_a_site_that_does_not_end_its_turn_is_found_out() -> None:
    found = explore_turns("distributed", BOTH, sites=2, made=Forgetful)
    assert "a turn does not end" in found.broken
