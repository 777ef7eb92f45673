"""A small world in which partition groups move: splits, processors, channels and a bad network.

The parties are those of `plait_lab.protocol`. Around them is as little as shows a wrong answer:
processors that hold rows and join them naively, splits that send a short history, channels of rows
that keep their order, and a network that loses, repeats and reorders messages within a budget.
`exploring.py` walks through all of its states.

A host commits a party with its rows, and then sends its messages. So a crash is seen as the loss of
what the party would have sent and of what was on its way to it; that a party survives as plain data
is checked for every value that it ever takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from plait.codec import from_plain, to_plain
from plait.groups.moves.move import Protocol
from plait.groups.moves.places import Place
from plait_lab.protocol.actions import (
    Choose,
    Drop,
    Export,
    Import,
    Reaction,
    Release,
)
from plait_lab.protocol.deliver import chosen, to_processor, to_split
from plait_lab.protocol.messages import Flag, Message, ReceivePartitions, processor_name
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.ptlb import all_old_purged
from plait_lab.protocol.tags import Tag, finds, is_old

END = 1 << 30
"""The time after all rows."""


class Violation(Exception):
    """Something that must not happen."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a history; rows of one group that are close in time join."""

    id: int
    stream: int
    group: int
    ts: int


@dataclass(frozen=True, slots=True)
class Copy:
    """A row on its way to a processor, or there."""

    row: Row
    tag: Tag


@dataclass(frozen=True, slots=True)
class Beat:
    """No row before this time comes from the split any more."""

    ts: int


Item: TypeAlias = Copy | Beat | Flag
Result: TypeAlias = tuple[int, ...]
Sent: TypeAlias = tuple[tuple[str, Message], ...]


@dataclass(frozen=True, slots=True)
class Wish:
    """A move that somebody wants; with `ask`, the sender chooses the groups."""

    protocol: Protocol
    groups: tuple[int, ...]
    receivers: tuple[int, ...]
    spread: int | None = None
    ask: bool = False


@dataclass(frozen=True, slots=True)
class Rules:
    """The code under test; replace one to see whether an error would be found."""

    to_split: Callable[[Split, Message], Reaction[Split]] = to_split
    to_processor: Callable[[ProcessorParty, Message], Reaction[ProcessorParty]] = to_processor
    to_manager: Callable[[MoveManager, Message], Reaction[MoveManager]] = MoveManager.on
    finds: Callable[[Iterable[Tag]], bool] = finds
    beats_wait: bool = True
    """Whether a split's progress waits for the rows that it buffers."""


@dataclass(frozen=True, slots=True)
class FaultBudget:
    """How much may go wrong."""

    losses: int = 0
    repeats: int = 0
    crashes: int = 0
    ticks: int = 0
    """Times that the manager repeats itself although messages are under way."""
    give_ups: int = 0


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens, apart from the order in which it happens."""

    streams: int
    window: int
    histories: tuple[tuple[Row, ...], ...]
    """For each split, in the order of time."""
    places: tuple[Place, ...]
    processors: int
    wishes: tuple[Wish, ...]
    budget: FaultBudget = FaultBudget()
    lag: int = 0
    """A split waits while a processor has more than so many of its rows and flags to take."""
    keep_dead: bool = False
    """Whether processors leave dead rows where they are."""
    together: bool = False
    """Whether a wish may come true while another move is under way."""
    rules: Rules = Rules()


def answer(scenario: Scenario) -> frozenset[Result]:
    """The results by definition."""
    rows = [row for history in scenario.histories for row in history]
    streams = [[row for row in rows if row.stream == s] for s in range(scenario.streams)]
    return frozenset(
        _result(parts) for parts in product(*streams) if _joins(parts, scenario.window)
    )


def _joins(parts: Iterable[Row], window: int) -> bool:
    times = [row.ts for row in parts]
    return len({row.group for row in parts}) == 1 and max(times) - min(times) <= window


def _result(parts: Iterable[Row]) -> Result:
    return tuple(sorted(row.id for row in parts))


@dataclass(frozen=True, slots=True)
class Machine:
    """A processor with its rows, and how far each split has come."""

    processor: ProcessorParty
    copies: frozenset[Copy]
    progress: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """A split with the rows it has still to send, and those it buffers."""

    split: Split
    position: int = 0
    buffered: tuple[Row, ...] = ()
    promised: int = 0
    """The last beat."""


@dataclass(frozen=True, slots=True)
class Done:
    """What one party did."""

    party: Machine | Gate | MoveManager
    results: tuple[Result, ...] = ()
    items: tuple[tuple[int, Item], ...] = ()
    sent: Sent = ()


def start(scenario: Scenario) -> tuple[MoveManager, tuple[Gate, ...], tuple[Machine, ...]]:
    """All parties before anything happens."""
    splits = len(scenario.histories)
    manager = MoveManager.of(scenario.processors, splits, scenario.places)
    gates = tuple(Gate(Split(s, scenario.places)) for s in range(splits))
    machines = tuple(
        Machine(ProcessorParty.of(p, splits, scenario.places), frozenset(), (0,) * splits)
        for p in range(scenario.processors)
    )
    return manager, gates, machines


def survives(party: Machine | Gate | MoveManager) -> bool:
    """Whether a party is the same after it was written and read."""
    match party:
        case MoveManager():
            return party == _reread(MoveManager, party)
        case Gate():
            return party.split == _reread(Split, party.split)
        case Machine():
            return party.processor == _reread(ProcessorParty, party.processor)


def _reread(kind: type[object], value: object) -> object:
    return from_plain(kind, json.loads(json.dumps(to_plain(value))))


# --- splits ------------------------------------------------------------------------------------


def send_row(scenario: Scenario, gate: Gate) -> Done:
    """A split sends its next row."""
    row = scenario.histories[gate.split.number][gate.position]
    after = replace(gate, position=gate.position + 1)
    return _routed(scenario, after, (row,), ())


def tell_split(scenario: Scenario, gate: Gate, message: Message) -> Done:
    """A split gets a message."""
    reaction = scenario.rules.to_split(gate.split, message)
    after = replace(gate, split=reaction.party)
    released: list[Row] = []
    for action in reaction.actions:
        if isinstance(action, Release):
            released += [row for row in after.buffered if row.group in action.groups]
            kept = tuple(row for row in after.buffered if row.group not in action.groups)
            after = replace(after, buffered=kept)
    return replace(_routed(scenario, after, released, reaction.flags), sent=reaction.messages)


def _routed(
    scenario: Scenario, gate: Gate, rows: Iterable[Row], flags: Iterable[tuple[int, Flag]]
) -> Done:
    """Flags, then rows, then a beat for every processor if there is progress."""
    items: list[tuple[int, Item]] = list(flags)
    for row in rows:
        targets = gate.split.route(row.group, row.stream, row.id)
        if targets is None:
            gate = replace(gate, buffered=(*gate.buffered, row))
        else:
            items += [(processor, Copy(row, tag)) for processor, tag in targets]
    history = scenario.histories[gate.split.number]
    progress = history[gate.position].ts if gate.position < len(history) else END
    if scenario.rules.beats_wait:
        progress = min([progress, *(row.ts for row in gate.buffered)])
    if progress > gate.promised:
        items += [(p, Beat(progress)) for p in range(scenario.processors)]
        gate = replace(gate, promised=progress)
    return Done(gate, items=tuple(items))


# --- processors --------------------------------------------------------------------------------


def take_item(scenario: Scenario, machine: Machine, split: int, item: Item) -> Done:
    """A processor takes the next item of a split's channel."""
    match item:
        case Copy():
            if (item.row.group, item.tag.since) not in machine.processor.held:
                raise Violation(f"{machine.processor.name} does not hold the group of {item}")
            results = tuple(_found(scenario, machine, item))
            after = replace(machine, copies=machine.copies | {item})
            return replace(_purged(scenario, after), results=results)
        case Beat():
            progress = tuple(item.ts if s == split else ts for s, ts in enumerate(machine.progress))
            return _purged(scenario, replace(machine, progress=progress))
        case _:
            return tell_processor(scenario, machine, item)


def _found(scenario: Scenario, machine: Machine, new: Copy) -> Iterable[Result]:
    """What a new row makes with those that are there."""
    others = [
        [c for c in machine.copies if c.row.stream == s]
        for s in range(scenario.streams)
        if s != new.row.stream
    ]
    for parts in product([new], *others):
        rows = [c.row for c in parts]
        if _joins(rows, scenario.window) and scenario.rules.finds(c.tag for c in parts):
            yield _result(rows)


def tell_processor(scenario: Scenario, machine: Machine, message: Message) -> Done:
    """A processor gets a message, or a flag."""
    reaction = scenario.rules.to_processor(machine.processor, message)
    copies = machine.copies
    sent = list(reaction.messages)
    for action in reaction.actions:
        match action:
            case Drop() if not scenario.keep_dead:
                copies = frozenset(
                    c for c in copies if (c.row.group, c.tag.since) not in action.groups
                )
            case Import(move=move, partitions=tuple() as rows):
                copies = copies | {Copy(row, Tag(move.number)) for row in rows}
            case Export():
                sent += _exported(machine, action)
            case Choose():
                groups = [group for group, _ in machine.processor.held]
                sent += chosen(machine.processor, action.move, groups).messages
    after = _purged(scenario, replace(machine, processor=reaction.party, copies=copies))
    return replace(after, sent=(*sent, *after.sent))


def _exported(machine: Machine, action: Export) -> Iterable[tuple[str, Message]]:
    """What a sender sends to each receiver; see `Export`."""
    move, sender = action.move, machine.processor.number
    live = dict(machine.processor.of_move(move, brought=False))
    rows = sorted(
        (
            c.row
            for c in machine.copies
            if live.get(c.row.group) == c.tag.since
            and (c.row.stream == move.spread_before or sender == move.senders[0])
        ),
        key=lambda row: row.id,
    )
    for i, receiver in enumerate(move.receivers):
        share = tuple(
            row for row in rows if row.stream != move.spread or row.id % len(move.receivers) == i
        )
        yield processor_name(receiver), ReceivePartitions(move, sender, share)


def _purged(scenario: Scenario, machine: Machine) -> Done:
    """Without the rows that no row to come can join; a sender says when its old ones are gone."""
    past = min(machine.progress) - scenario.window
    copies = frozenset(c for c in machine.copies if c.row.ts >= past)
    processor = machine.processor
    sent: list[tuple[str, Message]] = []
    for move in processor.watching:
        live = dict(processor.of_move(move, brought=False))
        if not any(
            c.row.group in live and is_old(c.tag, live[c.row.group], move.number) for c in copies
        ):
            reaction = all_old_purged(processor, move.number)
            processor = reaction.party
            sent += reaction.messages
    return Done(Machine(processor, copies, machine.progress), sent=tuple(sent))
