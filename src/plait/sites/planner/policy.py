"""When and how to change a plan over sites: what the central and the distributed update decide.

*When.* A site compares what it knows now with what the current plan was made from. The paper names
two quantities with a threshold: the change of the execution cost at a node (section 4.2) and of the
stream's statistics (section 4.2.1). Here the larger of the two counts: a selectivity factor that
changes alters no cost at its own site, but all costs behind it. The reference is what was last
adopted, not what was last seen, so slow drift is noticed.

*Central update* (CNU, algorithm 2): algorithm 1 with the new statistics, at one site for all.

*Distributed update* (DNU, algorithm 3): what a site may know of its place in a sequence is a
`Seat`; from it and from itself it computes its own cost. The messages are in `protocol.dnu`. In the
paper's words a stream whose cost has increased can only move to the end. That is so only if none of
its statistics that costs depend on has fallen: with a higher rate and smaller tuples, a join can be
dearer in its present place and cheaper in an earlier one. `direction` asks for the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from plait.errors import PolicyError
from plait.sites.planner.cost import JoinPrices, Prefix, SiteCandidate, StreamStatistics, one_way
from plait.sites.plans.plan import Placement

UpdateWay: TypeAlias = Literal["central", "distributed"]
"""Centralized or distributed update of the node operator sets."""
Direction: TypeAlias = Literal["later", "earlier", "either"]
"""Which way a stream may have to move in the sequences of others."""


@dataclass(frozen=True, slots=True)
class PlacementPolicy:
    """When a site asks for another plan.

    >>> PlacementPolicy(threshold=-1)
    Traceback (most recent call last):
    plait.errors.PolicyError: a policy with threshold=-1; give a number >= 0
    """

    threshold: float = 0.1
    """How much the cost at a site, or a statistic of its stream, must have changed, as a share."""
    update: UpdateWay = "central"
    """Who decides: one site for all (CNU), or all sites among themselves (DNU)."""
    interval: int = 1_000_000
    """Microseconds of event time over which a stream is measured."""
    sigmas: float = 3.0
    """A change counts if chance does not explain it: it exceeds this many standard errors."""
    sample: int = 64
    """Keys of earlier rows with which those of new rows are compared."""
    patience: int = 30_000_000
    """Microseconds of the host's clock after which a change that is not agreed on is given up."""

    def __post_init__(self) -> None:
        if self.update not in get_args(UpdateWay):
            ways = " or ".join(map(repr, get_args(UpdateWay)))
            raise PolicyError(f"a policy with update={self.update!r}", remedy=f"give {ways}")
        for name, least in (
            ("threshold", 0), ("interval", 1), ("sigmas", 0), ("sample", 1), ("patience", 1),
        ):  # fmt: skip
            value: object = getattr(self, name)
            whole = name in ("interval", "sample", "patience")
            number = isinstance(value, int if whole else int | float)
            if isinstance(value, bool) or not number or not least <= getattr(self, name) < math.inf:
                kind = "a whole number" if whole else "a number"
                raise PolicyError(
                    f"a policy with {name}={value!r}", remedy=f"give {kind} >= {least}"
                )


@dataclass(frozen=True, slots=True)
class Seat:
    """What the site of a stream knows of its place in the sequence of a head stream."""

    head: str
    before: str
    """The stream that is joined before; the head if it is the first."""
    after: str | None
    prefix: Prefix
    """The tuples that arrive at the join with this stream."""
    placement: Placement


@dataclass(frozen=True, slots=True)
class Notice:
    """Whether something has changed enough, and what has changed most."""

    exceeded: bool
    change: float
    what: str

    def __str__(self) -> str:
        verdict = "exceeds" if self.exceeded else "does not exceed"
        return f"{self.what} changed by {self.change:.1%}, which {verdict} the threshold"


def notice(
    policy: PlacementPolicy,
    seats: Iterable[Seat],
    adopted: SiteCandidate,
    now: SiteCandidate,
    prices: JoinPrices,
) -> Notice:
    """Compare a stream as it is now with what its plan was made from.

    >>> from plait.sites.planner.cost import paper_setting
    >>> old, new = (paper_setting(3, {"S1": r}).candidate("S1") for r in (100.0, 105.0))
    >>> print(notice(PlacementPolicy(), [], old, new, paper_setting(3).prices))
    rate changed by 5.0%, which does not exceed the threshold
    """
    changes = {
        f.name: _change(getattr(adopted.statistics, f.name), getattr(now.statistics, f.name))
        for f in fields(StreamStatistics)
    }
    places = list(seats)
    changes["cost"] = _change(
        execution_cost(places, adopted, prices), execution_cost(places, now, prices)
    )
    what = max(changes, key=changes.__getitem__)
    return Notice(changes[what] > policy.threshold, changes[what], what)


def execution_cost(seats: Iterable[Seat], candidate: SiteCandidate, prices: JoinPrices) -> float:
    """What the joins with a stream cost in all sequences, as its own site can tell."""
    return math.fsum(one_way(seat.prefix, candidate, prices).of(seat.placement) for seat in seats)


def _change(old: float, new: float) -> float:
    if old == new:
        return 0.0
    return abs(new - old) / old if old > 0 else math.inf


def direction(old: StreamStatistics, new: StreamStatistics) -> Direction:
    """Which way a stream whose statistics changed may have to move.

    >>> slow, fast = (StreamStatistics(r, 0.01, 150, 0.5) for r in (50.0, 200.0))
    >>> direction(slow, fast), direction(fast, slow)
    ('later', 'earlier')
    >>> direction(slow, StreamStatistics(200.0, 0.01, 30, 0.5))
    'either'
    """
    pairs = [(getattr(old, f.name), getattr(new, f.name)) for f in fields(StreamStatistics)]
    if all(before <= after for before, after in pairs):
        return "later"
    return "earlier" if all(before >= after for before, after in pairs) else "either"
