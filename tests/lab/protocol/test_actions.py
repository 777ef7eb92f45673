"""What parties ask of their hosts: over whole moves, no more and no less than their contract."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any, get_args

import pytest

from plait.groups.moves.move import Protocol
from plait.groups.moves.places import Place
from plait_lab.protocol.actions import (
    Action,
    Buffer,
    Choose,
    Drop,
    Export,
    Import,
    MoveFinished,
    Reaction,
    Release,
    WatchOldRows,
)
from plait_lab.protocol.deliver import chosen, to_processor, to_split
from plait_lab.protocol.messages import MANAGER, Message, ReceivePartitions
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.ptlb import all_old_purged


class World:
    """A manager, two splits and two processors whose messages all arrive in order."""

    def __init__(self) -> None:
        places = (Place((0,)), Place((1,)))
        self.manager = MoveManager.of(2, 2, places)
        self.splits = {f"split-{s}": Split(s, places) for s in range(2)}
        self.processors = {f"processor-{p}": ProcessorParty.of(p, 2, places) for p in range(2)}
        self.flying: deque[tuple[str, Message]] = deque()
        self.asked: list[tuple[str, Action]] = []

    def note(self, name: str, reaction: Reaction[Any]) -> None:
        self.asked += [(name, action) for action in reaction.actions]
        self.flying += [(f"processor-{p}", flag) for p, flag in reaction.flags]
        self.flying += reaction.messages

    def run(self, begun: Reaction[MoveManager]) -> Counter[type[Action]]:
        self.manager = begun.party
        self.note(MANAGER, begun)
        while self.flying:
            name, message = self.flying.popleft()
            if name == MANAGER:
                answered = self.manager.on(message)
                self.manager = answered.party
                self.note(name, answered)
            elif name in self.splits:
                routed = to_split(self.splits[name], message)
                self.splits[name] = routed.party
                self.note(name, routed)
            else:
                before = len(self.asked)
                self.processor(name, to_processor(self.processors[name], message))
                for _, action in self.asked[before:]:
                    self.obey(name, action)
        return Counter(type(action) for _, action in self.asked)

    def processor(self, name: str, reaction: Reaction[ProcessorParty]) -> None:
        self.processors[name] = reaction.party
        self.note(name, reaction)

    def obey(self, name: str, action: Action) -> None:
        """What the host of a processor does."""
        party = self.processors[name]
        if isinstance(action, Choose):
            self.processor(name, chosen(party, action.move, [0]))
        elif isinstance(action, WatchOldRows):
            self.processor(name, all_old_purged(party, action.move.number))
        elif isinstance(action, Export):
            for receiver in action.move.receivers:
                rows = ReceivePartitions(action.move, party.number, "rows")
                self.flying.append((f"processor-{receiver}", rows))


WANTED: dict[Protocol, Counter[type]] = {
    "PTLB": Counter({Choose: 1, WatchOldRows: 1, Drop: 1, MoveFinished: 1}),
    "MSLB": Counter(
        {Choose: 1, Buffer: 2, Export: 1, Import: 1, Release: 2, Drop: 1, MoveFinished: 1}
    ),
}


@pytest.mark.parametrize("protocol", WANTED)
def test_a_whole_move_asks_for_everything_once(protocol: Protocol) -> None:
    world = World()
    assert world.run(world.manager.ask(protocol, 0, 1, 1e6)) == WANTED[protocol]
    assert world.manager.idle and world.manager.places[0] == Place((1,), None, 1)
    name, last = world.asked[-1]
    assert name == MANAGER and isinstance(last, MoveFinished) and last.done
    assert (last.move.groups, last.move.receivers) == ((0,), (1,))
    assert {p.held for p in world.processors.values()} == {(), ((0, 1), (1, 0))}
    assert all(split.places == world.manager.places for split in world.splits.values())


def test_every_action_is_asked_for_by_one_of_the_protocols() -> None:
    assert set(WANTED["PTLB"]) | set(WANTED["MSLB"]) == set(get_args(Action))
