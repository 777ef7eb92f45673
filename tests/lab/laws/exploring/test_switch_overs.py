"""The switch-over explored, and protocols that are broken on purpose found out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from plait.sites.protocol import switch_over
from plait.sites.protocol.messages import GiveUp, GlobalReady, SwitchMessage, WhatNow
from plait.sites.protocol.switch_over import SwitchOver, SwitchTurn
from plait_lab.laws.exploring.switch_overs import Rules, explore, run_on, start

TOGETHER = {("migrated",) * 3, ("given-up",) * 3}


@pytest.mark.slow
def test_three_sites_under_everything_that_can_happen() -> None:
    """Loss, duplication, reordering, delay, crash with and without recovery, and time-outs."""
    found = explore(("N1", "N2", "N3"))
    assert found.broken == ()
    assert found.outcomes == TOGETHER
    assert found.worlds > 10_000


def test_two_sites_and_one() -> None:
    found = explore(("N1", "N2"))
    assert found.broken == ()
    assert found.outcomes == {("migrated",) * 2, ("given-up",) * 2}
    assert explore(("N1",)).outcomes == {("migrated",), ("given-up",)}


def impatient(state: SwitchOver) -> SwitchTurn:
    """Gives up also when it is global-ready."""
    if state.phase == "global-ready":
        return replace(state, phase="given-up"), ()
    return switch_over.time_out(state)


def one_phase(state: SwitchOver, message: SwitchMessage) -> SwitchTurn:
    """Migrates as soon as it is global-ready."""
    state, sent = switch_over.receive(state, message)
    if state.phase == "global-ready":
        state = replace(state, phase="migrated")
    return state, sent


def stubborn(state: SwitchOver, message: SwitchMessage) -> SwitchTurn:
    """Does not care that others give up."""
    if isinstance(message, GiveUp):
        return state, ()
    return switch_over.receive(state, message)


def silent(state: SwitchOver, message: SwitchMessage) -> SwitchTurn:
    """Repeats nothing."""
    if isinstance(message, WhatNow):
        return state, ()
    return switch_over.receive(state, message)


def counting(state: SwitchOver, message: SwitchMessage) -> SwitchTurn:
    """Counts messages, not sites: a duplicate is taken for another site."""
    if isinstance(message, GlobalReady) and message.sender in state.global_ready:
        missing = set(state.others) - state.global_ready
        if missing and state.phase == "global-ready":
            return switch_over.receive(state, GlobalReady(message.migration, missing.pop()))
    return switch_over.receive(state, message)


@pytest.mark.parametrize(
    ("rules", "broken"),
    [
        (Rules(time_out=impatient), "a site migrated and another gave up"),
        (Rules(receive=one_phase), "a site migrated while another could still give up"),
        (Rules(receive=stubborn), "all sites are up, and they do not come to one end"),
        (Rules(receive=silent), "all sites are up, and they do not come to one end"),
    ],
)
def test_a_broken_protocol_is_found_out(rules: Rules, broken: str) -> None:
    assert broken in explore(("N1", "N2"), rules).broken


@pytest.mark.slow
def test_counting_messages_instead_of_sites_is_found_out() -> None:
    found = explore(("N1", "N2", "N3"), Rules(receive=counting))
    assert "a site migrated and another gave up" in found.broken


def test_without_losses_all_migrate() -> None:
    assert {state.phase for state in run_on(start(("N1", "N2", "N3")).sites)} == {"migrated"}


def test_a_site_that_is_down_from_the_beginning_makes_the_others_give_up() -> None:
    sites = run_on(start(("N1", "N2", "N3")).sites, "N2")
    assert [state.phase for state in sites] == ["given-up", "copying", "given-up"]
