"""Algorithm 1: order and placement of each sequence, the cheapest next join first.

*Correct output.* Every sequence satisfies equation 4: no join that comes later in it would have
been cheaper in the place of an earlier one.

*Ties* go to the stream that comes first in the query. The paper leaves them open; without a rule,
its central and its distributed algorithm can end in different plans.

*Cost.* For m streams, m sequences with m²/2 evaluations each.
"""

from __future__ import annotations

from plait.sites.planner.cost import SiteSetting, joined, one_way
from plait.sites.plans.plan import Jep, Placement, Sep


def greedy(setting: SiteSetting) -> Jep:
    """The plan of algorithm 1.

    >>> from plait.sites.planner.cost import paper_setting
    >>> print(greedy(paper_setting(3, {"S2": 50.0})))
    S1 → S2@0 → S3@1, S2 → S1@1 → S3@1, S3 → S2@0 → S1@1
    """
    return Jep(tuple(greedy_sep(setting, head) for head in setting.sites.streams))


def greedy_sep(setting: SiteSetting, head: str) -> Sep:
    """The sequence of one head stream.

    >>> from plait.sites.planner.cost import paper_setting
    >>> print(greedy_sep(paper_setting(3, {"S2": 200.0}), "S1"))
    S1 → S3@0 → S2@1
    """
    prefix = setting.first(head)
    left = [stream for stream in setting.sites.streams if stream != head]
    order: list[str] = []
    placements: list[Placement] = []
    while left:
        costs = {s: one_way(prefix, setting.candidate(s), setting.prices) for s in left}
        # The first of equals, and `left` is in the order of the query.
        best = min(left, key=lambda s: costs[s].least)
        placement = costs[best].placement
        order.append(best)
        placements.append(placement)
        left.remove(best)
        prefix = joined(prefix, setting.candidate(best), placement)
    return Sep(head, tuple(order), tuple(placements))
