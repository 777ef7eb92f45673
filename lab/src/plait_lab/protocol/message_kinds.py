"""Messages between sites, counted as table 3 of the paper counts them.

The table has no kind for two of ours: the paper does not say how two sites avoid changing a
sequence at the same time (`turn`), and its messages need no answer because they are delivered in
order (`acknowledgement`).
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from plait.sites.protocol.messages import (
    Affected,
    Ask,
    Begin,
    Continue,
    Finished,
    GiveUp,
    GlobalReady,
    Host,
    LocalReady,
    Migrated,
    NewNeighbour,
    NewPlan,
    Noted,
    Relay,
    ReportStatistics,
    Scan,
    SequenceSettled,
    ShownSeats,
    ShowSeats,
    SiteMessage,
    Stay,
    SwapWith,
    Trade,
    Traded,
    TurnOver,
    Unhost,
    WantPlan,
    WantTurn,
    WhatNow,
    YourTurn,
)
from plait_lab.protocol.cnu import CopyWindow, NewOperators

Kind: TypeAlias = Literal["modification", "window", "synchronization", "turn", "acknowledgement"]

_KINDS: dict[Kind, tuple[type, ...]] = {
    "modification": (
        ReportStatistics, NewOperators, NewPlan, WantPlan, Scan, Relay, Stay, SwapWith, Continue,
        Trade, Traded, NewNeighbour, Host, Unhost,
    ),
    "window": (CopyWindow,),
    "synchronization": (LocalReady, GlobalReady, GiveUp, Migrated, WhatNow),
    "turn": (
        Ask, Begin, SequenceSettled, Finished, Affected, WantTurn, YourTurn, ShowSeats, ShownSeats,
        TurnOver,
    ),
    "acknowledgement": (Noted,),
}  # fmt: skip


def kind_of(message: SiteMessage | NewOperators | CopyWindow) -> Kind:
    """The kind that a message is counted as.

    >>> kind_of(Begin("S1")), kind_of(CopyWindow("S1", "N2"))
    ('turn', 'window')
    """
    return next(kind for kind, types in _KINDS.items() if isinstance(message, types))
