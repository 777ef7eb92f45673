"""Plans of joins whose streams arrive at different sites: who joins what, and where.

*Sites.* Every stream arrives at one site, its home; directed links join the sites. Several streams
may have the same home: a join between them ships nothing, and both placements mean the same there.
Results go to the site `results`, which may be one of the sites or another one. What is sent there
is not part of a plan's cost, so it needs no links.

*Plans.* A new tuple of a stream, the *head* of a sequence, is joined with the windows of the other
streams in the order of its `Sep`. A one-way join runs either where the tuples are that it joins
(placement 0, the source: the stream is shipped there and its window is kept there) or at the home
of the stream it joins them with (placement 1, the destination: the tuples are shipped). A `Jep` has
one `Sep` for each stream.

*Node operator sets.* From a `Jep` every site takes the operators that it has to run. The paper's
construction (section 4.1) says where the join to the successor of S_k runs as if S_k's output were
always at S_k's home. With placement 0 it is not, and the paper's own example 2 has the operators
where the output is. So do we: operators on the output of a join are at the site that ran it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from plait.errors import (
    LinkWithoutRate,
    SiteError,
    SiteWithoutStream,
    UnknownSite,
    UnknownStream,
    did_you_mean,
)
from plait.query.names import quoted

Placement: TypeAlias = Literal[0, 1]
"""0: at the source of the tuples; 1: at the home of the stream that is joined."""


@dataclass(frozen=True, slots=True)
class SiteLink:
    """What it costs to send from one site to another: seconds at once, and bytes per second.

    >>> SiteLink("oslo", "rome", latency=0.005, rate=128_000).seconds(64_000)
    0.505
    """

    origin: str
    target: str
    latency: float
    rate: float

    def __post_init__(self) -> None:
        where = f"the link from {quoted(self.origin)} to {quoted(self.target)}"
        if self.origin == self.target:
            raise SiteError(f"{where} leads nowhere", remedy="what stays at a site needs no link")
        if not _is_number(self.rate) or not 0 < self.rate < math.inf:
            raise LinkWithoutRate(
                f"{where} has the transmission rate {self.rate!r}",
                remedy="give bytes per second, more than 0",
            )
        if not _is_number(self.latency) or not 0 <= self.latency < math.inf:
            raise SiteError(
                f"{where} has the latency {self.latency!r}", remedy="give seconds, 0 or more"
            )

    def seconds(self, size: float) -> float:
        """T(x) of the paper: the seconds it takes to send `size` bytes."""
        return self.latency + size / self.rate


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


@dataclass(frozen=True, slots=True)
class Sites:
    """The sites, the home of each stream, the links, and where results go.

    >>> sites = fully_connected({"a": "oslo", "b": "rome"}, latency=0.005, rate=128_000)
    >>> sites.home("b"), sites.link("oslo", "rome").rate, sites.results
    ('rome', 128000, 'results')
    >>> Sites(("oslo",), (("a", "oslo"), ("b", "rome")), (), "here")
    Traceback (most recent call last):
    plait.errors.UnknownSite: the stream b arrives at an unknown site 'rome'; known: oslo
    """

    names: tuple[str, ...]
    homes: tuple[tuple[str, str], ...]
    """Stream and site, in the order of the query's streams."""
    links: tuple[SiteLink, ...]
    results: str

    def __post_init__(self) -> None:
        _refuse_twice(self.names, "site")
        _refuse_twice([stream for stream, _ in self.homes], "stream")
        if len(self.homes) < 2:
            raise SiteError("fewer than two streams arrive", remedy="a join needs two")
        for stream, site in self.homes:
            if site not in self.names:
                raise UnknownSite(
                    f"the stream {quoted(stream)} arrives at an unknown site {site!r}",
                    remedy=did_you_mean(site, self.names),
                )
        used = {site for _, site in self.homes}
        for site in self.names:
            if site not in used:
                raise SiteWithoutStream(
                    f"no stream arrives at the site {quoted(site)}",
                    remedy="leave it out; results may go to a site that is not listed",
                )
        for link in self.links:
            for site in (link.origin, link.target):
                if site not in self.names:
                    raise UnknownSite(
                        f"there is a link from {quoted(link.origin)} to {quoted(link.target)}, "
                        f"but no site {site!r}",
                        remedy=did_you_mean(site, self.names),
                    )
        _refuse_twice([f"{link.origin} → {link.target}" for link in self.links], "link")
        there = {(link.origin, link.target) for link in self.links}
        for origin in self.names:
            for target in self.names:
                if origin != target and (origin, target) not in there:
                    raise LinkWithoutRate(
                        f"the link from {quoted(origin)} to {quoted(target)} has no transmission "
                        "rate",
                        remedy="give latency and rate for each pair of sites, in both directions",
                    )

    @property
    def streams(self) -> tuple[str, ...]:
        """All streams, in the order of the query."""
        return tuple(stream for stream, _ in self.homes)

    def home(self, stream: str) -> str:
        """The site at which a stream arrives."""
        for name, site in self.homes:
            if name == stream:
                return site
        raise UnknownStream(
            f"there is no stream {stream!r}", remedy=did_you_mean(stream, self.streams)
        )

    def link(self, origin: str, target: str) -> SiteLink:
        """The link from one site to another."""
        for link in self.links:
            if (link.origin, link.target) == (origin, target):
                return link
        wrong = target if origin in self.names else origin
        raise UnknownSite(f"there is no site {wrong!r}", remedy=did_you_mean(wrong, self.names))


def _refuse_twice(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise SiteError(f"the {what} {name!r} is there twice", remedy="name it once")


def fully_connected(
    homes: Mapping[str, str],
    latency: float,
    rate: float,
    *,
    others: Iterable[SiteLink] = (),
    results: str = "results",
) -> Sites:
    """Sites with equal links between all of them, but for the `others`.

    >>> slow = SiteLink("n1", "n2", latency=0.1, rate=1_000)
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000, others=[slow])
    >>> sites.link("n1", "n2").latency, sites.link("n2", "n1").latency
    (0.1, 0.005)
    """
    names = tuple(dict.fromkeys(homes.values()))
    links = {(o, t): SiteLink(o, t, latency, rate) for o in names for t in names if o != t}
    links |= {(link.origin, link.target): link for link in others}
    return Sites(names, tuple(homes.items()), tuple(links.values()), results)


@dataclass(frozen=True, slots=True)
class Sep:
    """Per-stream execution plan: what a new tuple of the head is joined with, and where.

    >>> print(Sep("a", ("b", "c"), (1, 0)))
    a → b@1 → c@0
    """

    head: str
    order: tuple[str, ...]
    placements: tuple[Placement, ...]

    def __post_init__(self) -> None:
        if len(self.order) != len(self.placements):
            raise SiteError(
                f"the sequence of {quoted(self.head)} joins {len(self.order)} streams but has "
                f"{len(self.placements)} placements",
                remedy="give one placement for each join",
            )
        given: Sequence[object] = self.placements
        for stream, placement in zip(self.order, given, strict=True):
            if type(placement) is not int or placement not in (0, 1):
                raise SiteError(
                    f"the join with {quoted(stream)} in the sequence of {quoted(self.head)} has "
                    f"the placement {placement!r}",
                    remedy="give 0 (at the source) or 1 (at the destination)",
                )

    def __str__(self) -> str:
        steps = zip(self.order, self.placements, strict=True)
        return " → ".join([quoted(self.head), *(f"{quoted(s)}@{p}" for s, p in steps)])


@dataclass(frozen=True, slots=True)
class Jep:
    """Join execution plan: the sequence of every stream.

    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> str(jep), jep.of("b").order
    ('a → b@1, b → a@0', ('a',))
    """

    seps: tuple[Sep, ...]

    def of(self, head: str) -> Sep:
        """The sequence that begins with this stream."""
        for sep in self.seps:
            if sep.head == head:
                return sep
        known = [sep.head for sep in self.seps]
        raise UnknownStream(f"no sequence begins with {head!r}", remedy=did_you_mean(head, known))

    def __str__(self) -> str:
        return ", ".join(map(str, self.seps))


def check_jep(sites: Sites, jep: Jep) -> None:
    """Refuse a plan that is not one for these streams, naming the difference.

    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> check_jep(sites, Jep((Sep("a", ("b",), (1,)),)))
    Traceback (most recent call last):
    plait.errors.SiteError: the plan has no sequence for the stream b
    """
    heads = [sep.head for sep in jep.seps]
    for head in heads:
        _check_stream(sites, head)
        if heads.count(head) > 1:
            raise SiteError(f"the plan has two sequences for the stream {quoted(head)}")
    for stream in sites.streams:
        if stream not in heads:
            raise SiteError(f"the plan has no sequence for the stream {quoted(stream)}")
    for sep in jep.seps:
        for stream in sep.order:
            _check_stream(sites, stream)
            if stream == sep.head or sep.order.count(stream) > 1:
                raise SiteError(
                    f"the sequence {sep} joins the stream {quoted(stream)} twice",
                    remedy="name every other stream once",
                )
        if missing := [s for s in sites.streams if s != sep.head and s not in sep.order]:
            raise SiteError(f"the sequence {sep} lacks the stream {quoted(missing[0])}")


def _check_stream(sites: Sites, stream: str) -> None:
    if stream not in sites.streams:
        raise SiteError(
            f"the plan has a stream {stream!r} that does not arrive anywhere",
            remedy=did_you_mean(stream, sites.streams),
        )


@dataclass(frozen=True, slots=True)
class Flow:
    """Tuples on their way: those of a stream, or of a head joined up to this stream.

    The paper writes S_2 for the first, and S^1_2 for S_1 joined up to S_2.

    >>> print(Flow("S2"), Flow("S2", "S1"))
    S2 S1→S2
    """

    stream: str
    head: str | None = None

    def __str__(self) -> str:
        return (f"{quoted(self.head)}→" if self.head is not None else "") + quoted(self.stream)


@dataclass(frozen=True, slots=True)
class OneWayJoin:
    """Probe the window of a stream with the tuples of a flow.

    >>> print(OneWayJoin(Flow("S2", "S1"), "S3"))
    join(S1→S2, S3)
    """

    flow: Flow
    stream: str

    def __str__(self) -> str:
        return f"join({self.flow}, {quoted(self.stream)})"


@dataclass(frozen=True, slots=True)
class Update:
    """Keep the window of a stream.

    >>> print(Update("S2"))
    update(S2)
    """

    stream: str

    def __str__(self) -> str:
        return f"update({quoted(self.stream)})"


@dataclass(frozen=True, slots=True)
class Ship:
    """Send the tuples of a flow to a site.

    >>> print(Ship(Flow("S2"), "N3"))
    ship(S2, N3)
    """

    flow: Flow
    site: str

    def __str__(self) -> str:
        return f"ship({self.flow}, {quoted(self.site)})"


Operator: TypeAlias = OneWayJoin | Update | Ship


@dataclass(frozen=True, slots=True)
class SiteStep:
    """A one-way join of a sequence, with the sites that take part in it."""

    flow: Flow
    """The tuples that are joined."""
    stream: str
    """What they are joined with."""
    placement: Placement
    source: str
    """Where the tuples are."""
    home: str
    """Where the stream arrives."""
    output: Flow

    @property
    def site(self) -> str:
        """Where the join runs, and so where its output is."""
        return self.source if self.placement == 0 else self.home

    def shipped(self) -> tuple[Flow, str, str] | None:
        """What is sent for this join, from where and to where; None if nothing is."""
        if self.source == self.home:
            return None
        if self.placement == 0:
            return Flow(self.stream), self.home, self.source
        return self.flow, self.source, self.home

    def operators(self) -> Iterator[tuple[str, Operator]]:
        """The operators of this join, each with its site."""
        yield self.site, OneWayJoin(self.flow, self.stream)
        yield self.site, Update(self.stream)
        if (shipped := self.shipped()) is not None:
            flow, origin, target = shipped
            yield origin, Ship(flow, target)


def steps(sites: Sites, sep: Sep) -> Iterator[SiteStep]:
    """The joins of a sequence in turn.

    >>> sites = fully_connected({"a": "n1", "b": "n2", "c": "n3"}, 0.005, 128_000)
    >>> [step.site for step in steps(sites, Sep("a", ("b", "c"), (1, 0)))]
    ['n2', 'n2']
    """
    source, flow = sites.home(sep.head), Flow(sep.head)
    for stream, placement in zip(sep.order, sep.placements, strict=True):
        step = SiteStep(
            flow=flow,
            stream=stream,
            placement=placement,
            source=source,
            home=sites.home(stream),
            output=Flow(stream, sep.head),
        )
        yield step
        source, flow = step.site, step.output


def sep_operators(sites: Sites, sep: Sep) -> dict[str, frozenset[Operator]]:
    """NOS^i_k for every site k: the operators by which the sites run one sequence.

    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> found = sep_operators(sites, Sep("a", ("b",), (0,)))
    >>> sorted(map(str, found["n1"])), sorted(map(str, found["n2"]))
    (['join(a, b)', 'ship(a→b, results)', 'update(b)'], ['ship(b, n1)'])
    """
    found: dict[str, set[Operator]] = {site: set() for site in sites.names}
    for step in steps(sites, sep):
        for site, operator in step.operators():
            found[site].add(operator)
    # Here the loop's last step: its output is what is asked for.
    found[step.site].add(Ship(step.output, sites.results))
    return {site: frozenset(operators) for site, operators in found.items()}


def operator_sets(sites: Sites, jep: Jep) -> dict[str, frozenset[Operator]]:
    """NOS_k for every site k: the union over all sequences of the plan.

    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> sorted(map(str, operator_sets(sites, jep)["n1"]))
    ['ship(a, n2)']
    """
    check_jep(sites, jep)
    each = [sep_operators(sites, sep) for sep in jep.seps]
    return {site: frozenset().union(*(found[site] for found in each)) for site in sites.names}
