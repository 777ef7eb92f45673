"""Algorithm 1: order and placement of each sequence, the cheapest next join first.

*Correct output.* Every sequence satisfies equation 4: no join that comes later in it would have
been cheaper in the place of an earlier one. `violations` says where a plan does not.

*Ties* go to the stream that comes first in the query. The paper leaves them open; without a rule,
its central and its distributed algorithm can end in different plans.

*Cost.* For m streams, m sequences with m²/2 evaluations each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.sites.planner.cost import Prefix, SiteSetting, joined, one_way
from plait.sites.plans.plan import Jep, Placement, Sep, check_jep, steps


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
