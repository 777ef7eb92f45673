"""Two-phase switch-over: all affected sites change to their new operators together, or none does.

*Correct output.* No site migrates if another one gives up, now or ever. All that migrate agree on
the instant of event time from which the new plan counts.

*The paper's two phases* (section 4.3). A site whose new windows are full is local-ready and says so
to all others. When it has heard that from all of them it is global-ready, and says so. When all
others are global-ready, it migrates. «All affected nodes» in step 2 are read as all others, as in
step 3. A `LocalReady` names the first instant at which the sender can switch; the latest of all is
the one agreed on, and every site that is global-ready knows it.

*Losses and crashes*, which the paper leaves out. A site may give up while it has not said
`GlobalReady`: everybody needs that from it to migrate, and will never hear it. A site that is
global-ready cannot give up by itself, because others may have migrated. It asks (`WhatNow`) until
it knows. Whoever is asked repeats what it has said, so lost messages do no harm; messages are facts
that stay true, so neither do duplicates, delays and another order. State is saved before a message
leaves, and the windows before `LocalReady` does. So a site that has crashed goes on from its state.

*What no protocol can do.* If a site crashes for good after it said `GlobalReady`, and nobody who is
left has heard all of them, nobody knows whether it has migrated: the others wait, and `missing`
names it. The join has lost one of its streams then, so its old plan has no results either.

*Invariants.* Phases only move forward. `migrated` implies that every site has said `GlobalReady`;
`given-up` implies that some site has not and never will.

*Cost.* 2n(n-1) messages for n sites if none is lost.

*Time* belongs to the host: it calls `time_out` when nothing has come for long enough. Both outcomes
of a race between a time-out and a message are correct.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from plait.errors import MigrationError
from plait.query.names import quoted
from plait.sites.protocol.messages import (
    GiveUp,
    GlobalReady,
    LocalReady,
    Migrated,
    Sent,
    SwitchMessage,
    WhatNow,
)

Phase: TypeAlias = Literal["copying", "local-ready", "global-ready", "migrated", "given-up"]


@dataclass(frozen=True, slots=True)
class SwitchOver:
    """One site in one migration; also the record that it saves."""

    migration: int
    me: str
    others: tuple[str, ...]
    phase: Phase = "copying"
    instants: tuple[tuple[str, int], ...] = ()
    """Who is local-ready and from when on, itself included, by name."""
    global_ready: frozenset[str] = frozenset()
    """Which of the others are global-ready."""

    @property
    def instant(self) -> int | None:
        """From when on the new plan counts, as soon as it is agreed on."""
        if len(self.instants) < 1 + len(self.others):
            return None
        return max(instant for _, instant in self.instants)

    @property
    def missing(self) -> tuple[str, ...]:
        """The sites that it is waiting for."""
        if self.phase in ("copying", "local-ready"):
            ready = {site for site, _ in self.instants}
            return tuple(site for site in self.others if site not in ready)
        if self.phase == "global-ready":
            return tuple(site for site in self.others if site not in self.global_ready)
        return ()

    @property
    def over(self) -> bool:
        """Whether its own part has ended."""
        return self.phase in ("migrated", "given-up")


SwitchTurn: TypeAlias = tuple[SwitchOver, tuple[Sent, ...]]
"""A site after an event, to be saved, and what it sends then."""


def begin(migration: int, me: str, affected: Iterable[str]) -> SwitchTurn:
    """A site that has its new operators and begins to fill their windows.

    >>> state, sent = begin(1, "N1", ["N1", "N2"])
    >>> state.phase, sent
    ('copying', ())
    >>> begin(1, "N3", ["N1", "N2"])
    Traceback (most recent call last):
    plait.errors.MigrationError: N3 takes no part in migration 1; it is between N1, N2
    """
    sites = tuple(dict.fromkeys(affected))
    if me not in sites:
        listed = ", ".join(map(quoted, sites)) or "no sites"
        raise MigrationError(
            f"{quoted(me)} takes no part in migration {migration}", remedy=f"it is between {listed}"
        )
    return SwitchOver(migration, me, tuple(site for site in sites if site != me)), ()


def windows_full(state: SwitchOver, instant: int) -> SwitchTurn:
    """The windows of the new operators are full, and saved; from this instant on it can switch.

    >>> state, _ = begin(1, "N1", ["N1", "N2"])
    >>> state, sent = windows_full(state, 70)
    >>> state.phase, [type(one.message).__name__ for one in sent]
    ('local-ready', ['LocalReady'])
    """
    if state.phase != "copying":
        return state, ()
    state = _heard(replace(state, phase="local-ready"), state.me, instant)
    told = _to_all(state, LocalReady(state.migration, state.me, instant))
    return _forward(state, told)


def receive(state: SwitchOver, message: SwitchMessage) -> SwitchTurn:
    """What a site makes of a message.

    >>> state, _ = windows_full(begin(1, "N1", ["N1", "N2"])[0], 70)
    >>> state, sent = receive(state, LocalReady(1, "N2", 90))
    >>> state.phase, state.instant, [type(one.message).__name__ for one in sent]
    ('global-ready', 90, ['GlobalReady'])
    """
    if message.migration != state.migration:
        return state, ()
    if isinstance(message, WhatNow):
        return state, tuple(Sent(state.me, message.sender, said) for said in _said(state))
    if state.over or message.sender not in state.others:
        return state, ()
    match message:
        case GiveUp():
            return _give_up(state)
        case LocalReady():
            return _forward(_heard(state, message.sender, message.instant))
        case GlobalReady():
            ready = state.global_ready | {message.sender}
            return _forward(replace(state, global_ready=ready))
        case Migrated():
            # The sender has heard from everybody, also from this site: it is global-ready.
            if state.phase != "global-ready":
                return state, ()
            return _forward(replace(state, global_ready=frozenset(state.others)))


def time_out(state: SwitchOver) -> SwitchTurn:
    """Nothing has come for long: give up while that is possible, otherwise ask again.

    >>> state, sent = time_out(begin(1, "N1", ["N1", "N2"])[0])
    >>> state.phase, [type(one.message).__name__ for one in sent]
    ('given-up', ['GiveUp'])
    """
    if state.over:
        return state, ()
    if state.phase == "global-ready":
        return state, _asking(state)
    return _give_up(state)


def unanswered(state: SwitchOver) -> MigrationError:
    """The error of a migration that waits for sites that do not answer.

    >>> state, _ = windows_full(begin(1, "N1", ["N1", "N2"])[0], 70)
    >>> print(unanswered(state))
    migration 1 waits for N2, which does not answer; start it again or mend the link to it
    """
    sites = ", ".join(map(quoted, state.missing))
    many = len(state.missing) > 1
    return MigrationError(
        f"migration {state.migration} waits for {sites}, which {'do' if many else 'does'} not "
        "answer",
        remedy=f"start {'them' if many else 'it'} again or mend the link to "
        f"{'them' if many else 'it'}",
    )


def _heard(state: SwitchOver, site: str, instant: int) -> SwitchOver:
    """A site is local-ready; the first that was heard counts, and no other is ever sent."""
    known = dict(state.instants)
    known.setdefault(site, instant)
    return replace(state, instants=tuple(sorted(known.items())))


def _forward(state: SwitchOver, sent: tuple[Sent, ...] = ()) -> SwitchTurn:
    """Enter the phases that what is known allows."""
    if state.phase == "local-ready" and state.instant is not None:
        state = replace(state, phase="global-ready")
        sent += _to_all(state, GlobalReady(state.migration, state.me))
    if state.phase == "global-ready" and len(state.global_ready) == len(state.others):
        state = replace(state, phase="migrated")
    return state, sent


def _give_up(state: SwitchOver) -> SwitchTurn:
    state = replace(state, phase="given-up")
    return state, _to_all(state, GiveUp(state.migration, state.me))


def _said(state: SwitchOver) -> list[SwitchMessage]:
    """What it has said so far; if its part has ended, only the end matters."""
    number, me = state.migration, state.me
    if state.phase == "given-up":
        return [GiveUp(number, me)]
    said: list[SwitchMessage] = []
    mine = dict(state.instants).get(me)
    if mine is not None:
        said.append(LocalReady(number, me, mine))
    if state.phase in ("global-ready", "migrated"):
        said.append(GlobalReady(number, me))
    if state.phase == "migrated" and state.instant is not None:
        said.append(Migrated(number, me, state.instant))
    return said


def _asking(state: SwitchOver) -> tuple[Sent, ...]:
    ask = WhatNow(state.migration, state.me)
    # Those that are global-ready may know more than they had said.
    return tuple(Sent(state.me, site, ask) for site in state.others)


def _to_all(state: SwitchOver, message: SwitchMessage) -> tuple[Sent, ...]:
    return tuple(Sent(state.me, site, message) for site in state.others)
