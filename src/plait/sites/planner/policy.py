"""When and how to change a plan over sites: what the central and the distributed update decide.

*When.* A site compares what it knows now with what the current plan was made from. The paper names
two quantities with a threshold: the change of the execution cost at a node (section 4.2) and of the
stream's statistics (section 4.2.1). Here the larger of the two counts: a selectivity factor that
changes alters no cost at its own site, but all costs behind it. The reference is what was last
adopted, not what was last seen, so slow drift is noticed.

*Central update* (CNU, algorithm 2): algorithm 1 with the new statistics, and the operator sets that
are now different. Also the windows that the new sets need, and where each is copied from.

*Distributed update* (DNU, algorithm 3): what a site may know of its place in a sequence is a
`Seat`; from it and from itself it computes its own cost. The messages are in `protocol.dnu`. In the
paper's words a stream whose cost has increased can only move to the end. That is so only if none of
its statistics that costs depend on has fallen: with a higher rate and smaller tuples, a join can be
dearer in its present place and cheaper in an earlier one. `direction` asks for the statistics.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Literal, TypeAlias, get_args

from plait.errors import PolicyError
from plait.sites.planner.cost import (
    JoinPrices,
    Prefix,
    SiteCandidate,
    SiteSetting,
    StreamStatistics,
    one_way,
)
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep, Operator, Placement, Sites, Update, operator_sets

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
    """A change counts if chance does not explain it: it exceeds so many standard errors."""
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


@dataclass(frozen=True, slots=True)
class WindowCopy:
    """A window that a site needs for its new operators, and where it is now.

    If both sites are the same, the window is there and only has to be shared.
    """

    stream: str
    origin: str
    target: str


@dataclass(frozen=True, slots=True)
class CentralUpdate:
    """What the central node decides: the plan, and for the affected sites their new sets."""

    plan: Jep
    operators: Mapping[str, frozenset[Operator]]
    """The new set of each site whose set is different."""
    copies: tuple[WindowCopy, ...]

    @property
    def affected(self) -> tuple[str, ...]:
        """The sites that have to switch over."""
        return tuple(self.operators)


def central_update(setting: SiteSetting, old: Jep) -> CentralUpdate:
    """Algorithm 2, from what the central node knows.

    >>> from plait.sites.planner.cost import paper_setting
    >>> fast = paper_setting(4, {"S1": 200.0})
    >>> central_update(fast, greedy(paper_setting(4))).affected
    ('N1', 'N2', 'N3', 'N4')
    >>> central_update(fast, greedy(fast)).affected
    ()
    """
    plan = greedy(setting)
    before, after = operator_sets(setting.sites, old), operator_sets(setting.sites, plan)
    changed = {site: after[site] for site in setting.sites.names if before[site] != after[site]}
    return CentralUpdate(plan, changed, window_copies(setting.sites, before, changed))


def window_copies(
    sites: Sites,
    old: Mapping[str, frozenset[Operator]],
    new: Mapping[str, frozenset[Operator]],
) -> tuple[WindowCopy, ...]:
    """The windows that the new operator sets need, each with a site that keeps it now.

    Of several sites the home of the stream comes first, then the one with the quickest link.

    >>> from plait.sites.planner.cost import paper_setting
    >>> sites = paper_setting(3).sites
    >>> window_copies(sites, {"N1": frozenset({Update("S2")})}, {"N3": frozenset({Update("S2")})})
    (WindowCopy(stream='S2', origin='N1', target='N3'),)
    """
    found = []
    for target, operators in new.items():
        for stream in sorted(x.stream for x in operators if isinstance(x, Update)):
            keepers = [site for site, those in old.items() if Update(stream) in those]
            if target in keepers:
                origin = target
            else:
                origin = min(keepers, key=lambda site: _far(sites, stream, site, target))
            found.append(WindowCopy(stream, origin, target))
    return tuple(found)


def _far(sites: Sites, stream: str, origin: str, target: str) -> tuple[bool, float, float]:
    link = sites.link(origin, target)
    return origin != sites.home(stream), 1 / link.rate, link.latency
