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

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from plait.codec import stored

Protocol: TypeAlias = Literal["PTLB", "MSLB"]

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
class MoveForecast:
    """What a move is predicted to take and to save, and why it goes by its protocol."""

    amount: float | None = None
    """Bytes of the groups, for ComputePartitionsToMove; None if unknown."""
    load: float = 0.0
    """Work per second that the slowest sender is relieved of."""
    pause: float = 0.0
    """Seconds in which nothing of the groups comes out."""
    work: float = 0.0
    """Seconds of work that the move takes."""
    reason: str = ""
    """Why by this protocol."""
    returned: bool = False
    """Whether the groups go back because the move before did not pay."""


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
    spread_before: int | None = None
    """The stream whose rows are divided among the senders, if the groups are spread already."""
    forecast: MoveForecast = field(
        default=MoveForecast(), compare=False, repr=False, metadata=stored(None)
    )
    """What the balancer predicts; neither messages nor routing tables carry it."""


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
"""What a split sends to a processor in the order of its rows; it is neither lost nor repeated."""

Answer: TypeAlias = PartitionsToMove | AllOldPurged | Deactivated | Received | Settled
"""What the manager gets."""

Order: TypeAlias = (
    DuplicatePartitions
    | DeletePartitions
    | DeactivatePartitions
    | SendPartitions
    | ReactivatePartitions
    | GiveUpPartitions
)
"""What the manager sends about a move whose groups are known."""

Message: TypeAlias = ComputePartitionsToMove | Order | Flag | ReceivePartitions | Answer
