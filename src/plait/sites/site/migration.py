"""Which plan a head follows, and what is still missing before a new one can be followed.

*Distributed track.* A new plan is installed beside the old one at every site. Its legs are there at
once, without heads. A site whose new legs probe windows that it lacks, or keeps for other heads
only, asks the home of the stream for them. The home names the last stamp it has given out, sends
every later row to that site as well, and has each holder send what it keeps up to that stamp.
Holders are the sites at which the old plan probes the window with the same heads: they keep what
these heads need. What comes is put together by stamp (`site_windows`).

*Switch-over.* A head follows the plan that holds at its stamp, so each result is found under one
plan: that of its head. Sites agree on the stamp by `plait.sites.protocol.switch_over`. One that has
promised to switch from some stamp on *holds* the heads from there on until it knows the outcome:
they are stored, shipped and kept, but not joined.

*Retirement.* After the switch no more heads come to the old legs, and their frontiers say so: they
move to the end of time, from leg to leg, behind the last heads. A site drops an old plan when all
its legs there are done, and with it the windows that nobody else needs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from plait.sites.plans.legs import legs_of
from plait.sites.plans.plan import Jep, Sites


@dataclass(frozen=True, slots=True)
class PlanEras:
    """Which plan holds from which stamp on, and what a migration under way needs.

    >>> eras = PlanEras().switched(1, 40)
    >>> eras.plan_at(39), eras.plan_at(40)
    (0, 1)
    """

    begins: tuple[tuple[int, int], ...] = ((0, 0),)
    """(stamp, plan), in order."""
    hold: int | None = None
    """The stamp from which on heads wait for a decision."""
    missing: frozenset[tuple[int, str, str]] = frozenset()
    """(plan, stream, holder) of copies of windows that have not come so far."""
    subscribers: frozenset[tuple[int, str, str]] = frozenset()
    """(plan, stream, site) of those who get a stream for the sake of a plan to come."""
    abandoned: frozenset[int] = frozenset()
    """Plans that were given up, the newest of them."""

    def plan_at(self, stamp: int) -> int:
        """The plan that a head with this stamp follows."""
        return next(plan for begin, plan in reversed(self.begins) if begin <= stamp)

    def holds(self, stamp: int) -> bool:
        """Whether a head with this stamp waits for a decision."""
        return self.hold is not None and stamp >= self.hold

    def switched(self, plan: int, stamp: int) -> PlanEras:
        """With a plan that holds from a stamp on."""
        return PlanEras((*self.begins, (stamp, plan)), abandoned=self.abandoned)

    def given_up(self, plan: int, remembered: int) -> PlanEras:
        """Without a plan that was to come; so many that were given up are remembered."""
        newest = sorted(self.abandoned | {plan})[-remembered:]
        return PlanEras(self.begins, abandoned=frozenset(newest))

    def of(self, plans: Collection[int]) -> PlanEras:
        """Without the eras of plans that are gone: no head of theirs is to come.

        >>> PlanEras().switched(1, 40).of([1]).begins
        ((0, 1),)
        """
        (_, oldest), *others = [era for era in self.begins if era[1] in plans]
        return replace(self, begins=((0, oldest), *others))

    def to_dict(self) -> dict[str, Any]:
        """In the types of JSON."""
        return {
            "begins": [list(era) for era in self.begins],
            "hold": self.hold,
            "missing": [list(one) for one in sorted(self.missing)],
            "subscribers": [list(one) for one in sorted(self.subscribers)],
            "abandoned": sorted(self.abandoned),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PlanEras:
        """The inverse of `to_dict`.

        >>> eras = PlanEras(hold=3, missing=frozenset({(1, "a", "n2")}))
        >>> PlanEras.from_dict(eras.to_dict()) == eras
        True
        """
        return cls(
            tuple((int(begin), int(plan)) for begin, plan in given["begins"]),
            None if given["hold"] is None else int(given["hold"]),
            frozenset((int(p), str(s), str(h)) for p, s, h in given["missing"]),
            frozenset((int(p), str(s), str(t)) for p, s, t in given["subscribers"]),
            frozenset(map(int, given["abandoned"])),
        )


def holders(sites: Sites, old: Jep, new: Jep, site: str) -> dict[str, tuple[str, ...]]:
    """For each stream, the other sites whose windows a site needs before it can run a new plan.

    >>> from plait.sites.plans.plan import Sep, fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> old = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (1,))))
    >>> new = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))
    >>> holders(sites, old, new, "n1"), holders(sites, old, new, "n2")
    ({'b': ('n2',)}, {})
    """
    before, after = _probed_at(sites, old), _probed_at(sites, new)
    found: dict[str, set[str]] = {}
    for (head, stream), here in after.items():
        if here == site and before[head, stream] != site:
            found.setdefault(stream, set()).add(before[head, stream])
    return {stream: tuple(sorted(needed)) for stream, needed in sorted(found.items())}


def _probed_at(sites: Sites, jep: Jep) -> dict[tuple[str, str], str]:
    """For each head and stream, the site at which the one probes the window of the other."""
    return {
        (sep.head, stream): leg.site
        for sep in jep.seps
        for leg in legs_of(sites, sep)
        for stream in leg.streams
    }
