"""What a party asks of its host, and what it returns for a message.

A host applies the actions and saves the party in one commit; then it sends the messages. Flags are
part of the commit: they go into the channel of a processor's rows, in order. If the host dies
before the commit, nothing has happened; if it dies after it, the messages are lost, and the manager
asks again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeAlias, TypeVar

from plait.groups.moves.move import Move
from plait_lab.protocol.messages import Flag, Message


@dataclass(frozen=True, slots=True)
class Choose:
    """To a processor's host: choose groups of about this much memory, then call `chosen`."""

    move: int
    amount: float


@dataclass(frozen=True, slots=True)
class WatchOldRows:
    """To a sender's host (PTLB): call `all_old_purged` as soon as `is_old` holds for no row.

    After a restart, `ProcessorParty.watching` says it again.
    """

    move: Move


@dataclass(frozen=True, slots=True)
class Drop:
    """To a processor's host: the rows of these (group, since) are dead.

    It may delete them now, or leave them until they expire: `finds` does not use them.
    """

    groups: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Export:
    """To a sender's host (MSLB): send a ReceivePartitions with its live rows to every receiver.

    The rows of stream `move.spread` are divided among the receivers, all others go to each. If the
    groups are spread already, only the first sender sends the rows of the streams that all senders
    have, and every sender its rows of `move.spread_before`.
    """

    move: Move


@dataclass(frozen=True, slots=True)
class Import:
    """To a receiver's host (MSLB): store these rows with `Tag(since=move.number)`.

    Rows are matched, inserted, and missing states recomputed; no result is reported. If the
    partitions are damaged, do not commit: the manager asks for them again, or gives up.
    """

    move: Move
    sender: int
    partitions: object


@dataclass(frozen=True, slots=True)
class Buffer:
    """To a split's host (MSLB): hold new rows of these groups back.

    Until they are released, its event-time progress must not pass the oldest of them, for any
    processor: their partners would be purged.
    """

    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Release:
    """To a split's host (MSLB): route what was buffered of these groups, before newer rows."""

    groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class MoveFinished:
    """To the manager's host: a move was completed (`done`), or given up."""

    move: Move
    done: bool


Action: TypeAlias = Choose | WatchOldRows | Drop | Export | Import | Buffer | Release | MoveFinished

Party = TypeVar("Party")


@dataclass(frozen=True, slots=True)
class Reaction(Generic[Party]):
    """A party after a message, and what comes of it."""

    party: Party
    actions: tuple[Action, ...] = ()
    flags: tuple[tuple[int, Flag], ...] = ()
    """(processor, flag), for the channels of rows."""
    messages: tuple[tuple[str, Message], ...] = ()
    """(address, message), once the party is saved."""
