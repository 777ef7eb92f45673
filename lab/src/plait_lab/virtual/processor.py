"""A machine of a virtual cluster: it joins the rows of its groups, and hosts the protocols' party.

*Correct output.* Over all machines, every result once. Which rows come here, and which results
another machine finds, is the protocols' doing (`plait_lab.protocol`). Flagged rows make no result
among themselves (`engine.flags`), imported rows fill the states and find nothing
(`stored_groups.py`).

*Channels.* Each gate sends packets and flags in order. The packets of one tick are joined together,
when those of all gates are there; a flag is taken when everything before it in its channel has
been.

*Old rows.* A sender of PTLB has no old row left when the watermarks have passed all of them. If it
purges by lemma 2.2, as the paper's engine does, it also waits until no combination is as old: that
is what makes 2W of W.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from plait.engine.migrate.strategy import migrate
from plait.groups.balance.relocation import groups_to_move
from plait.groups.moves.move import Move
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.migration import Migration, Strategy
from plait.plan.routed import Plan
from plait_lab.protocol.actions import Choose, Drop, Export, Import, Reaction
from plait_lab.protocol.deliver import chosen, to_processor
from plait_lab.protocol.messages import Flag, Message, ReceivePartitions, processor_name
from plait_lab.protocol.parties import ProcessorParty
from plait_lab.protocol.ptlb import all_old_purged
from plait_lab.virtual.gates import TickRows
from plait_lab.virtual.stored_groups import Moved, StoredGroups
from plait_lab.virtual.timeline import MovedGroups

Item: TypeAlias = TickRows | Flag


@dataclass(slots=True)
class Done:
    """What a machine did in one go: the work, what came out, and what is to be sent afterwards."""

    work: float = 0.0
    results: list[pa.RecordBatch] = field(default_factory=list)
    messages: list[tuple[str, Message]] = field(default_factory=list)
    rows: int = 0
    tick: int | None = None
    """The tick whose packets were joined, if any."""
    migrated: Migration | None = None

    @property
    def found(self) -> int:
        """How many results."""
        return sum(batch.num_rows for batch in self.results)


class VirtualProcessor:
    """One machine; whoever hosts it keeps the time."""

    def __init__(self, party: ProcessorParty, store: StoredGroups) -> None:
        self.party = party
        self.store = store
        self.channels: list[deque[Item]] = [deque() for _ in store.progress]
        """One for each gate."""
        self.inbox: deque[Message] = deque()
        self.wanted: deque[tuple[Plan, Strategy]] = deque()
        """Plans to go on with, one after the other."""
        self.taken_in: dict[int, Moved] = {}
        """By the number of the move."""
        self._promised: dict[int, int] = {}
        """Groups that were chosen, and for which move."""
        self._old: dict[int, list[int]] = {}
        """For each move that is watched, the newest row of each stream from before it."""

    @property
    def plan(self) -> Plan:
        """What it runs, or is going to."""
        return self.store.engine.plan

    @property
    def queued(self) -> int:
        """Rows that have arrived and wait."""
        return sum(len(i) for c in self.channels for i in c if isinstance(i, TickRows))

    @property
    def tuples(self) -> int:
        """Tuples and combinations of its states, and tuples of its queues."""
        return len(self.store.kept) + self.store.combined + self.queued

    @property
    def nbytes(self) -> float:
        """Memory as it is counted: tuples of states and queues, a combination by its parts."""
        return float((self.store.parts + self.queued) * self.store.tuple_bytes)

    @property
    def height(self) -> int:
        """Levels of joins of its plan."""
        return _height(self.plan) if isinstance(self.plan, Join | Leaf) else 1

    # -- what it does when it is free

    @property
    def ready(self) -> bool:
        """Whether there is something to do."""
        if self.inbox or (self.wanted and not self.store.engine.migrating):
            return True
        if any(c and not isinstance(c[0], TickRows) for c in self.channels):
            return True
        return all(self.channels)

    def act(self) -> Done:
        """Answer a message, take a flag, change the plan, or join a tick: the first that is due."""
        done = Done()
        if self.inbox:
            self._tell(self.inbox.popleft(), done)
        elif (flag := self._next_flag()) is not None:
            self._tell(flag, done)
        elif self.wanted and not self.store.engine.migrating:
            self._migrate(done)
        else:
            self._join(done)
        done.results += self.store.results
        self.store.results = []
        return done

    def _next_flag(self) -> Flag | None:
        for channel in self.channels:
            if channel and not isinstance(channel[0], TickRows):
                flag = channel.popleft()
                assert not isinstance(flag, TickRows)
                return flag
        return None

    def _migrate(self, done: Done) -> None:
        plan, strategy = self.wanted.popleft()
        if plan == self.plan:
            return
        engine = self.store.engine
        found = migrate(engine, plan, strategy)
        done.migrated = found.record
        done.results += found.waited
        if strategy == "moving-state":
            done.work += self.store.meter.moved(engine, found.record)

    def _join(self, done: Done) -> None:
        packets = [p for channel in self.channels if isinstance(p := channel.popleft(), TickRows)]
        done.tick, done.rows = packets[0].tick, sum(map(len, packets))
        assert all(p.tick == done.tick for p in packets), "packets of one tick are joined together"
        done.work += self.store.join(packets)
        self._look_for_old(done)

    # -- messages of the protocols

    def _tell(self, message: Message, done: Done) -> None:
        """Let the party react, and do what it asks for."""
        reaction = to_processor(self.party, message)
        before = {group for group, _ in self.party.held}
        self.store.coming({group for group, _ in reaction.party.held} - before)
        self._react(reaction, done)

    def _react(self, reaction: Reaction[ProcessorParty], done: Done) -> None:
        self.party = reaction.party
        for action in reaction.actions:
            match action:
                case Choose():
                    self._choose(action, done)
                case Export():
                    done.messages += self._exported(action.move, done)
                case Import(move=move, partitions=MovedGroups() as cargo):
                    moved = self.store.take_in(move, cargo, self.party.held)
                    done.work += moved.work
                    self.taken_in.setdefault(move.number, Moved()).add(moved)
                case Drop():
                    done.work += self.store.drop(action.groups)
                case _:
                    pass
        done.messages += reaction.messages
        self._look_for_old(done)

    def _choose(self, action: Choose, done: Done) -> None:
        """Groups of about so much memory, of those that no other move has."""
        busy = {g for part in self.party.open for g in part.move.groups} | self._promised.keys()
        rows = np.sum(self.store.by_group(), axis=0)
        share = self.nbytes / rows.sum() if rows.sum() else 0.0
        mine = sorted({g for g, _ in self.party.held} - busy)
        groups = groups_to_move([(g, float(rows[g]) * share) for g in mine], action.amount)
        self._promised |= dict.fromkeys(groups, action.move)
        done.messages += chosen(self.party, action.move, groups).messages

    def settled(self, move: int) -> None:
        """A move is over: groups that were chosen for it may be chosen again."""
        self._promised = {g: m for g, m in self._promised.items() if m != move}
        self._old.pop(move, None)

    def _exported(self, move: Move, done: Done) -> Iterator[tuple[str, Message]]:
        """The live rows of the groups, for every receiver; see `actions.Export`."""
        me, store = self.party.number, self.store
        first = me == move.senders[0] or move.spread_before is None
        streams = [s for s in range(len(self.channels)) if first or s == move.spread_before]
        live = self.party.of_move(move, brought=False)
        shares, rows = store.exported(move, live, streams)
        done.work += rows * store.meter.costs.delete
        for receiver, some in zip(move.receivers, shares, strict=True):
            cargo = store.cargo(move.number, me, some, rows / max(1, len(store.kept)))
            yield processor_name(receiver), ReceivePartitions(move, me, cargo)

    def _look_for_old(self, done: Done) -> None:
        """Tell the manager when no row from before a PTLB move is left."""
        for move in self.party.watching:
            cutoffs = self.store.cutoffs
            if move.number not in self._old:
                live = dict(self.party.of_move(move, brought=False))
                self._old[move.number] = self.store.kept.newest_old(live, move.number, cutoffs)
            old = self._old[move.number]
            if any(t >= cutoff for t, cutoff in zip(old, cutoffs, strict=True)):
                continue
            if self.store.setup.purge.trees_only and self.store.combined_since <= max(old):
                continue
            reaction = all_old_purged(self.party, move.number)
            self.party = reaction.party
            done.messages += reaction.messages


def _height(plan: Node) -> int:
    if not isinstance(plan, Join):
        return 0
    return 1 + max(map(_height, plan.children))
