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
    """A site to the central node: the statistics of a stream changed more than the threshold."""

    stream: str
    statistics: StreamStatistics


# --- turns: one change of the plan at a time ------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WantTurn:
    """A site to the keeper of turns: a stream has changed, and its place may have to change."""

    stream: str


@dataclass(frozen=True, slots=True)
class YourTurn:
    """The keeper to that site: begin the distributed update."""

    stream: str


@dataclass(frozen=True, slots=True)
class ShowSeats:
    """The site whose turn it is to all others: the update has ended, where are your streams?"""


@dataclass(frozen=True, slots=True)
class ShownSeat:
    """Where a stream is in the sequence of a head."""

    stream: str
    head: str
    after: str | None
    placement: Placement


@dataclass(frozen=True, slots=True)
class ShownSeats:
    """The answer: the first stream of the sequences of its streams, and their seats elsewhere."""

    firsts: tuple[tuple[str, str], ...]
    seats: tuple[ShownSeat, ...]


@dataclass(frozen=True, slots=True)
class NewPlan:
    """To all sites: install this plan, and switch to it together.

    From the centre with the statistics of all streams that it was made from.
    """

    plan: Jep
    statistics: tuple[tuple[str, StreamStatistics], ...] = ()


@dataclass(frozen=True, slots=True)
class WantPlan:
    """Whoever runs the join to the keeper: change to this plan, which was made from these
    statistics and links. In its turn, the keeper says the same to all sites."""

    request: int
    plan: Jep
    statistics: tuple[tuple[str, StreamStatistics], ...]
    links: tuple[SiteLink, ...]


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Whoever runs the join to all sites: do without that plan, and all that were wanted before,
    as far as that is still possible."""

    request: int


@dataclass(frozen=True, slots=True)
class TurnOver:
    """A site to the keeper: it has switched or given up, and has one plan again."""

    switched: bool


# --- distributed update: turns -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ask:
    """A stream whose statistics changed to a head: may it move in the head's sequence?"""

    head: str
    changed: SiteCandidate
    direction: Direction


@dataclass(frozen=True, slots=True)
class Begin:
    """The head to a stream that can only move to the end: begin at your place."""

    head: str


@dataclass(frozen=True, slots=True)
class SequenceSettled:
    """The last stream of a sequence to its head: the sequence satisfies the invariant again."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class Finished:
    """The head to the stream that asked: its change has been worked in."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class Affected:
    """The stream that asked to every site that has changed: who switches over together."""

    sites: tuple[str, ...]


# --- distributed update: who comes next ----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scan:
    """From the beginning of a sequence to its end: would this stream be cheaper in your place?"""

    head: str
    changed: SiteCandidate
    direction: Direction


@dataclass(frozen=True, slots=True)
class Relay:
    """From a place to the end: who is cheapest in that place? The best so far is told along."""

    head: str
    place: str
    """The stream that has the place now."""
    prefix: Prefix
    best: str
    cost: float
    touched: Touched


@dataclass(frozen=True, slots=True)
class Stay:
    """The last stream to the one that has the place: nobody is cheaper."""

    head: str
    touched: Touched


@dataclass(frozen=True, slots=True)
class SwapWith:
    """To the stream that is cheapest in a place: swap with the one that has it now."""

    head: str
    place: str
    own_turn: bool
    """Whether it is the receiver's own change that is being worked in."""
    touched: Touched


@dataclass(frozen=True, slots=True)
class Continue:
    """A stream that has found its place to the next one: these tuples arrive at you."""

    head: str
    before: str
    prefix: Prefix
    touched: Touched


# --- distributed update: swaps and placements ----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Trade:
    """The stream that takes a place to the one that has it: take mine."""

    head: str
    seat: Seat
    touched: Touched


@dataclass(frozen=True, slots=True)
class Traded:
    """The answer to `Trade`: my place is yours."""

    head: str
    seat: Seat
    touched: Touched


@dataclass(frozen=True, slots=True)
class NewNeighbour:
    """To a neighbour in the sequence: the stream before or after you is another one."""

    head: str
    side: Literal["before", "after"]
    stream: str


@dataclass(frozen=True, slots=True)
class Host:
    """To the stream at whose home the tuples are that are joined: your part of that join."""

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
    """The answer to `NewNeighbour`, `Host` and `Unhost`: done."""

    head: str
    what: Literal["before", "after", "host", "unhost"]


# --- switch-over ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class LocalReady:
    """The sender's new windows are full; it can switch at this instant or later."""

    migration: int
    sender: str
    instant: int


@dataclass(frozen=True, slots=True)
class GlobalReady:
    """The sender knows that all sites are ready."""

    migration: int
    sender: str


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The sender will not switch, and nobody else may."""

    migration: int
    sender: str


@dataclass(frozen=True, slots=True)
class Migrated:
    """The sender has switched: it knows that all sites are at least `GlobalReady`."""

    migration: int
    sender: str
    instant: int


@dataclass(frozen=True, slots=True)
class WhatNow:
    """The sender lacks something that was perhaps lost: say again what you have said."""

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
"""What comes from outside."""
SiteMessage: TypeAlias = UpdateMessage | SwitchMessage | TurnMessage


@dataclass(frozen=True, slots=True)
class Sent:
    """A message on its way. Sender and receiver are streams in the distributed update (a site
    with two streams has two members), and sites everywhere else."""

    sender: str
    receiver: str
    message: SiteMessage
