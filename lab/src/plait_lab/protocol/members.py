"""The plan and the node operator sets that members of the distributed update have agreed on."""

from __future__ import annotations

from collections.abc import Mapping

from plait.sites.plans.plan import Jep, Operator, Sep, Ship
from plait.sites.protocol.dnu import Member


def plan_of(group: Mapping[str, Member]) -> Jep:
    """The plan that members at rest have agreed on.

    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> from plait.sites.protocol.dnu import members
    >>> plan = greedy(paper_setting(4))
    >>> plan_of(members(paper_setting(4), plan)) == plan
    True
    """
    seps = []
    for head, member in group.items():
        order: list[str] = []
        at: str | None = member.first
        while at is not None:
            order.append(at)
            at = group[at].seats[head].after
        placements = tuple(group[s].seats[head].placement for s in order)
        seps.append(Sep(head, tuple(order), placements))
    return Jep(tuple(seps))


def operators_of(group: Mapping[str, Member]) -> dict[str, frozenset[Operator]]:
    """The node operator set of each site: the union over its members.

    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> from plait.sites.protocol.dnu import members
    >>> from plait.sites.plans.plan import operator_sets
    >>> setting = paper_setting(4)
    >>> plan = greedy(setting)
    >>> operators_of(members(setting, plan)) == operator_sets(setting.sites, plan)
    True
    """
    found: dict[str, frozenset[Operator]] = {}
    for member in group.values():
        found[member.me.site] = found.get(member.me.site, frozenset()) | _operators(member)
    return found


def _operators(member: Member) -> frozenset[Operator]:
    """The operators that the site of a member runs because of it."""
    site, found = member.me.site, set[Operator]()
    for part in (*member.joins.values(), *member.guests.values()):
        found |= {operator for where, operator in part.step.operators() if where == site}
        if part.last and part.step.site == site:
            found.add(Ship(part.step.output, member.results))
    return frozenset(found)
