"""The best plan over sites, by trying all orders and placements: the measure of `site_greedy`.

Sequences do not share costs in the paper's model, so the best plan has the best sequence of each
head. A sequence is extended only while it is cheaper than the best one known; costs are never
negative, so nothing is missed.

*Cost.* Up to (m-1)! 2^(m-1) sequences for each of m heads: good for about seven streams.

*Ties* go to the first in the order of the query, with joins at the source first.

`violations` says where a plan is not greedy (equation 4 of the paper).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.sites.planner.cost import Prefix, SiteSetting, joined, one_way, sep_costs
from plait.sites.planner.greedy import greedy_sep
from plait.sites.plans.plan import Jep, Placement, Sep, check_jep, steps


def exhaustive(setting: SiteSetting) -> Jep:
    """The plan of the least cost.

    >>> from plait.sites.planner.cost import jep_cost, paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> setting = paper_setting(3, {"S2": 200.0})
    >>> jep_cost(setting, exhaustive(setting)) <= jep_cost(setting, greedy(setting))
    True
    """
    return Jep(tuple(exhaustive_sep(setting, head) for head in setting.sites.streams))


def exhaustive_sep(setting: SiteSetting, head: str) -> Sep:
    """The sequence of the least cost for one head stream.

    >>> from plait.sites.planner.cost import paper_setting
    >>> print(exhaustive_sep(paper_setting(3, {"S2": 200.0}), "S1"))
    S1 → S3@0 → S2@1
    """
    best = greedy_sep(setting, head)
    least = sum(sep_costs(setting, best))
    both: tuple[Placement, ...] = (0, 1)

    def extend(
        prefix: Prefix, order: tuple[str, ...], at: tuple[Placement, ...], so_far: float
    ) -> None:
        nonlocal best, least
        left = [s for s in setting.sites.streams if s not in prefix.streams]
        if not left:
            best, least = Sep(head, order, at), so_far
            return
        for stream in left:
            candidate = setting.candidate(stream)
            cost = one_way(prefix, candidate, setting.prices)
            for placement in both:
                total = so_far + cost.of(placement)
                if total < least:
                    after = joined(prefix, candidate, placement)
                    extend(after, (*order, stream), (*at, placement), total)

    extend(setting.first(head), (), (), 0.0)
    return best


@dataclass(frozen=True, slots=True)
class Violation:
    """A join that comes too early: another one that comes later would be cheaper in its place."""

    head: str
    stream: str
    later: str
    cost: float
    cheaper: float


def violations(setting: SiteSetting, jep: Jep) -> Iterator[Violation]:
    """Where a plan does not satisfy equation 4.

    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> plan = greedy(paper_setting(3))
    >>> len(list(violations(paper_setting(3), plan)))
    0
    >>> [v.head for v in violations(paper_setting(3, {"S2": 200.0}), plan)]
    ['S1']
    """
    check_jep(setting.sites, jep)
    for sep in jep.seps:
        prefix: Prefix = setting.first(sep.head)
        for n, step in enumerate(steps(setting.sites, sep)):
            here = setting.candidate(step.stream)
            cost = one_way(prefix, here, setting.prices).least
            for later in sep.order[n + 1 :]:
                other = one_way(prefix, setting.candidate(later), setting.prices).least
                if other < cost:
                    yield Violation(sep.head, step.stream, later, cost, other)
            prefix = joined(prefix, here, step.placement)
