"""The steps of a protocol as the manager sees them: what it sends, and whose answers it awaits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from plait.groups.moves.move import Move
from plait_lab.protocol.messages import (
    AllOldPurged,
    Deactivated,
    GiveUpPartitions,
    Order,
    Received,
    Settled,
    processor_name,
    split_name,
)

Role: TypeAlias = Literal["splits", "senders", "receivers"]


@dataclass(frozen=True, slots=True)
class ProtocolStep:
    """One message to some parties, and the answers that end the step."""

    order: type[Order]
    to: tuple[Role, ...]
    answer: type[AllOldPurged | Deactivated | Received | Settled]
    by: tuple[Role, ...]
    revocable: bool = True
    """Whether the move can still be given up."""

    @property
    def name(self) -> str:
        """The paper's name of the message."""
        return self.order.__name__


GIVE_UP = ProtocolStep(
    GiveUpPartitions,
    ("splits", "senders", "receivers"),
    Settled,
    ("splits", "senders", "receivers"),
    revocable=False,
)


def parties(roles: tuple[Role, ...], move: Move, splits: int) -> tuple[str, ...]:
    """The addresses of those who play a part in a move.

    >>> parties(("splits", "senders"), Move(1, "PTLB", (0,), (3,), (4,)), 2)
    ('split-0', 'split-1', 'processor-3')
    """
    processors: list[int] = []
    if "senders" in roles:
        processors.extend(move.senders)
    if "receivers" in roles:
        processors.extend(move.receivers)
    names = [split_name(s) for s in range(splits)] if "splits" in roles else []
    return (*names, *(processor_name(p) for p in dict.fromkeys(processors)))
