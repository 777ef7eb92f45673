"""The header of a site: all that it knows beside the rows and packets in its store.

With the segments of the store, a site is rebuilt from it. It is written with every step and has a
version: a header of a later version is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plait.codec import from_plain, to_plain
from plait.errors import CheckpointDamaged, CheckpointMismatch, SiteError, SourceError
from plait.sites.plans.plan import Jep, Sites
from plait.sites.site.eras import PlanEras
from plait.sites.site.packets import LegKey, SiteChannel

VERSION = 1


@dataclass(frozen=True, slots=True)
class SiteLinkState:
    """What a site knows of the packets between itself and another one, in one channel."""

    sent: int = 0
    """The number of the last packet to it."""
    acknowledged: int = 0
    """The last one of these that it has taken in."""
    received: int = 0
    """The number of the last packet from it that was taken in."""
    clock: int = 0
    """Its clock, as far as that packet told."""
    asked: int = 0
    """The highest clock that it was asked to reach."""
    waits: int = 0
    """The step since which nothing new was acknowledged, if packets are outstanding."""
    resent: int = 0
    """The last step in which packets were sent again."""
    again: int = 0
    """How many these were; 0 once all is acknowledged."""


@dataclass(frozen=True, slots=True)
class SiteHeader:
    """What a site knows after a step."""

    site: str
    sites: Sites
    plans: Mapping[int, Jep]
    """The plans that run, by number."""
    step: int = 0
    """How many steps it has made."""
    token: str = ""
    """The name of this very state, given by the host; empty before the first step."""
    clock: int = 0
    newest: Mapping[str, int] = field(default_factory=dict)
    """The newest event time of each stream that arrives here."""
    ended: bool = False
    """Whether its streams have ended."""
    items: int = 0
    """Sets of tuples that have waited so far; their segments are numbered."""
    links: Mapping[SiteChannel, SiteLinkState] = field(default_factory=dict)
    frontiers: Mapping[LegKey, int] = field(default_factory=dict)
    """For the legs here, the event time that no head to come is before."""
    told: Mapping[LegKey, int] = field(default_factory=dict)
    """The same for legs elsewhere, as this site has told them."""
    eras: PlanEras = field(default_factory=PlanEras)
    """Which plan holds when."""
    planning: Any = None
    """What it knows of changes of the plan, if the plan may change."""

    def to_json(self) -> str:
        """For the store. What is known of changes of the plan is plain already."""
        plain = to_plain(replace(self, planning=None))
        return json.dumps({"version": VERSION, **plain, "planning": self.planning})

    @classmethod
    def from_json(cls, text: str) -> SiteHeader:
        """The inverse of `to_json`.

        >>> from plait.sites.plans.legs import example_sites
        >>> from plait.sites.plans.plan import Sep
        >>> jep = Jep(tuple(Sep(s, tuple("abc".replace(s, "")), (0, 1)) for s in "abc"))
        >>> told = {LegKey(0, "a", 1): 7}
        >>> header = SiteHeader("n1", example_sites(), {0: jep}, 4, "t", told=told)
        >>> SiteHeader.from_json(header.to_json()) == header
        True
        """
        try:
            given: dict[str, Any] = json.loads(text)
            version = given.pop("version")
            if version > VERSION:
                raise CheckpointMismatch(
                    f"the state of a site was written by a later version of Plait (its header has "
                    f"version {version}, this one knows {VERSION})",
                    remedy="run the site with the version that wrote it",
                )
            return from_plain(cls, given)
        except (ValueError, TypeError, KeyError, AttributeError, SiteError, SourceError) as error:
            raise CheckpointDamaged(
                f"the header in the state of a site cannot be read: {error}",
                remedy="put the files of the state back from a copy of the checkpoint",
            ) from error
