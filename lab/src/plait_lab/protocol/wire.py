"""Messages about moving groups as plain JSON types."""

from __future__ import annotations

from typing import Any, get_args

from plait.codec import from_plain, to_plain
from plait.errors import SourceError
from plait.groups.moves.messages import Message


def message_to_plain(message: Message) -> dict[str, Any]:
    """A message with its name.

    >>> from plait.groups.moves.messages import Settled
    >>> message_to_plain(Settled(3, "split-0"))
    {'message': 'Settled', 'move': 3, 'by': 'split-0'}
    """
    return {"message": type(message).__name__, **to_plain(message)}


def message_from_plain(data: dict[str, Any]) -> Message:
    """The inverse of `message_to_plain`.

    >>> message_from_plain({"message": "Settled", "move": 3, "by": "split-0"})
    Settled(move=3, by='split-0')
    """
    kinds = {kind.__name__: kind for kind in get_args(Message)}
    name = data.get("message")
    if name not in kinds:
        raise SourceError(f"{name!r} is no message that this version knows")
    message: Message = from_plain(kinds[name], {k: v for k, v in data.items() if k != "message"})
    return message
