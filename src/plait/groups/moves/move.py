"""A move: partition groups that go from the processors that hold them to others.

Both protocols of D-CAPE, PTLB and MSLB, are described by the same value. It is stored in routing
tables and reports, so its fields keep their names.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from plait.codec import stored

Protocol: TypeAlias = Literal["PTLB", "MSLB"]


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
