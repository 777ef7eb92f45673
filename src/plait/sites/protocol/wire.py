"""Messages of turns as plain JSON types."""

from __future__ import annotations

from typing import Any, get_args

from plait.codec import from_plain, to_plain
from plait.errors import SourceError
from plait.sites.protocol.messages import Sent, SiteMessage
from plait.sites.protocol.turns import InTurn

_KINDS = {kind.__name__: kind for kind in get_args(SiteMessage)}


def turn_to_plain(given: InTurn) -> list[Any]:
    """Encode a message of a turn for a packet.

    >>> from plait.sites.protocol.messages import WantTurn
    >>> turn_to_plain(InTurn(0, Sent("N2", "N1", WantTurn("S2"))))
    [0, 'N2', 'N1', 'WantTurn', {'stream': 'S2'}]
    """
    sent = given.sent
    name = type(sent.message).__name__
    return [given.turn, sent.sender, sent.receiver, name, to_plain(sent.message)]


def turn_from_plain(data: list[Any]) -> InTurn:
    """The inverse of `turn_to_plain`.

    >>> turn_from_plain([0, "N2", "N1", "WantTurn", {"stream": "S2"}]).sent.message
    WantTurn(stream='S2')
    """
    turn, sender, receiver, name, body = data
    if name not in _KINDS:
        raise SourceError(f"{name!r} is no message that this version knows")
    return InTurn(int(turn), Sent(str(sender), str(receiver), from_plain(_KINDS[name], body)))
