"""Centralized node-operator-set update (CNU, algorithm 2), with the messages of the paper.

One site is the centre. A site whose statistics changed more than the threshold reports them; the
centre plans anew and sends every affected site its new operators, and asks for the windows that
these need. What the centre tells itself is not sent. (On Spark all sites install the whole plan,
and take their operators and windows from it: `plait.sites.protocol.turns`.)

*Cost.* One report and a message for each affected site but the centre: n in all, if all n sites are
affected and another one than the centre has reported, as in the paper's experiments.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from plait.sites.planner.cost import SiteSetting, StreamStatistics
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep, Operator, Sites, Update, operator_sets
from plait.sites.protocol.messages import ReportStatistics


@dataclass(frozen=True, slots=True)
class NewOperators:
    """To an affected site: run these operators, and switch over together with the others."""

    operators: frozenset[Operator]
    affected: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CopyWindow:
    """To the site that keeps a window: send it to another one, or share it with new operators."""

    stream: str
    target: str


@dataclass(frozen=True, slots=True)
class CentralSent:
    """A message of the central update on its way."""

    sender: str
    receiver: str
    message: ReportStatistics | NewOperators | CopyWindow


def report(
    site: str, centre: str, stream: str, statistics: StreamStatistics
) -> tuple[CentralSent, ...]:
    """The message of a site to the centre when the statistics of its stream have changed.

    >>> report("N1", "N1", "S1", StreamStatistics(1, 0.1, 10, 1))
    ()
    """
    if site == centre:
        return ()
    return (CentralSent(site, centre, ReportStatistics(stream, statistics)),)


def ordered(update: CentralUpdate, centre: str) -> tuple[CentralSent, ...]:
    """The messages of the centre for a new plan: operators, then the requests for windows.

    >>> from plait.sites.planner.cost import paper_setting
    >>> update = central_update(paper_setting(4, {"S1": 200.0}), greedy(paper_setting(4)))
    >>> [s.receiver for s in ordered(update, "N4") if isinstance(s.message, NewOperators)]
    ['N1', 'N2', 'N3']
    """
    sets = [
        CentralSent(centre, site, NewOperators(operators, update.affected))
        for site, operators in update.operators.items()
    ]
    windows = [
        CentralSent(centre, copy.origin, CopyWindow(copy.stream, copy.target))
        for copy in update.copies
    ]
    return tuple(sent for sent in sets + windows if sent.receiver != centre)


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
