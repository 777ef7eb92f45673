"""Partition groups on their way from one processor to another: rows as bytes, with a checksum.

A sender writes one transfer for each batch that it runs during a move: number 0 has everything that
it holds of the groups, each later one what has come in addition. A batch that is repeated writes
the same rows again. Receivers run in the same batches, so they know how many transfers there must
be; what is missing, cut off, changed or from another move is refused by name.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from plait.errors import SourceError, TransferDamaged
from plait.groups.moves.move import Move
from plait.groups.routing.rows import decode_rows, encode_rows
from plait.machine.sealed import sealed, unsealed

_REMEDY = "put the file back if there is a copy; otherwise restart from an earlier checkpoint"


class Transfers(Protocol):
    """Where transfers are: both processors reach it."""

    def write(self, move: int, sender: int, number: int, raw: bytes) -> None:
        """Write one, whole or not at all; a batch that is repeated writes it again."""

    def numbers(self, move: int, sender: int) -> list[int]:
        """The numbers of those that are there."""

    def read(self, move: int, sender: int, number: int) -> bytes:
        """One of them, or TransferDamaged."""


class _Nowhere:
    """No transfers: for hosts whose groups do not move."""

    def write(self, move: int, sender: int, number: int, raw: bytes) -> None:
        raise AssertionError("a move without a place for its rows")

    def numbers(self, move: int, sender: int) -> list[int]:
        del move, sender
        return []

    def read(self, move: int, sender: int, number: int) -> bytes:
        raise AssertionError("a move without a place for its rows")


NOWHERE = _Nowhere()


@dataclass(frozen=True, slots=True)
class Transfer:
    """The rows of a move's groups, by stream, that one sender exported in one batch."""

    move: int
    sender: int
    number: int
    """How many batches the sender had run before since the move began.

    Number 0 has everything; each other one what came in its batch.
    """
    rows: Mapping[int, pa.RecordBatch]

    def to_bytes(self) -> bytes:
        """With a checksum.

        >>> rows = {0: pa.record_batch({"k": [1, 2]})}
        >>> raw = Transfer(1, 0, 7, rows).to_bytes()
        >>> Transfer.from_bytes(raw).rows == rows
        True
        >>> Transfer.from_bytes(raw[:-1])
        Traceback (most recent call last):
        plait.errors.TransferDamaged: what was exported is damaged: it was cut off; ...
        """
        bodies = {stream: encode_rows(part) for stream, part in sorted(self.rows.items())}
        body = b"".join(bodies.values())
        head = {
            "move": self.move,
            "sender": self.sender,
            "number": self.number,
            "lengths": [[stream, len(part)] for stream, part in bodies.items()],
            "body": zlib.crc32(body),
        }
        return sealed(head).encode() + b"\n" + body

    @classmethod
    def from_bytes(cls, raw: bytes) -> Transfer:
        """The inverse of `to_bytes`, or TransferDamaged."""
        head, _, body = raw.partition(b"\n")
        try:
            given = unsealed(head.decode("utf-8"))
            if sealed(given).encode() != head:
                raise SourceError("it has no checksum")
            lengths = [(int(stream), int(length)) for stream, length in given["lengths"]]
            if len(body) != sum(length for _, length in lengths):
                raise SourceError("it was cut off")
            if zlib.crc32(body) != given["body"]:
                raise SourceError("its checksum is wrong")
            rows, start = {}, 0
            for stream, length in lengths:
                (rows[stream],) = decode_rows(body[start : start + length])
                start += length
            return cls(
                int(given["move"]),
                int(given["sender"]),
                int(given["number"]),
                rows,
            )
        except (SourceError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
            reason = str(error).partition(";")[0]
            raise TransferDamaged(
                f"what was exported is damaged: {reason}", remedy=_REMEDY
            ) from None


def exported(transfers: Transfers, move: Move, count: int) -> list[Transfer]:
    """The first transfers of each sender of a move, so many."""
    found = []
    for sender in move.senders:
        there = sorted(transfers.numbers(move.number, sender))
        if there[:count] != list(range(count)):
            raise TransferDamaged(
                f"of move {move.number}, what processor {sender} exported is missing, at least in "
                f"part: there are transfers {there}, and there must be {count} from 0 on",
                remedy=_REMEDY,
            )
        for number in there[:count]:
            one = Transfer.from_bytes(transfers.read(move.number, sender, number))
            if (one.move, one.sender, one.number) != (move.number, sender, number):
                raise TransferDamaged(
                    f"what is there for transfer {number} of move {move.number} is transfer "
                    f"{one.number} of move {one.move}",
                    remedy=_REMEDY,
                )
            found.append(one)
    return found
