"""Messages about moving groups as plain JSON types."""

from __future__ import annotations

from typing import Any, get_args

from plait.codec import from_tagged, to_tagged
from plait_lab.protocol.messages import Message


def message_to_plain(message: Message) -> dict[str, Any]:
    """A message with its name.

    >>> from plait_lab.protocol.messages import Settled
    >>> message_to_plain(Settled(3, "split-0"))
    {'message': 'Settled', 'move': 3, 'by': 'split-0'}
    """
    return to_tagged(message, "message")


def message_from_plain(data: dict[str, Any]) -> Message:
    """The inverse of `message_to_plain`.

    >>> message_from_plain({"message": "Settled", "move": 3, "by": "split-0"})
    Settled(move=3, by='split-0')
    """
    message: Message = from_tagged(get_args(Message), data, "message")
    return message
