"""The bound on how long tuples wait in the metaqueues of Teddies."""

from __future__ import annotations

import math

from plait.plan.routed import Teddies


def longest_wait(settings: Teddies, metaqueues: int, occupancy: int) -> int:
    """The most rounds that a tuple waits among `metaqueues` of at most `occupancy` tuples.

    Past the counter limit the threshold is halved in each round; once it is one, the metaqueue is
    in the scheduler's queue, where each of the others comes before it once for every packet that
    its own tuples fill.

    >>> longest_wait(Teddies(packet_limit=8, threshold_limit=8, counter_limit=4), 5, occupancy=8)
    14
    """
    highest = min(settings.threshold_limit, settings.packet_limit)
    unscheduled = settings.counter_limit + math.ceil(math.log2(highest)) + 2
    packets = math.ceil(max(1, occupancy) / settings.packet_limit)
    return unscheduled + metaqueues * packets
