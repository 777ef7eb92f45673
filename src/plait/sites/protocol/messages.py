"""The messages between sites: plan modification (CNU, DNU), windows, and the switch-over.

A message of the distributed update names the head stream of the sequence it is about. Those that
pass the work on carry `touched`: the sites whose operators have changed so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from plait.sites.planner.cost import Prefix, SiteCandidate, StreamStatistics
from plait.sites.planner.policy import Direction, Seat
from plait.sites.plans.plan import Jep, Placement, SiteLink, SiteStep

Touched: TypeAlias = frozenset[str]

# --- central update ------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReportStatistics:
    """To the keeper, in a central update: the statistics of this stream have changed."""

    stream: str
    statistics: StreamStatistics


# --- turns: one change of the plan at a time ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WantTurn:
    """To the keeper of turns: this stream has changed and may have to move."""

    stream: str


@dataclass(frozen=True, slots=True)
class YourTurn:
    """To the site that asked: begin the distributed update of this stream."""

    stream: str


@dataclass(frozen=True, slots=True)
class ShowSeats:
    """To all sites: the update has ended, say where your streams are."""


@dataclass(frozen=True, slots=True)
class ShownSeat:
    """The place of a stream in the sequence of a head."""

    stream: str
    head: str
    after: str | None
    placement: Placement


@dataclass(frozen=True, slots=True)
class ShownSeats:
    """The answer to `ShowSeats`: how its own sequences begin, and its seats in those of others."""

    firsts: tuple[tuple[str, str], ...]
    seats: tuple[ShownSeat, ...]


@dataclass(frozen=True, slots=True)
class NewPlan:
    """To all sites: install this plan (with these statistics, if it is from the centre)."""

    plan: Jep
    statistics: tuple[tuple[str, StreamStatistics], ...] = ()


@dataclass(frozen=True, slots=True)
class WantPlan:
    """To the keeper, and from it to all sites: change to this plan, made for these links."""

    request: int
    plan: Jep
    statistics: tuple[tuple[str, StreamStatistics], ...]
    links: tuple[SiteLink, ...]


@dataclass(frozen=True, slots=True)
class Withdraw:
    """To all sites: give up this request and all before it, where that is still possible."""

    request: int


@dataclass(frozen=True, slots=True)
class TurnOver:
    """To the keeper: the sender has switched or given up, and has one plan again."""

    switched: bool


# --- distributed update: turns -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """To a head: may this stream move in your sequence?"""

    head: str
    changed: SiteCandidate
    direction: Direction


@dataclass(frozen=True, slots=True)
class Begin:
    """To a stream that can only move to the end: begin at your place."""

    head: str


@dataclass(frozen=True, slots=True)
class SequenceSettled:
    """To a head: your sequence satisfies the invariant again."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class Finished:
    """To the stream that asked: your change has been worked into this sequence."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class Affected:
    """To a site that has changed: these sites switch over together."""

    sites: tuple[str, ...]


# --- distributed update: who comes next ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """Along a sequence: would this stream be cheaper in your place?"""

    head: str
    changed: SiteCandidate
    direction: Direction


@dataclass(frozen=True, slots=True)
class Relay:
    """From a place to the end: are you cheaper there than the best so far?"""

    head: str
    place: str
    """The stream that has the place now."""
    prefix: Prefix
    best: str
    cost: float
    touched: Touched


@dataclass(frozen=True, slots=True)
class Stay:
    """To the stream that has the place: nobody is cheaper."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class SwapWith:
    """To the cheapest stream for a place: swap with the one that has it."""

    head: str
    place: str
    own_turn: bool
    """Whether it is the receiver's own change that is being worked in."""
    touched: Touched


@dataclass(frozen=True, slots=True)
class Continue:
    """To the next stream in a sequence: these tuples arrive at you."""

    head: str
    before: str
    prefix: Prefix
    touched: Touched


# --- distributed update: swaps and placements ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trade:
    """To the stream that has a place: give it to the sender and take this one."""

    head: str
    seat: Seat
    touched: Touched


@dataclass(frozen=True, slots=True)
class Traded:
    """The answer to `Trade`: this place is yours."""

    head: str
    seat: Seat
    touched: Touched


@dataclass(frozen=True, slots=True)
class NewNeighbour:
    """To a neighbour in a sequence: another stream is before or after you."""

    head: str
    side: Literal["before", "after"]
    stream: str


@dataclass(frozen=True, slots=True)
class Host:
    """To the stream at whose home tuples are joined: this is your part of the join."""

    head: str
    step: SiteStep
    last: bool


@dataclass(frozen=True, slots=True)
class Unhost:
    """To that stream: you have no part in the join with this stream any more."""

    head: str
    stream: str


@dataclass(frozen=True, slots=True)
class Noted:
    """The answer to `NewNeighbour`, `Host` and `Unhost`: it is done."""

    head: str
    what: Literal["before", "after", "host", "unhost"]


# --- switch-over ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalReady:
    """To all others: the windows of the sender are full, it can switch from this instant on."""

    migration: int
    sender: str
    instant: int


@dataclass(frozen=True, slots=True)
class GlobalReady:
    """To all others: the sender knows that all sites are ready."""

    migration: int
    sender: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """To all others: the sender will not switch, and nobody else may."""

    migration: int
    sender: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """To a site that asks: the sender has switched, so all sites are globally ready."""

    migration: int
    sender: str
    instant: int


@dataclass(frozen=True, slots=True)
class WhatNow:
    """To all others: repeat what you have said, it was perhaps lost."""

    migration: int
    sender: str


UpdateMessage: TypeAlias = (
    Ask | Begin | SequenceSettled | Finished | Affected | Scan | Relay | Stay | SwapWith | Continue
    | Trade | Traded | NewNeighbour | Host | Unhost | Noted
)  # fmt: skip
SwitchMessage: TypeAlias = LocalReady | GlobalReady | GiveUp | Migrated | WhatNow
TurnMessage: TypeAlias = (
    ReportStatistics | WantTurn | YourTurn | ShowSeats | ShownSeats | NewPlan | WantPlan | TurnOver
)
Wish: TypeAlias = WantPlan | Withdraw
"""What whoever runs the join may ask for."""
SiteMessage: TypeAlias = UpdateMessage | SwitchMessage | TurnMessage


@dataclass(frozen=True, slots=True)
class Sent:
    """A message on its way, between streams in the distributed update and sites elsewhere."""

    sender: str
    receiver: str
    message: SiteMessage
