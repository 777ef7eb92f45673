"""Changes of the plan in turns, in every order in which messages can come, exhaustively.

A world is the planner of every site, the messages between each two of them, and how often somebody
may still lose patience. Some streams have changed, and their sites may measure that at any time, as
often as they like. Messages of one site to another keep their order, as the links of sites do;
between different pairs everything is possible. Windows are copied at once: what happens meanwhile
is explored by `switch_overs`.

`explore` visits all worlds that can be reached. In each in which nothing more can happen, all sites
must be idle, know the new rates, and follow one plan: that of algorithm 1 for these.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeAlias

from plait.codec import to_plain
from plait.errors import PlaitError
from plait.sites.planner.cost import paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.protocol.turns import InTurn, PlannerTurn, SitePlanner, Turns
from plait.sites.protocol.wire import turn_to_plain

Text: TypeAlias = str
"""A planner or message as JSON: what is the same has the same text."""
Pair: TypeAlias = tuple[str, str]

_LATE = 10**9
"""After every deadline."""


class World(NamedTuple):
    """Everything that matters for what can come next."""

    planners: tuple[tuple[str, Text], ...]
    """By site."""
    mail: tuple[tuple[Pair, tuple[Text, ...]], ...]
    """The messages of one site to another, in order."""
    patience: int
    """How often a site may still lose patience."""


@dataclass(frozen=True, slots=True)
class TurnsExplored:
    """What an exploration has seen."""

    worlds: int
    ends: int
    """Worlds in which nothing more can happen."""
    broken: tuple[str, ...]
    """What did not hold in the first world that is wrong."""


class TurnsExplorer:
    """All worlds of some sites whose streams change."""

    def __init__(self, turns: Turns, changes: Mapping[str, float]) -> None:
        self.turns = turns
        self.rates = dict(changes)
        self._homes = dict(turns.setting.sites.homes)
        self._planners: dict[Text, SitePlanner] = {}
        self._messages: dict[Text, InTurn] = {}
        self._known: dict[tuple[Text, str], tuple[Text, tuple[tuple[str, Text], ...]]] = {}
        """What a planner made of a message or of a stream that it measured."""

    def explore(self, patience: int = 0) -> TurnsExplored:
        """Visit every world, breadth first, up to the first that is wrong."""
        planners = tuple((name, self._text(self.turns.start(name))) for name in self.turns.names)
        first = World(planners, (), patience)
        seen, queue, ends = {first}, deque([first]), 0
        broken: tuple[str, ...] = ()
        while queue and not broken:
            world = queue.popleft()
            try:
                following = [after for after in self._events(world) if after != world]
            except (PlaitError, AssertionError) as error:
                broken = (f"a site fails: {error}",)
                break
            if not following:
                ends += 1
                broken = tuple(self._wrong(world))
            for after in following:
                if after not in seen:
                    seen.add(after)
                    queue.append(after)
        return TurnsExplored(len(seen), ends, broken)

    def _events(self, world: World) -> Iterator[World]:
        """Every world that can come next."""
        for stream in self.rates:
            yield self._measured(world, stream)
        for (origin, target), (text, *others) in world.mail:
            mail = dict(world.mail) | {(origin, target): tuple(others)}
            yield self._after(world._replace(mail=_sorted(mail)), target, text)
        if world.patience:
            for name, text in world.planners:
                planner = self._planners[text]
                if planner.switch is not None and not planner.switch.over:
                    given_up = self._settled(self.turns.time_out(planner, _LATE))
                    yield self._sent(world._replace(patience=world.patience - 1), name, *given_up)

    def _measured(self, world: World, stream: str) -> World:
        """The site of a stream has measured its new rate."""
        name = self._homes[stream]
        before = dict(world.planners)[name]
        if (before, stream) not in self._known:
            now = replace(self.turns.setting.statistics[stream], rate=self.rates[stream])
            turned, _ = self.turns.measured(self._planners[before], stream, now)
            self._known[before, stream] = self._settled(turned)
        return self._sent(world, name, *self._known[before, stream])

    def _after(self, world: World, name: str, message: Text) -> World:
        """A message has come to a site."""
        before = dict(world.planners)[name]
        if (before, message) not in self._known:
            turned = self.turns.receive(self._planners[before], self._messages[message], 0)
            self._known[before, message] = self._settled(turned)
        return self._sent(world, name, *self._known[before, message])

    def _sent(
        self, world: World, name: str, planner: Text, sent: Iterable[tuple[str, Text]]
    ) -> World:
        planners = tuple((n, planner if n == name else text) for n, text in world.planners)
        mail = dict(world.mail)
        for target, text in sent:
            mail[name, target] = (*mail.get((name, target), ()), text)
        return world._replace(planners=planners, mail=_sorted(mail))

    def _settled(self, turned: PlannerTurn) -> tuple[Text, tuple[tuple[str, Text], ...]]:
        """What a site does at once: hear itself, copy windows, end its part in a turn."""
        planner, sent = turned
        todo, told = deque(sent), []
        while True:
            if todo:
                one = todo.popleft()
                target = self._homes.get(one.sent.receiver, one.sent.receiver)
                if target != planner.me:
                    told.append((target, self._message(one)))
                    continue
                planner, sent = self.turns.receive(planner, one, 0)
            elif planner.plan and planner.switch and planner.switch.phase == "copying":
                planner, sent = self.turns.full(planner, 1)
            elif planner.switch is not None and planner.switch.over and not planner.done:
                planner, sent = self.turns.over(planner)
            else:
                return self._text(planner), tuple(told)
            todo.extend(sent)

    def _text(self, planner: SitePlanner) -> Text:
        text = json.dumps(to_plain(planner), sort_keys=True)
        self._planners.setdefault(text, planner)
        return text

    def _message(self, message: InTurn) -> Text:
        text = json.dumps(turn_to_plain(message), sort_keys=True)
        self._messages.setdefault(text, message)
        return text

    def _wrong(self, world: World) -> Iterator[str]:
        """What is not as it should be when nothing more can happen."""
        planners = [self._planners[text] for _, text in world.planners]
        if not all(p.done and not p.wanted and p.phase == "idle" for p in planners):
            yield "a turn does not end"
        adopted = {s: m.me.statistics for p in planners for s, m in p.members.items()}
        wanted = greedy(self.turns.setting.with_statistics(adopted))
        if any(planner.current != wanted for planner in planners):
            yield "sites follow other plans than that of algorithm 1"
        if {stream: adopted[stream].rate for stream in self.rates} != self.rates:
            yield "a change has had no effect"


def explore_turns(
    update: UpdateWay,
    changes: Mapping[str, float],
    *,
    sites: int = 3,
    patience: int = 0,
    made: type[Turns] = Turns,
) -> TurnsExplored:
    """Explore sites with the paper's settings, some of whose streams change their rate at once.

    >>> explore_turns("central", {"S1": 300.0}, sites=2).broken
    ()
    """
    turns = made(PlacementPolicy(update=update), paper_setting(sites))
    return TurnsExplorer(turns, changes).explore(patience)


def _sorted(mail: Mapping[Pair, tuple[Text, ...]]) -> tuple[tuple[Pair, tuple[Text, ...]], ...]:
    return tuple(sorted((pair, texts) for pair, texts in mail.items() if texts))
