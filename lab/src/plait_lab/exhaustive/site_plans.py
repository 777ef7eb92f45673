"""The best plan over sites, by trying all orders and placements: the measure of `site_greedy`.

Sequences do not share costs in the paper's model, so the best plan has the best sequence of each
head. A sequence is extended only while it is cheaper than the best one known; costs are never
negative, so nothing is missed.

*Cost.* Up to (m-1)! 2^(m-1) sequences for each of m heads: good for about seven streams.

*Ties* go to the first in the order of the query, with joins at the source first.
"""

from __future__ import annotations

from plait.sites.planner.cost import Prefix, SiteSetting, joined, one_way, sep_costs
from plait.sites.planner.greedy import greedy_sep
from plait.sites.plans.plan import Jep, Placement, Sep


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
