"""What a processor does about partition groups that come and go: decisions, without I/O.

*Correct output.* After every batch, the rows that are ours are those of the groups that the table
puts here, each once.

*How a move looks from here.* The table of a batch says which moves are under way and which ones it
ends (`plait.groups.routing.table`). A batch boundary is a barrier: all rows of a batch are routed
by one table. So nothing is in flight when a table takes effect, and deactivating and draining a
group, steps 3 and 4 of MSLB, cost nothing.

*All or none.* Each pack task sends something to every processor, so in a batch either all
processors run or, if no input has a partition, none does. Nothing here counts the host's batches:
segments number those in which this processor ran, a transfer is numbered by the batches that the
processors of its move have run since it began, and tables that no batch went by are gone through
together with the next one.

- PTLB: while it is under way, the sender gets the new rows flagged, and the receiver gets copies.
  When all segments from before the move have expired, the sender says so (AllOldPurged). The table
  that ends the move is DeletePartitions.
- MSLB: in the first batch of the move the sender exports the rows of the groups, and in each later
  one what came in addition (SendPartitions). The receiver checks what was exported and says so
  (Received). The table that ends the move is ReactivatePartitions: the receiver takes in what was
  exported, and recomputes all combinations of it under its own plan.

*Rows left behind.* Rows of a group that has gone stay in windows and segments until they expire.
They find nothing, because no row of their keys comes here any more. `gone` says from which segment
on a group is no longer ours, so they are neither exported nor restored. If the group comes back
while some of them are alive, the engine is rebuilt without them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from plait.errors import CheckpointDamaged
from plait.groups.moves.move import Move
from plait.groups.routing.table import Table


@dataclass(frozen=True, slots=True)
class Moving:
    """What a processor knows about moves after a batch; part of its header."""

    table: int = 0
    """The number of the table by which the last batch was routed."""
    gone: Mapping[int, int] = field(default_factory=dict)
    """For groups that have left: rows in segments before this one are no longer ours."""
    begun: Mapping[int, int] = field(default_factory=dict)
    """The moves that are under way here, and the first segment of each."""
    checked: frozenset[int] = frozenset()
    """The moves of which all that was exported first could be read here."""

    @property
    def at_rest(self) -> bool:
        """Whether no group has ever moved."""
        return not self.table

    def dead(self, segment: int) -> frozenset[int]:
        """The groups whose rows in a segment are no longer ours."""
        return frozenset(group for group, since in self.gone.items() if segment < since)

    def purged(self, segments: Iterable[int]) -> Moving:
        """Without what only segments that have expired needed."""
        if not self.gone:
            return self
        oldest = min(segments, default=None)
        kept = {g: s for g, s in self.gone.items() if oldest is not None and oldest < s}
        return replace(self, gone=kept)


@dataclass(frozen=True, slots=True)
class MoveActions:
    """What to do in the first batch, or another one, that is routed by a table."""

    moving: Moving
    clean: frozenset[int] = frozenset()
    """Groups that come back; rows that they left behind must not be in the engine any more."""
    take_in: tuple[Move, ...] = ()
    """Take in what was exported."""
    export: tuple[Move, ...] = ()
    """Export after the batch: everything in the first batch of a move, then what has come."""
    check: tuple[Move, ...] = ()
    """Check what was exported first."""
    watch: tuple[Move, ...] = ()
    """Say when nothing is left from before the move."""


def enter(
    before: Moving, table: Table, me: int, segment: int, missed: Sequence[Table] = ()
) -> MoveActions:
    """What a processor does in a batch, whose rows become the segment of this number.

    `missed` are the tables before this one that no batch went by.
    """
    gone, begun, checked = dict(before.gone), dict(before.begun), set(before.checked)
    clean: set[int] = set()
    take_in: list[Move] = []
    changes = [] if table.number == before.table else [*missed, table]
    first = before.table + 1
    if [change.number for change in changes] != list(range(first, first + len(changes))):
        raise CheckpointDamaged(
            f"processor {me} was at routing table {before.table}, and this batch is routed by "
            f"table {table.number}: the tables between them are missing",
            remedy="put the folder plait/ of the checkpoint back as it was; it says which "
            "processor holds which partition group",
        )
    for change in changes:
        for move in change.ended:
            begun.pop(move.number, None)
            checked.discard(move.number)
            if me in move.senders:
                gone |= dict.fromkeys(move.groups, segment)
            if me in move.receivers and move.protocol == "MSLB":
                clean |= set(move.groups)
                take_in.append(move)
        for move in change.given_up:
            begun.pop(move.number, None)
            checked.discard(move.number)
            if me in move.receivers and move.protocol == "PTLB":
                gone |= dict.fromkeys(move.groups, segment)
        for move in change.under_way:
            if move.number not in begun and me in (*move.senders, *move.receivers):
                begun[move.number] = segment
                if me in move.receivers and move.protocol == "PTLB":
                    clean |= set(move.groups)
    under_way = [move for move in table.under_way if move.number in begun]
    sends = [m for m in under_way if m.protocol == "MSLB" and me in m.senders]
    gets = [m for m in under_way if m.protocol == "MSLB" and me in m.receivers]
    return MoveActions(
        Moving(table.number, gone, begun, frozenset(checked)),
        frozenset(clean & gone.keys()),
        tuple(take_in),
        tuple(sends),
        tuple(m for m in gets if m.number not in checked and begun[m.number] < segment),
        tuple(m for m in under_way if m.protocol == "PTLB" and me in m.senders),
    )


def exported_groups(table: Table, move: Move, me: int, stream: int) -> tuple[int, ...]:
    """The groups of a move whose rows of a stream this sender exports.

    Of a group that is spread over several senders, each has its share of the divided stream, and
    all have the same rows of the others: those are exported by the first sender only.
    """
    divided = dict(table.spread)
    return tuple(
        g for g in move.groups if divided.get(g, stream) == stream or me == move.senders[0]
    )
