"""The messages by which partition groups move, with the names that D-CAPE gives them.

The distribution manager talks to the processors and to the splits, which route the rows. A split
also sends flags along with the rows of a processor: they arrive after all rows it sent before.
Every message names its move, so that one which is late or repeated is recognised.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Protocol: TypeAlias = Literal["PTLB", "MSLB"]


@dataclass(frozen=True, slots=True)
class Move:
    """Partition groups that go from the processors that hold them to others.

    PTLB has one sender and one receiver. With MSLB there may be several: a group that is too hot
    for one processor is spread over the `receivers`, the rows of one stream (`spread`) divided
    among them and those of the others copied to each; `spread` None puts a group into one place.
    """

    number: int
    protocol: Protocol
    groups: tuple[int, ...]
    senders: tuple[int, ...]
    receivers: tuple[int, ...]
    spread: int | None = None


@dataclass(frozen=True, slots=True)
class ComputePartitionsToMove:
    """Manager to sender: choose groups of about this much memory."""

    move: int
    amount: float


@dataclass(frozen=True, slots=True)
class PartitionsToMove:
    """Sender to manager: the groups chosen."""

    move: int
    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DuplicatePartitions:
    """Manager to sender and splits (PTLB): new rows go to both, flagged at the sender."""

    move: Move


@dataclass(frozen=True, slots=True)
class AllOldPurged:
    """Sender to manager (PTLB): no row of the groups from before the move is left."""

    move: int


@dataclass(frozen=True, slots=True)
class DeletePartitions:
    """Manager to sender and splits (PTLB): from now on only the receiver gets the rows."""

    move: int


@dataclass(frozen=True, slots=True)
class EndOfPartitions:
    """Split to sender, behind its rows (PTLB): no more rows of the groups come."""

    move: int
    split: int


@dataclass(frozen=True, slots=True)
class DeactivatePartitions:
    """Manager to senders and splits (MSLB): buffer new rows of the groups, finish the old ones."""

    move: Move


@dataclass(frozen=True, slots=True)
class EndOfPartitionInputFlag:
    """Split to sender, behind its rows (MSLB): no more rows of the groups come."""

    move: int
    split: int


@dataclass(frozen=True, slots=True)
class Deactivated:
    """A split or sender to the manager (MSLB): it has stopped."""

    move: int
    by: str


@dataclass(frozen=True, slots=True)
class SendPartitions:
    """Manager to senders (MSLB): send the groups to the receivers."""

    move: int


@dataclass(frozen=True, slots=True)
class ReceivePartitions:
    """Sender to receiver (MSLB): the groups themselves, as the host carries them."""

    move: int
    sender: int
    partitions: object


@dataclass(frozen=True, slots=True)
class Received:
    """Receiver to manager (MSLB): the groups are stored, and unmatched states recomputed."""

    move: int
    receiver: int


@dataclass(frozen=True, slots=True)
class ReactivatePartitions:
    """Manager to splits (MSLB): rows of the groups go to the receivers, what was buffered first."""

    move: int


Message: TypeAlias = (
    ComputePartitionsToMove
    | PartitionsToMove
    | DuplicatePartitions
    | AllOldPurged
    | DeletePartitions
    | EndOfPartitions
    | DeactivatePartitions
    | EndOfPartitionInputFlag
    | Deactivated
    | SendPartitions
    | ReceivePartitions
    | Received
    | ReactivatePartitions
)
