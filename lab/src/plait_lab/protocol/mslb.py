"""MSLB, the moving state: the groups stop, their rows travel, and they go on elsewhere.

1. ComputePartitionsToMove, 2. PartitionsToMove: the sender chooses groups.
3. DeactivatePartitions: every split takes the groups out of its mapping, buffers their new rows,
   and puts an EndOfPartitionInputFlag behind those that it has sent to each sender.
4. Deactivated: a split says it at once, a sender when it has the flag of every split.
5. SendPartitions: when all have stopped, the senders send
6. ReceivePartitions, the rows themselves, to the receivers. They match, insert and recompute.
7. Received: a receiver has the groups of every sender.
8. ReactivatePartitions: the splits map the groups to the receivers and release what they buffered;
   the senders, which have kept the groups so far, delete them.

*Giving up*, before the last Received has come: the splits map the groups to the senders again, and
release what they buffered to them; receivers delete what they have imported.

*Correct output.* No row of the groups is on its way to a processor between steps 4 and 8, so
exactly the senders have found the results of the rows before, and exactly the receivers find the
others, from the same rows.

*Invariants.* Until the manager has every Received, the senders' rows are the truth; after that, the
receivers'. Partitions that come twice are imported once. A processor may be both sender and
receiver (a group is spread over it and others): what it has sent and what it has received differ in
`since`, and only one of them survives the move.
"""

from __future__ import annotations

from dataclasses import replace

from plait_lab.protocol.actions import Buffer, Drop, Export, Import, Reaction, Release
from plait_lab.protocol.messages import (
    MANAGER,
    Deactivated,
    DeactivatePartitions,
    EndOfPartitionInputFlag,
    Flag,
    GiveUpPartitions,
    Order,
    ReactivatePartitions,
    Received,
    ReceivePartitions,
    SendPartitions,
    Settled,
)
from plait_lab.protocol.move_steps import ProtocolStep
from plait_lab.protocol.parties import ProcessorParty, Split, also
from plait_lab.protocol.tags import placed

STEPS = (
    ProtocolStep(DeactivatePartitions, ("splits", "senders"), Deactivated, ("splits", "senders")),
    ProtocolStep(SendPartitions, ("senders",), Received, ("receivers",)),
    ProtocolStep(
        ReactivatePartitions,
        ("splits", "senders", "receivers"),
        Settled,
        ("splits", "senders", "receivers"),
        revocable=False,
    ),
)


def to_split(split: Split, order: Order) -> Reaction[Split]:
    """A split gets a message of the manager."""
    move = order.move
    settled = ((MANAGER, split.settled(move)),)
    stopped = ((MANAGER, Deactivated(move.number, split.name)),)
    release = (Release(move.groups),)
    match order:
        case ReactivatePartitions() | GiveUpPartitions() if split.is_over(move):
            return Reaction(split, messages=settled)
        case DeactivatePartitions() if split.is_open(move):
            return Reaction(split, messages=stopped)
        case DeactivatePartitions() if not split.is_over(move):
            flag = EndOfPartitionInputFlag(move, split.number)
            flags = tuple((sender, flag) for sender in move.senders)
            return Reaction(split.begun(move), (Buffer(move.groups),), flags, stopped)
        case ReactivatePartitions() if split.is_open(move):
            return Reaction(split.over(move, placed(move)), release, messages=settled)
        case GiveUpPartitions():
            buffered = release if split.is_open(move) else ()
            return Reaction(split.over(move), buffered, messages=settled)
        case _:
            return Reaction(split)


def to_processor(
    processor: ProcessorParty, message: Order | Flag | ReceivePartitions
) -> Reaction[ProcessorParty]:
    """A processor gets a message of the manager or of a sender, or a flag of a split."""
    move = message.move
    settled = ((MANAGER, processor.settled(move)),)
    sends, receives = processor.number in move.senders, processor.number in move.receivers
    if processor.is_over(move):
        ends = isinstance(message, ReactivatePartitions | GiveUpPartitions)
        return Reaction(processor, messages=settled if ends else ())
    part = processor.part(move)
    deactivated = ((MANAGER, Deactivated(move.number, processor.name)),)
    stopped = len(part.finished) == processor.splits
    match message:
        case EndOfPartitionInputFlag() if sends:
            part = replace(part, finished=also(part.finished, message.split))
            stopped = len(part.finished) == processor.splits
            return Reaction(processor.within(part), messages=deactivated if stopped else ())
        case DeactivatePartitions() if sends:
            return Reaction(processor, messages=deactivated if stopped else ())
        case SendPartitions() if sends and stopped:
            return Reaction(processor, (Export(move),))
        case ReceivePartitions() if receives and message.sender in move.senders:
            return _received(processor, message)
        case ReactivatePartitions():
            sent = processor.of_move(move, brought=False)
            return Reaction(
                processor.over(move, sent), (Drop(sent),) if sent else (), messages=settled
            )
        case GiveUpPartitions():
            # Some of it may be there before all of it is, and `held` does not say so yet.
            brought = tuple((g, move.number) for g in move.groups) if part.arrived else ()
            return Reaction(
                processor.over(move, brought), (Drop(brought),) if brought else (), messages=settled
            )
        case _:
            return Reaction(processor)


def _received(processor: ProcessorParty, message: ReceivePartitions) -> Reaction[ProcessorParty]:
    """Imports what is new, and answers when nothing is missing."""
    move, before = message.move, processor.part(message.move)
    part = replace(before, arrived=also(before.arrived, message.sender))
    after = processor.within(part)
    imports = (Import(move, message.sender, message.partitions),) if part != before else ()
    if len(part.arrived) < len(move.senders):
        return Reaction(after, imports)
    received = ((MANAGER, Received(move.number, processor.name)),)
    return Reaction(after.with_groups(move), imports, messages=received)
