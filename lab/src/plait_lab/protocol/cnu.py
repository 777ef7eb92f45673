"""Centralized node-operator-set update (CNU, algorithm 2) as messages.

One site is the centre. A site whose statistics changed more than the threshold reports them; the
centre plans anew and sends every affected site its new operators, and asks for the windows that
these need. What the centre tells itself is not sent.

*Cost.* One report and a message for each affected site but the centre: n in all, if all n sites are
affected and another one than the centre has reported, as in the paper's experiments.
"""

from __future__ import annotations

from plait.sites.planner.cost import StreamStatistics
from plait.sites.planner.policy import CentralUpdate
from plait.sites.protocol.messages import CopyWindow, NewOperators, ReportStatistics, Sent


def report(site: str, centre: str, stream: str, statistics: StreamStatistics) -> tuple[Sent, ...]:
    """What a site sends when the statistics of its stream have changed.

    >>> report("N1", "N1", "S1", StreamStatistics(1, 0.1, 10, 1))
    ()
    """
    if site == centre:
        return ()
    return (Sent(site, centre, ReportStatistics(stream, statistics)),)


def ordered(update: CentralUpdate, centre: str) -> tuple[Sent, ...]:
    """What the centre sends for a new plan: operators, then the requests for windows.

    >>> from plait.sites.planner.policy import central_update
    >>> from plait.sites.planner.cost import paper_setting
    >>> from plait.sites.planner.greedy import greedy
    >>> update = central_update(paper_setting(4, {"S1": 200.0}), greedy(paper_setting(4)))
    >>> [s.receiver for s in ordered(update, "N4") if isinstance(s.message, NewOperators)]
    ['N1', 'N2', 'N3']
    """
    sets = [
        Sent(centre, site, NewOperators(operators, update.affected))
        for site, operators in update.operators.items()
    ]
    windows = [
        Sent(centre, copy.origin, CopyWindow(copy.stream, copy.target)) for copy in update.copies
    ]
    return tuple(sent for sent in sets + windows if sent.receiver != centre)
