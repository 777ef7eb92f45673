"""Legs: the consecutive joins of a sequence that run at one site, between two shipments.

A head's tuples go from leg to leg. The first leg takes the tuples of the head stream as they
arrive, at their home or shipped from there; each further leg takes what the one before ships. A leg
joins its tuples with the windows of some streams, all kept at its site, and ships the outcome on:
to the next leg, or, if it is the last one, to where results go. Legs are the operators of a node
operator set in the order in which they fire; they add nothing to it and leave nothing out.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from plait.sites.plans.plan import Jep, Sep, Sites, check_jep, fully_connected, steps


@dataclass(frozen=True, slots=True)
class Leg:
    """The joins of one sequence at one site.

    >>> sites = example_sites()
    >>> for leg in legs_of(sites, Sep("a", ("b", "c"), (1, 0))):
    ...     print(leg)
    a at n2: join b, c, then results
    """

    head: str
    number: int
    """Its place among the legs of its head, from 0 on."""
    site: str
    joined: tuple[str, ...]
    """The streams whose tuples come in, the head first."""
    streams: tuple[str, ...]
    """The streams whose windows are probed, in turn."""
    target: str
    """Where the outcome goes."""
    last: bool
    """Whether the outcome is results."""

    def __str__(self) -> str:
        came = " ".join(self.joined)
        return f"{came} at {self.site}: join {', '.join(self.streams)}, then {self.target}"


def legs_of(sites: Sites, sep: Sep) -> tuple[Leg, ...]:
    """The legs of one sequence, in turn.

    >>> for leg in legs_of(example_sites(), Sep("a", ("b", "c"), (0, 1))):
    ...     print(leg)
    a at n1: join b, then n3
    a b at n3: join c, then results
    """
    parts = [
        (site, tuple(step.stream for step in run))
        for site, run in groupby(steps(sites, sep), key=lambda step: step.site)
    ]
    found: list[Leg] = []
    joined: tuple[str, ...] = (sep.head,)
    for number, (site, streams) in enumerate(parts):
        last = number + 1 == len(parts)
        target = sites.results if last else parts[number + 1][0]
        found.append(
            Leg(
                head=sep.head,
                number=number,
                site=site,
                joined=joined,
                streams=streams,
                target=target,
                last=last,
            )
        )
        joined += streams
    return tuple(found)


@dataclass(frozen=True, slots=True)
class SitePart:
    """What one site does for a plan: its legs, the windows it keeps, and who gets its streams.

    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> part = site_part(fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000), jep, "n1")
    >>> part.legs, part.windows, part.ships
    ((), frozenset(), {'a': ('n2',)})
    """

    legs: tuple[Leg, ...]
    windows: frozenset[str]
    ships: dict[str, tuple[str, ...]]
    """The other sites that get the tuples of each stream that arrives here."""
    first_legs: dict[str, str]
    """Where the first leg is of each stream that arrives here."""


def site_part(sites: Sites, jep: Jep, site: str) -> SitePart:
    """The part of a site, which may also be the one that results go to.

    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> part = site_part(fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000), jep, "n2")
    >>> [str(leg) for leg in part.legs], sorted(part.windows)
    (['a at n2: join b, then results', 'b at n2: join a, then results'], ['a', 'b'])
    """
    check_jep(sites, jep)
    legs = [leg for sep in jep.seps for leg in legs_of(sites, sep)]
    mine = tuple(leg for leg in legs if leg.site == site)
    ships: dict[str, tuple[str, ...]] = {}
    for stream, home in sites.homes:
        if home == site:
            there = [leg.site for leg in legs if _needs(leg, stream)]
            ships[stream] = tuple(dict.fromkeys(t for t in there if t != site))
    first = {leg.head: leg.site for leg in legs if leg.head in ships and not leg.number}
    return SitePart(mine, frozenset(s for leg in mine for s in leg.streams), ships, first)


def _needs(leg: Leg, stream: str) -> bool:
    """Whether a leg needs the tuples of a stream from its home."""
    return stream in leg.streams or (leg.head == stream and not leg.number)


def example_sites() -> Sites:
    """Three sites with a stream each, for examples."""
    return fully_connected({"a": "n1", "b": "n2", "c": "n3"}, latency=0.005, rate=128_000)
