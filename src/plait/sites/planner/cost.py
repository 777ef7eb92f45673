"""What a plan over sites costs: seconds of processing and sending per second of stream.

Equations 1 to 4 of the paper. The cost of a sequence is the sum over its one-way joins; each is the
time to send what has to be sent, T(x) = latency + x / rate, to update the window and to probe it:

    at the source       T(r_k t_k)           + r_k c_u + probes     (1)
    at the destination  T(r^i_k-1 t^i_k-1)   + r_k c_u + probes     (2)
    the join            the lesser of the two, (1) if they are equal  (3)

The tuples that arrive at a join come from the joins before it. Their rate is multiplied by the
matches per tuple, min(f^i, f_k) w_k, their selectivity factor is the larger one, and their sizes
add up. Window sizes are w_k = r_k times the length of the window.

*Where the text leaves a choice.* T is that of the link actually used: from where the tuples are,
which after a join at the source is not the home of the stream joined last (with equal links, as in
the paper, that makes no difference). Between streams at one site T is 0. The prices c_p and c_u are
not given in the paper; `NESTED_LOOP` takes those that the CAPE papers measured for the same
operations. The join graph, an input of algorithm 1 that its text never reads, says which pairs of
streams have a condition: a join with a stream that has none with any stream before it is a cross
product, and its cost is infinite. None means that all pairs have one, as in its experiments.

*Invariants.* The cost of a join never falls when a rate, size, window or selectivity factor of the
stream joined rises. This also holds for what floating-point numbers make of it, because rounding
keeps the order.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from plait.errors import StatisticsError, did_you_mean
from plait.query.names import quoted
from plait.sites.plans.plan import Jep, Placement, Sep, SiteLink, Sites, check_jep, steps


def _finite(value: float) -> float:
    """The value, or the largest number: infinity times 0 would be no number at all."""
    return min(value, sys.float_info.max)


Method: TypeAlias = Literal["nested-loop", "hash"]


@dataclass(frozen=True, slots=True)
class StreamStatistics:
    """What is known of a stream: the paper's r, f and t, and the length of its window.

    >>> StreamStatistics(rate=100, factor=0.01, tuple_bytes=150, window=0.5).tuples
    50.0
    """

    rate: float
    """Tuples per second."""
    factor: float
    """The average share of the stream's tuples that have the same value of the join attribute."""
    tuple_bytes: float
    window: float
    """Seconds."""

    def __post_init__(self) -> None:
        for name in ("rate", "factor", "tuple_bytes", "window"):
            value = getattr(self, name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not 0 <= value < math.inf:
                raise StatisticsError(
                    f"the {name} of a stream is {value!r}", remedy="give a finite number >= 0"
                )
        if self.factor > 1:
            raise StatisticsError(
                f"the selectivity factor of a stream is {self.factor!r}",
                remedy="it is a share of its tuples: give a number from 0 to 1",
            )

    @property
    def tuples(self) -> float:
        """The number of tuples in the window."""
        return _finite(self.rate * self.window)


@dataclass(frozen=True, slots=True)
class JoinPrices:
    """Seconds per operation of a join method.

    With nested loops a tuple is compared with the whole window (`probe` each, the paper's c_p).
    With a hash index it costs a `lookup`, and `probe` for each match only.

    >>> NESTED_LOOP.seconds(arriving=10, window=50, matches=0.5)
    0.0011
    >>> HASH.seconds(arriving=10, window=50, matches=0.5) < 1e-6
    True
    """

    method: Method
    probe: float
    update: float
    lookup: float = 0.0

    def __post_init__(self) -> None:
        for name in ("probe", "update", "lookup"):
            if not 0 <= getattr(self, name) < math.inf:
                raise StatisticsError(
                    f"the price of {name!r} is {getattr(self, name)!r}",
                    remedy="give seconds per operation, >= 0",
                )

    def seconds(self, arriving: float, window: float, matches: float) -> float:
        """The cost of arriving tuples that probe a window and have `matches` matches each."""
        if self.method == "nested-loop":
            return arriving * self.probe * window
        return arriving * (self.lookup + self.probe * matches)


NESTED_LOOP = JoinPrices("nested-loop", probe=2.2e-6, update=4.0e-7)
"""C_j for a pair; C_i + C_d for a tuple that enters and leaves a window (CAPE, table 3)."""
HASH = JoinPrices("hash", probe=5.7e-9, update=5.0e-8, lookup=8.5e-9)
"""What the index of the engine takes, as `optimize.costs.DEFAULT` has it."""


@dataclass(frozen=True, slots=True)
class SiteCandidate:
    """A stream as its own site knows it: its statistics, links and conditions.

    This is all that has to be known of a stream to tell what a join with it costs.
    """

    stream: str
    site: str
    statistics: StreamStatistics
    inbound: Mapping[str, SiteLink]
    """The link from each other site to this one."""
    outbound: Mapping[str, SiteLink]
    partners: frozenset[str] | None = None
    """The streams it has a condition with; None means all."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """The tuples that arrive at a join: r, f and t of S^i_k-1, and where they are."""

    streams: tuple[str, ...]
    """What they have been joined from, the head first."""
    host: str
    """The stream at whose home they are."""
    site: str
    rate: float
    factor: float
    tuple_bytes: float

    @classmethod
    def of_head(cls, head: str, site: str, known: StreamStatistics) -> Prefix:
        """The tuples of a head stream as they arrive at its home."""
        return cls(
            streams=(head,),
            host=head,
            site=site,
            rate=known.rate,
            factor=known.factor,
            tuple_bytes=known.tuple_bytes,
        )


@dataclass(frozen=True, slots=True)
class JoinCost:
    """A one-way join in both placements, in seconds per second."""

    source: float
    destination: float

    @property
    def placement(self) -> Placement:
        """The cheaper one; the source if they are equal (equation 3)."""
        return 0 if self.source <= self.destination else 1

    @property
    def least(self) -> float:
        """Equation 3."""
        return min(self.source, self.destination)

    def of(self, placement: Placement) -> float:
        """Equation 1 or 2."""
        return self.source if placement == 0 else self.destination


@dataclass(frozen=True, slots=True)
class SiteSetting:
    """Everything that planning depends on.

    >>> setting = paper_setting(3)
    >>> first = setting.first("S1")
    >>> cost = one_way(first, setting.candidate("S2"), setting.prices)
    >>> round(cost.source, 6), cost.placement
    (0.133227, 0)
    """

    sites: Sites
    statistics: Mapping[str, StreamStatistics]
    prices: JoinPrices = NESTED_LOOP
    conditions: frozenset[frozenset[str]] | None = None
    """The pairs of streams that have a join condition; None means all pairs."""
    _candidates: dict[str, SiteCandidate] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        streams = self.sites.streams
        for stream in streams:
            if stream not in self.statistics:
                raise StatisticsError(f"there are no statistics of the stream {quoted(stream)}")
        for stream in self.statistics:
            if stream not in streams:
                raise StatisticsError(
                    f"there are statistics of {stream!r}, which is no stream",
                    remedy=did_you_mean(stream, streams),
                )
        if self.conditions is not None:
            _check_conditions(streams, self.conditions)

    def candidate(self, stream: str) -> SiteCandidate:
        """What the site of a stream knows of it."""
        if stream not in self._candidates:
            site = self.sites.home(stream)
            links = self.sites.links
            self._candidates[stream] = SiteCandidate(
                stream=stream,
                site=site,
                statistics=self.statistics[stream],
                inbound={link.origin: link for link in links if link.target == site},
                outbound={link.target: link for link in links if link.origin == site},
                partners=_partners(stream, self.conditions),
            )
        return self._candidates[stream]

    def first(self, head: str) -> Prefix:
        """The tuples of a head stream as they arrive."""
        return Prefix.of_head(head, self.sites.home(head), self.statistics[head])

    def with_statistics(self, changed: Mapping[str, StreamStatistics]) -> SiteSetting:
        """The same with other statistics of some streams."""
        return replace(self, statistics={**self.statistics, **changed})

    def with_links(self, changed: Iterable[SiteLink]) -> SiteSetting:
        """The same with some links that have become others.

        >>> slow = SiteLink("N1", "N2", 0.5, 100)
        >>> paper_setting(3).with_links([slow]).sites.link("N1", "N2").rate
        100
        """
        links = {(link.origin, link.target): link for link in (*self.sites.links, *changed)}
        return replace(self, sites=replace(self.sites, links=tuple(links.values())))


def _partners(stream: str, conditions: frozenset[frozenset[str]] | None) -> frozenset[str] | None:
    if conditions is None:
        return None
    return frozenset().union(*(pair for pair in conditions if stream in pair)) - {stream}


def _check_conditions(streams: tuple[str, ...], conditions: Iterable[frozenset[str]]) -> None:
    for pair in conditions:
        for stream in pair:
            if stream not in streams:
                raise StatisticsError(
                    f"there is a condition on {stream!r}, which is no stream",
                    remedy=did_you_mean(stream, streams),
                )
        if len(pair) != 2:
            raise StatisticsError(
                f"a condition is between {', '.join(sorted(pair)) or 'no streams'}",
                remedy="give pairs of streams",
            )
    reached, left = {streams[0]}, set(streams[1:])
    while near := {s for s in left if any(s in p and p & reached for p in conditions)}:
        reached |= near
        left -= near
    if left:
        raise StatisticsError(
            f"no condition ties {quoted(sorted(left)[0])} to {quoted(streams[0])}, also not "
            "through other streams",
            remedy="add a join condition: a cross product cannot be planned",
        )


def one_way(prefix: Prefix, candidate: SiteCandidate, prices: JoinPrices) -> JoinCost:
    """Equations 1 and 2: the join of arriving tuples with the window of a stream.

    >>> setting = paper_setting(3)
    >>> found = one_way(setting.first("S1"), setting.candidate("S2"), setting.prices)
    >>> found.source == found.destination
    True
    """
    known = candidate.statistics
    if candidate.partners is not None and candidate.partners.isdisjoint(prefix.streams):
        return JoinCost(math.inf, math.inf)
    local = known.rate * prices.update + prices.seconds(
        prefix.rate, known.tuples, _matches(prefix, known)
    )
    if prefix.site == candidate.site:
        return JoinCost(local, local)
    there, back = candidate.inbound[prefix.site], candidate.outbound[prefix.site]
    return JoinCost(
        back.seconds(known.rate * known.tuple_bytes) + local,
        there.seconds(prefix.rate * prefix.tuple_bytes) + local,
    )


def joined(prefix: Prefix, candidate: SiteCandidate, placement: Placement) -> Prefix:
    """The output of a one-way join: r, f, t and place of S^i_k.

    >>> setting = paper_setting(3)
    >>> found = joined(setting.first("S1"), setting.candidate("S2"), 1)
    >>> found.rate, found.tuple_bytes, found.site
    (50.0, 300, 'N2')
    """
    known = candidate.statistics
    stays = placement == 0
    return Prefix(
        streams=(*prefix.streams, candidate.stream),
        host=prefix.host if stays else candidate.stream,
        site=prefix.site if stays else candidate.site,
        rate=_finite(prefix.rate * _matches(prefix, known)),
        factor=max(prefix.factor, known.factor),
        tuple_bytes=prefix.tuple_bytes + known.tuple_bytes,
    )


def _matches(prefix: Prefix, known: StreamStatistics) -> float:
    """The tuples of a window that one arriving tuple matches."""
    return min(prefix.factor, known.factor) * known.tuples


def sep_costs(setting: SiteSetting, sep: Sep) -> list[float]:
    """The cost of each one-way join of a sequence, in its order.

    >>> [round(c, 4) for c in sep_costs(paper_setting(3), Sep("S1", ("S2", "S3"), (1, 1)))]
    [0.1332, 0.1277]
    """
    prefix, found = setting.first(sep.head), []
    for step in steps(setting.sites, sep):
        candidate = setting.candidate(step.stream)
        found.append(one_way(prefix, candidate, setting.prices).of(step.placement))
        prefix = joined(prefix, candidate, step.placement)
    return found


def jep_cost(setting: SiteSetting, jep: Jep) -> float:
    """The cost of a whole plan, in seconds per second: the sum over all sequences.

    >>> from plait.sites.planner.greedy import greedy
    >>> round(jep_cost(paper_setting(3), greedy(paper_setting(3))), 4)
    0.7829
    """
    check_jep(setting.sites, jep)
    return math.fsum(cost for sep in jep.seps for cost in sep_costs(setting, sep))


def paper_setting(
    streams: int, rates: Mapping[str, float] | None = None, prices: JoinPrices = NESTED_LOOP
) -> SiteSetting:
    """The settings of section 5: one stream per site, equal links, 100 tuples/s but for `rates`.

    1024 Kbps are 128,000 bytes per second.

    >>> paper_setting(4, {"S1": 200.0}).statistics["S1"].tuples
    100.0
    """
    from plait.sites.plans.plan import fully_connected

    names = [f"S{n}" for n in range(1, streams + 1)]
    sites = fully_connected(
        {name: f"N{n}" for n, name in enumerate(names, 1)}, 0.005, 128_000, results="N0"
    )
    given = rates or {}
    return SiteSetting(
        sites,
        {name: StreamStatistics(given.get(name, 100.0), 0.01, 150, 0.5) for name in names},
        prices,
    )
