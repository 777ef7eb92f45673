"""The messages by which partition groups move, with the names that D-CAPE gives them.

The distribution manager talks to the processors and to the splits, which route the rows. A split
also sends *flags* along with the rows of a processor: they arrive after all rows it sent before.
Every message names its move, so that one which is late or repeated is recognised. Those that change
something carry the whole `Move`: they can be understood by a party that missed the others.

The paper's network loses nothing and its machines do not fail. For those that do there are three
messages more: `StartOfPartitions` (behind it, a sender gets flagged rows only), `GiveUpPartitions`,
and `Settled`, with which every party answers the last message of a move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from plait.groups.moves.move import Move

MANAGER = "manager"


def split_name(split: int) -> str:
    """The address of a split.

    >>> split_name(0)
    'split-0'
    """
    return f"split-{split}"


def processor_name(processor: int) -> str:
    """The address of a processor.

    >>> processor_name(3)
    'processor-3'
    """
    return f"processor-{processor}"


@dataclass(frozen=True, slots=True)
class ComputePartitionsToMove:
    """Manager to sender: choose groups of about this much memory."""

    move: int
    amount: float


@dataclass(frozen=True, slots=True)
class PartitionsToMove:
    """Sender to manager: the groups chosen."""

    move: int
    by: str
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DuplicatePartitions:
    """Manager to sender and splits (PTLB): new rows go to both, flagged at the sender."""

    move: Move


@dataclass(frozen=True, slots=True)
class StartOfPartitions:
    """Split to sender and receiver, among its rows (PTLB): from here on, rows go to both."""

    move: Move
    split: int


@dataclass(frozen=True, slots=True)
class AllOldPurged:
    """Sender to manager (PTLB): no row of the groups from before the move is left."""

    move: int
    by: str


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """Manager to all (PTLB): from now on only the receiver gets the rows."""

    move: Move


@dataclass(frozen=True, slots=True)
class EndOfPartitions:
    """Split, behind its rows (PTLB): no more rows of the groups come.

    It goes to the sender when the move is completed, and to the receiver when it is given up.
    """

    move: Move
    split: int


@dataclass(frozen=True, slots=True)
class DeactivatePartitions:
    """Manager to senders and splits (MSLB): buffer new rows of the groups, finish the old ones."""

    move: Move


@dataclass(frozen=True, slots=True)
class EndOfPartitionInputFlag:
    """Split to sender, behind its rows (MSLB): no more rows of the groups come."""

    move: Move
    split: int


@dataclass(frozen=True, slots=True)
class Deactivated:
    """A split or sender to the manager (MSLB): it has stopped."""

    move: int
    by: str


@dataclass(frozen=True, slots=True)
class SendPartitions:
    """Manager to senders (MSLB): send the groups to the receivers."""

    move: Move


@dataclass(frozen=True, slots=True)
class ReceivePartitions:
    """Sender to receiver (MSLB): the groups themselves, as the host carries them."""

    move: Move
    sender: int
    partitions: object


@dataclass(frozen=True, slots=True)
class Received:
    """Receiver to manager (MSLB): the groups are stored, and unmatched states recomputed."""

    move: int
    by: str


@dataclass(frozen=True, slots=True)
class ReactivatePartitions:
    """Manager to all (MSLB): rows of the groups go to the receivers, what was buffered first."""

    move: Move


@dataclass(frozen=True, slots=True)
class GiveUpPartitions:
    """Manager to all: the groups stay where they were."""

    move: Move


@dataclass(frozen=True, slots=True)
class Settled:
    """Any party to the manager: the move has ended here, as the manager said."""

    move: int
    by: str


Flag: TypeAlias = StartOfPartitions | EndOfPartitions | EndOfPartitionInputFlag


Answer: TypeAlias = PartitionsToMove | AllOldPurged | Deactivated | Received | Settled


Order: TypeAlias = (
    DuplicatePartitions
    | DeletePartitions
    | DeactivatePartitions
    | SendPartitions
    | ReactivatePartitions
    | GiveUpPartitions
)


Message: TypeAlias = ComputePartitionsToMove | Order | Flag | ReceivePartitions | Answer
