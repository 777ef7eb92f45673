"""The engine of a machine and the rows that it holds, as partition groups come and go.

*Correct output.* The engine has exactly the rows of the groups that are ours; rows whose results
were found elsewhere fill its states and find nothing.

*Groups that leave.* Their rows are forgotten, and the engine is filled again without them, under
its own plan. In the middle of a parallel track that would end the track, so it waits: rows of a
group that is gone find nothing. It cannot wait if the group comes back.

*Work* is what the engine counted, at the prices of the meter. A tuple that is sent or dropped costs
a deletion and one that is imported an insertion; states that match are charged as moved, the others
as recomputed, although the engine recomputes all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.engine.tactics.operators import Operator
from plait.groups.moves.move import Move
from plait.groups.moves.transfer import Transfer
from plait.kernels.jit import Ints
from plait.node.node import Setup
from plait.plan.steps import StreamSet
from plait_lab.virtual.accounting import Meter
from plait_lab.virtual.gates import Copies, GroupsOf, TickRows
from plait_lab.virtual.kept_rows import KeptRows, within
from plait_lab.virtual.timeline import MovedGroups


@dataclass(slots=True)
class Moved:
    """What a machine has taken in for a move."""

    rows: int = 0
    matched: int = 0
    """Combinations of states that the sender had as well."""
    recomputed: int = 0
    work: float = 0.0

    def add(self, other: Moved) -> None:
        """What came from another sender."""
        self.rows += other.rows
        self.matched += other.matched
        self.recomputed += other.recomputed
        self.work += other.work


class StoredGroups:
    """An engine at work, with its rows beside it."""

    def __init__(
        self, setup: Setup, meter: Meter, groups_of: GroupsOf, groups: int, tuple_bytes: int
    ) -> None:
        self.setup = setup
        self.meter = meter
        self.tuple_bytes = tuple_bytes
        self.engine = setup.engine(setup.plan)
        self.kept = KeptRows(len(setup.query.streams))
        self.progress = [BEFORE_ALL_TIMES] * len(setup.query.streams)
        self.results: list[pa.RecordBatch] = []
        """Results that nobody has taken yet."""
        self._groups_of = groups_of
        self._groups = groups
        self._dead: set[int] = set()
        """Groups of which rows are in the engine that are not ours any more."""
        self._waiting: dict[int, int] = {}
        """Groups whose imported rows are not in the engine yet, and the move that brought them."""

    # -- what it holds

    @property
    def cutoffs(self) -> list[int]:
        """Rows from before these times can join nothing that is still to come."""
        return [base.cutoff(self.progress) for base in self.engine.bases]

    @property
    def combined(self) -> int:
        """Combinations in the states."""
        return sum(len(state) for state in self.engine.tactic.combined)

    @property
    def parts(self) -> int:
        """Tuples of the states, a combination by its parts."""
        return len(self.kept) + sum(
            len(state) * len(state.streams) for state in self.engine.tactic.combined
        )

    @property
    def combined_since(self) -> int:
        """The earliest time of a tuple in any combination."""
        found = [state.earliest for state in self.engine.tactic.combined]
        return min((t for t in found if t is not None), default=-BEFORE_ALL_TIMES)

    def by_group(self) -> list[Ints]:
        """Live rows of each group, by stream."""
        return self.kept.by_group(self._groups, self.cutoffs)

    # -- rows

    def join(self, packets: Sequence[TickRows]) -> float:
        """Join the packets of a tick, one of each stream; the work that was."""
        arrivals = {}
        for stream, packet in enumerate(packets):
            if not len(packet):
                continue
            for copies in packet.copies:
                self.kept.add(stream, copies)
            rows = pa.concat_batches([c.rows for c in packet.copies])
            flags = np.concatenate([c.flags for c in packet.copies])
            arrivals[stream] = self.engine.admit(
                stream, rows, BEFORE_ALL_TIMES, flags if flags.any() else None
            ).arrivals
        self.progress = [p.progress for p in packets]
        before, found = self.meter.read(self.engine), 0
        for batch in self.engine.push(arrivals, self.progress):
            self.results.append(batch)
            found += batch.num_rows
        work = self.meter.since(before, found)
        self.kept.expire(self.cutoffs)
        self._clean_if_due()
        return work

    # -- groups

    def exported(
        self, move: Move, live: Collection[tuple[int, int]], streams: Collection[int]
    ) -> tuple[list[dict[int, pa.RecordBatch]], int]:
        """The live rows of groups for each receiver, and how many rows there are in all."""
        cutoffs, rows = self.cutoffs, dict[int, pa.RecordBatch]()
        for stream in streams:
            mine = self.kept.of(stream, cutoffs[stream], live)
            if mine is not None:
                rows[stream] = mine.rows
        several = len(move.receivers)
        shares = [
            {s: _divided(r, several, place) if s == move.spread else r for s, r in rows.items()}
            for place in range(several)
        ]
        return shares, sum(part.num_rows for part in rows.values())

    def cargo(
        self, move: int, sender: int, rows: dict[int, pa.RecordBatch], share: float
    ) -> MovedGroups:
        """Rows on their way, with the combinations of their states by their share of the rows."""
        raw = Transfer(move, sender, 0, rows).to_bytes()
        states = frozenset(state.streams for state in self.engine.tactic.combined)
        combined = (self.parts - len(self.kept)) * self.tuple_bytes
        return MovedGroups(raw, states, round(share * combined))

    def take_in(self, move: Move, cargo: MovedGroups, held: Collection[tuple[int, int]]) -> Moved:
        """Store rows; fill the states with them, unless older ones of their groups are held."""
        transfer = Transfer.from_bytes(cargo.raw)
        groups, moved = set(move.groups), Moved()
        copies = {}
        for stream, rows in transfer.rows.items():
            copies[stream] = self._as_copies(stream, rows, move.number)
            self.kept.add(stream, copies[stream])
        there = any(g in groups and since != move.number for g, since in held)
        if not there and not groups & self._dead:
            self._fill(copies, cargo.states, moved)
            return moved
        moved.rows = sum(map(len, copies.values()))
        moved.work = moved.rows * self.meter.costs.insert
        if there:
            self._waiting |= dict.fromkeys(groups, move.number)
        else:
            self._refill()
        return moved

    def coming(self, groups: Collection[int]) -> None:
        """Rows of these groups are about to come: what they left behind must be gone by then."""
        if self._dead.intersection(groups):
            self._refill()

    def _as_copies(self, stream: int, rows: pa.RecordBatch, since: int) -> Copies:
        times = event_times(rows.column(self.setup.query.streams[stream].time))
        tags = np.full(len(times), since, np.int64)
        groups = self._groups_of(stream, rows)
        return Copies(rows, times, groups, tags, np.zeros(len(times), np.int64))

    def _fill(self, copies: dict[int, Copies], matched: frozenset[StreamSet], moved: Moved) -> None:
        """Take rows in whose results were found before, and charge it as the paper does."""
        arrivals = self._admitted(copies)
        before = {s.streams: len(s) for s in self.engine.tactic.combined}
        joins = list(self.engine.operators)
        spent = [self._spent(operator) for operator in joins]
        self.engine.restore(arrivals, self.progress)
        rows = sum(map(len, arrivals.values()))
        work = rows * self.meter.costs.insert
        for operator, was in zip(joins, spent, strict=True):
            state = operator.kept
            if state is None:
                continue
            came = max(0, len(state) - before[state.streams])
            work += came * self.meter.costs.insert
            if state.streams in matched:
                moved.matched += came
            else:
                moved.recomputed += came
                work += self._spent(operator) - was
        moved.rows += rows
        moved.work += work

    def _admitted(self, copies: dict[int, Copies]) -> dict[int, Arrivals]:
        """Rows as the engine takes them."""
        arrivals = {}
        for stream, part in copies.items():
            flags = part.flags if part.flags.any() else None
            given = self.engine.admit(stream, part.rows, BEFORE_ALL_TIMES, flags)
            arrivals[stream] = given.arrivals
        return arrivals

    def _spent(self, operator: Operator) -> float:
        """What a join has spent on lookups so far."""
        costs, total = self.meter.costs, 0.0
        for given in operator.counters.inputs:
            for step in given.steps:
                total += step.probes * costs.probe + step.visited * costs.visit
                total += step.matches * costs.match
        return total

    def drop(self, pairs: Collection[tuple[int, int]]) -> float:
        """Forget rows, and have an engine without them as soon as that is possible; the work."""
        apart = {(g, since) for g, since in pairs if self._waiting.get(g) == since}
        dropped = self.kept.drop(pairs)
        work = dropped * self.meter.costs.delete
        for group, _ in apart:
            del self._waiting[group]
        gone = {g for g, since in pairs if (g, since) not in apart}
        if not gone or not (dropped or gone & self._waiting.keys()):
            return work
        self._dead |= gone
        if gone & self._waiting.keys():
            for group in gone:
                self._waiting.pop(group, None)
            self._refill()
        self._clean_if_due()
        return work

    def _clean_if_due(self) -> None:
        """Fill the engine again if it has rows that are not ours, unless a track would end."""
        if self._dead and not self.engine.migrating:
            self._refill()

    def _refill(self) -> None:
        """An engine of the same plan with the rows that are ours."""
        self.results += self.engine.finish()
        self.engine = self.setup.engine(self.engine.plan)
        waiting = set(self._waiting.items())
        copies = {}
        for stream, cutoff in enumerate(self.cutoffs):
            one = self.kept.whole(stream, cutoff)
            if one is not None and waiting:
                one = one.chosen(np.flatnonzero(~within(one, waiting)))
            if one is not None and len(one):
                copies[stream] = one
        self.engine.restore(self._admitted(copies), self.progress)
        self._dead = set()


def _divided(rows: pa.RecordBatch, parts: int, place: int) -> pa.RecordBatch:
    """Every so-manieth row."""
    return rows.take(pa.array(np.arange(place, rows.num_rows, parts)))
