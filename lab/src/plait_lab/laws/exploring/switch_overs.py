"""The two-phase switch-over under everything that can happen to it, exhaustively.

A world is the state of every site and the set of all messages ever sent. A message in the set may
be delivered at any time, any number of times, or never: that is delay, reordering, duplication and
loss at once. Sites save their state before they send, so a crash and a recovery is one event (with
the record or, before the first promise, without one). A crash for good is a site to which nothing
happens any more; as every world is checked, so is every point at which that can begin. A time-out
may come at any time, too.

`explore` visits all worlds that can be reached. `check` asks of each what must always hold, and
`conclude` lets it go on without further losses, with all sites up or one of them down for good.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from plait.sites.protocol.messages import Sent, SwitchMessage
from plait.sites.protocol.switch_over import (
    SwitchOver,
    SwitchTurn,
    begin,
    receive,
    time_out,
    windows_full,
)
from plait_lab.protocol.switch_recovery import recover, remind, without_record


@dataclass(frozen=True, slots=True)
class Rules:
    """How a site takes messages and time-outs: the protocol, or a broken one to be found out."""

    receive: Callable[[SwitchOver, SwitchMessage], SwitchTurn] = receive
    time_out: Callable[[SwitchOver], SwitchTurn] = time_out


PROTOCOL = Rules()


@dataclass(frozen=True, slots=True)
class World:
    """All sites, and every message that was ever sent."""

    sites: tuple[SwitchOver, ...]
    network: frozenset[Sent]

    def after(self, turn: SwitchTurn) -> World:
        """The world after a site's turn."""
        state, sent = turn
        sites = tuple(state if old.me == state.me else old for old in self.sites)
        return World(sites, self.network | frozenset(sent))

    def site(self, name: str) -> SwitchOver:
        """The site of a name."""
        return next(state for state in self.sites if state.me == name)


@dataclass(frozen=True, slots=True)
class Explored:
    """What an exploration has seen."""

    worlds: int
    events: int
    outcomes: frozenset[tuple[str, ...]]
    """The phases of all sites, in every world in which nothing is left to happen to them."""
    broken: tuple[str, ...]
    """What did not hold, the first of each kind."""


def start(names: Sequence[str]) -> World:
    """All sites, copying.

    >>> [state.phase for state in start("ab").sites]
    ['copying', 'copying']
    """
    return World(tuple(begin(1, name, names)[0] for name in names), frozenset())


def events(world: World, rules: Rules = PROTOCOL) -> Iterator[World]:
    """Every world that can come next."""
    for n, state in enumerate(world.sites):
        if not state.over:
            yield world.after(windows_full(state, _instant(n)))
            yield world.after(rules.time_out(state))
            yield world.after(recover(state))
            yield world.after(remind(state))
    for one in world.network:
        assert isinstance(one.message, SwitchMessage)
        state = world.site(one.receiver)
        yield world.after(rules.receive(state, one.message))
        if state.phase == "copying":
            # It crashed before it had saved anything.
            yield world.after(without_record(state.me, one.message))


def explore(
    names: Sequence[str] = ("N1", "N2", "N3"),
    rules: Rules = PROTOCOL,
    most: int | None = None,
) -> Explored:
    """Visit every world, or at most so many, breadth first.

    >>> found = explore(("N1", "N2"))
    >>> found.broken, sorted(found.outcomes)
    ((), [('given-up', 'given-up'), ('migrated', 'migrated')])
    """
    first = start(names)
    seen, queue, count = {first}, deque([first]), 0
    concluded: set[tuple[SwitchOver, ...]] = set()
    outcomes: set[tuple[str, ...]] = set()
    broken: dict[str, None] = {}
    while queue and (most is None or len(seen) < most):
        world = queue.popleft()
        broken |= dict.fromkeys(check(world))
        if world.sites not in concluded:
            concluded.add(world.sites)
            broken |= dict.fromkeys(conclude(world.sites, rules))
        if all(state.over for state in world.sites):
            outcomes.add(tuple(state.phase for state in world.sites))
        for after in events(world, rules):
            count += 1
            if after not in seen:
                seen.add(after)
                queue.append(after)
    return Explored(len(seen), count, frozenset(outcomes), tuple(broken))


def check(world: World) -> Iterator[str]:
    """What must hold in every world, and does not in this one."""
    phases = {state.phase for state in world.sites}
    if {"migrated", "given-up"} <= phases:
        yield "a site migrated and another gave up"
    instants = {state.instant for state in world.sites if state.phase == "migrated"}
    if len(instants) > 1 or None in instants:
        yield "sites migrated at different instants"
    if "migrated" in phases and not phases <= {"migrated", "global-ready"}:
        yield "a site migrated while another could still give up"


def conclude(sites: tuple[SwitchOver, ...], rules: Rules = PROTOCOL) -> Iterator[str]:
    """What does not come to an end from here, with all sites up or one of them down for good.

    All messages on their way are lost. Where some arrive first, that is another world.
    """
    end = run_on(sites, None, rules)
    if len({state.phase for state in end}) > 1 or not all(state.over for state in end):
        yield "all sites are up, and they do not come to one end"
    for down in (state.me for state in sites):
        alive = [state for state in run_on(sites, down, rules) if state.me != down]
        over = {state.phase for state in alive if state.over}
        if len(over) > 1 or (over and not all(state.over for state in alive)):
            yield "with a site down for good, the others do not come to one end"
        if not over and any(s.phase != "global-ready" or down not in s.missing for s in alive):
            yield "with a site down for good, the others wait without knowing for whom"


def run_on(
    sites: tuple[SwitchOver, ...], down: str | None = None, rules: Rules = PROTOCOL
) -> tuple[SwitchOver, ...]:
    """How it ends if nothing more is lost: windows fill, reminders and answers arrive.

    A site that is down neither takes nor sends anything more. Where a site still waits and nothing
    more arrives, its time is out.
    """
    world = World(sites, frozenset())
    for timed in (False, True, True):
        for n, state in enumerate(world.sites):
            if state.me == down or state.over:
                continue
            if timed:
                world = world.after(rules.time_out(state))
            elif state.phase == "copying":
                world = world.after(windows_full(state, _instant(n)))
            world = world.after(remind(world.site(state.me)))
        world = _delivered(world, down, rules)
    return world.sites


def _delivered(world: World, down: str | None, rules: Rules) -> World:
    """Everything between sites that are up arrives, until there is nothing new."""
    arrived: set[Sent] = set()
    while new := [s for s in world.network if s not in arrived and s.receiver != down]:
        for one in sorted(new, key=lambda sent: (sent.receiver, sent.sender, str(sent.message))):
            arrived.add(one)
            assert isinstance(one.message, SwitchMessage)
            world = world.after(rules.receive(world.site(one.receiver), one.message))
    return world


def _instant(site: int) -> int:
    """Instants differ, and are not in the order of the names."""
    return 10 + 7 * site % 5
