"""Where a message or flag for a split or a processor goes in: the protocol of its move reacts.

>>> from plait_lab.protocol.move_manager import MoveManager
>>> from plait_lab.protocol.parties import ProcessorParty, Split
>>> from plait.groups.moves.places import Place
>>> begun = MoveManager.of(2, 1, [Place((0,))]).begin("PTLB", [0], [1])
>>> begun.messages[0][0], type(begun.messages[0][1]).__name__
('split-0', 'DuplicatePartitions')
>>> duplicating = to_split(Split(0, begun.party.places), begun.messages[0][1])
>>> duplicating.party.route(0, stream=0, pick=0)
((0, Tag(since=0, flag=1)), (1, Tag(since=1, flag=0)))
>>> sender = ProcessorParty.of(0, 1, begun.party.places)
>>> to_processor(sender, duplicating.flags[0][1]).actions
(WatchOldRows(move=Move(number=1, protocol='PTLB', groups=(0,), senders=(0,), ...)),)
"""

from __future__ import annotations

from collections.abc import Iterable

from plait_lab.protocol import mslb, ptlb
from plait_lab.protocol.actions import Choose, Reaction
from plait_lab.protocol.messages import (
    MANAGER,
    ComputePartitionsToMove,
    Flag,
    Message,
    Order,
    PartitionsToMove,
    ReceivePartitions,
)
from plait_lab.protocol.parties import ProcessorParty, Split


def to_split(split: Split, message: Message) -> Reaction[Split]:
    """A split gets a message; one that is not for it changes nothing."""
    if not isinstance(message, Order):
        return Reaction(split)
    if message.move.protocol == "PTLB":
        return ptlb.to_split(split, message)
    return mslb.to_split(split, message)


def to_processor(processor: ProcessorParty, message: Message) -> Reaction[ProcessorParty]:
    """A processor gets a message, or a flag; one that is not for it changes nothing."""
    if isinstance(message, ComputePartitionsToMove):
        return Reaction(processor, (Choose(message.move, message.amount),))
    if not isinstance(message, Order | Flag | ReceivePartitions):
        return Reaction(processor)
    if message.move.protocol == "MSLB":
        return mslb.to_processor(processor, message)
    if isinstance(message, ReceivePartitions):
        return Reaction(processor)
    return ptlb.to_processor(processor, message)


def chosen(processor: ProcessorParty, move: int, groups: Iterable[int]) -> Reaction[ProcessorParty]:
    """The host of a sender says which groups are to move (see `actions.Choose`).

    >>> chosen(ProcessorParty(0, 1), 7, [3]).messages
    (('manager', PartitionsToMove(move=7, by='processor-0', groups=(3,))),)
    """
    answer = PartitionsToMove(move, processor.name, tuple(groups))
    return Reaction(processor, messages=((MANAGER, answer),))
