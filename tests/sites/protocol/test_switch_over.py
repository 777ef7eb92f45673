"""The two-phase switch-over, event by event.

`tests/lab/laws/exploring/test_switch_overs.py` tries all interleavings.
"""

from __future__ import annotations

import re
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import MigrationError
from plait.sites.protocol.messages import (
    GiveUp,
    GlobalReady,
    LocalReady,
    Migrated,
    Sent,
    SwitchMessage,
    WhatNow,
)
from plait.sites.protocol.switch_over import (
    SwitchOver,
    begin,
    receive,
    time_out,
    unanswered,
    windows_full,
)
from plait_lab.protocol.message_kinds import kind_of
from plait_lab.protocol.switch_recovery import recover, remind, without_record


def run(sites: int, random: Random) -> tuple[dict[str, SwitchOver], list[Sent]]:
    """A switch-over in which everything arrives, in any order; all that was sent."""
    names = [f"N{n}" for n in range(1, sites + 1)]
    group = {name: begin(7, name, names)[0] for name in names}
    flying: list[Sent] = []
    everything: list[Sent] = []
    copying = list(names)
    while copying or flying:
        if copying and (not flying or random.random() < 0.3):
            name = copying.pop(random.randrange(len(copying)))
            group[name], sent = windows_full(group[name], random.randrange(100))
        else:
            one = flying.pop(random.randrange(len(flying)))
            assert isinstance(one.message, SwitchMessage)
            group[one.receiver], sent = receive(group[one.receiver], one.message)
        flying += sent
        everything += sent
    return group, everything


@given(st.integers(0, 10**6), st.integers(1, 8))
def test_all_migrate_at_one_instant_with_the_papers_messages(seed: int, sites: int) -> None:
    group, sent = run(sites, Random(seed))
    assert {state.phase for state in group.values()} == {"migrated"}
    assert len({state.instant for state in group.values()}) == 1
    assert len(sent) == 2 * sites * (sites - 1)


@pytest.mark.parametrize(("sites", "messages"), [(4, 24), (8, 112)])
def test_table_3_synchronization_messages(sites: int, messages: int) -> None:
    _, sent = run(sites, Random(1))
    assert Counter(kind_of(one.message) for one in sent) == {"synchronization": messages}


def ready(me: str = "N1", *heard: str) -> SwitchOver:
    state, _ = windows_full(begin(7, me, ["N1", "N2", "N3"])[0], 50)
    for site in heard:
        state, _ = receive(state, LocalReady(7, site, 40))
    return state


def test_the_instant_is_the_latest_of_all() -> None:
    state = ready("N1", "N2")
    assert (state.phase, state.instant, state.missing) == ("local-ready", None, ("N3",))
    state, sent = receive(state, LocalReady(7, "N3", 60))
    assert (state.phase, state.instant, state.missing) == ("global-ready", 60, ("N2", "N3"))
    assert {one.receiver for one in sent} == {"N2", "N3"}


def test_messages_that_come_before_it_is_ready_count() -> None:
    state, _ = begin(7, "N1", ["N1", "N2"])
    state, _ = receive(state, LocalReady(7, "N2", 1))
    assert state.phase == "copying"
    state, sent = windows_full(state, 5)
    assert state.phase == "global-ready"
    assert [type(one.message) for one in sent] == [LocalReady, GlobalReady]


def test_duplicates_change_nothing() -> None:
    state = ready("N1", "N2")
    again, sent = receive(state, LocalReady(7, "N2", 40))
    assert (again, sent) == (state, ())
    assert windows_full(state, 99) == (state, ())


def test_a_site_gives_up_only_while_nobody_can_have_migrated() -> None:
    copying, _ = begin(7, "N1", ["N1", "N2", "N3"])
    for state in (copying, ready(), ready("N1", "N2")):
        given_up, sent = time_out(state)
        assert given_up.phase == "given-up"
        assert {one.receiver for one in sent} == {"N2", "N3"}
    bound = ready("N1", "N2", "N3")
    assert bound.phase == "global-ready"
    same, sent = time_out(bound)
    assert same == bound
    assert {one.message for one in sent} == {WhatNow(7, "N1")}


def test_giving_up_spreads_and_is_final() -> None:
    state, sent = receive(ready("N1", "N2", "N3"), GiveUp(7, "N2"))
    assert state.phase == "given-up"
    assert {one.receiver for one in sent} == {"N2", "N3"}
    for message in (LocalReady(7, "N2", 1), GlobalReady(7, "N2"), Migrated(7, "N3", 1)):
        assert receive(state, message) == (state, ())
    assert windows_full(state, 5)[0] == time_out(state)[0] == remind(state)[0] == state


def test_who_is_asked_repeats_what_it_said() -> None:
    def said(state: SwitchOver) -> list[str]:
        same, sent = receive(state, WhatNow(7, "N2"))
        assert same == state and all(one.receiver == "N2" for one in sent)
        return [type(one.message).__name__ for one in sent]

    copying, _ = begin(7, "N1", ["N1", "N2", "N3"])
    assert said(copying) == []
    assert said(ready()) == ["LocalReady"]
    bound = ready("N1", "N2", "N3")
    assert said(bound) == ["LocalReady", "GlobalReady"]
    for site in ("N2", "N3"):
        bound, _ = receive(bound, GlobalReady(7, site))
    assert said(bound) == ["LocalReady", "GlobalReady", "Migrated"]
    assert said(time_out(copying)[0]) == ["GiveUp"]


def test_one_that_migrated_is_proof_enough() -> None:
    """The third site is down for good after its last message, which only one has heard."""
    state, _ = receive(ready("N1", "N2", "N3"), Migrated(7, "N2", 50))
    assert (state.phase, state.instant) == ("migrated", 50)


def test_recovery() -> None:
    copying, _ = begin(7, "N1", ["N1", "N2", "N3"])
    assert recover(copying)[0].phase == "given-up"
    for state in (ready(), ready("N1", "N2", "N3")):
        same, sent = recover(state)
        assert same == state
        assert {type(one.message) for one in sent} == {WhatNow}


def test_a_site_without_a_record_gives_up_towards_everybody() -> None:
    state, sent = without_record("N1", LocalReady(7, "N2", 5))
    assert sent == (Sent("N1", "N2", GiveUp(7, "N1")),)
    assert receive(state, WhatNow(7, "N3"))[1] == (Sent("N1", "N3", GiveUp(7, "N1")),)


def test_messages_of_other_migrations_and_strangers_are_ignored() -> None:
    state = ready("N1", "N2")
    for message in (LocalReady(6, "N3", 1), LocalReady(7, "N9", 1), WhatNow(8, "N2")):
        assert receive(state, message) == (state, ())


def test_a_site_that_never_answers_is_named() -> None:
    state = ready("N1", "N2")
    message = "migration 7 waits for N3, which does not answer; start it again or mend the link"
    assert re.match(message, str(unanswered(state)))
    assert "waits for N2, N3, which do not answer" in str(unanswered(ready()))


def test_a_migration_is_between_the_affected_sites() -> None:
    with pytest.raises(MigrationError, match="N9 takes no part in migration 7; it is between N1"):
        begin(7, "N9", ["N1"])
    assert windows_full(begin(7, "N1", ["N1", "N1"])[0], 5)[0].phase == "migrated"
