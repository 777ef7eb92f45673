"""Choose how to migrate to another plan: by moving state or on a parallel track.

Moving state recomputes the states that only the new plan has; meanwhile no results come out. A
parallel track pauses for no more than a moment, but runs both plans until the last old row is
dropped, and holds the states of both. Both are predicted by the cost models of the CAPE paper
(`plait.optimize.migration_cost`) under current statistics. The cheaper one is chosen, except for

- a parallel track where moving state would pause for longer than the policy's `latency`;
- moving state where the states of both plans do not fit into the memory that is left.

Nothing here touches an engine: asking changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plait.adapt.policy import PlanPolicy
from plait.figures import duration, size
from plait.optimize.migration_cost import parallel_bytes, predict, terms_of
from plait.optimize.model import Model
from plait.plan.jtree import Node
from plait.plan.migration import Strategy


@dataclass(frozen=True, slots=True)
class Way:
    """How to migrate to another plan, why, and the predicted cost."""

    strategy: Strategy
    reason: str
    pause: float = 0.0
    """Seconds without results."""
    work: float = 0.0
    """CPU seconds of the whole migration."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for the event log."""
        return {name: getattr(self, name) for name in self.__slots__}


def way_to(
    model: Model,
    old: Node,
    new: Node,
    policy: PlanPolicy,
    *,
    room: float | None = None,
    price: float = 1.0,
    overhead: float = 0.0,
    running: float | None = None,
) -> Way:
    """Choose a strategy, given `room` bytes of free memory; None means no limit.

    `price` is the time that this machine takes for each second the model predicts, and `overhead`
    the time that an earlier migration took beyond computing states. `running` is the measured CPU
    per second of the old plan, if it differs from the model's prediction.

    >>> from plait.testing.models import long_chain_model
    >>> from plait.plan.jtree import parse_shape
    >>> model = long_chain_model()
    >>> old, new = (parse_shape(model.query, s) for s in ("(((a b) c) d)", "(a ((b c) d))"))
    >>> way_to(model, old, new, PlanPolicy()).reason
    'recomputing takes 40 ms, running both plans 1.6 s'
    >>> way_to(model, old, new, PlanPolicy(latency=0.001)).reason
    'moving state would pause for 40 ms, the limit is 1.0 ms'
    >>> way_to(model, old, new, PlanPolicy(latency=0.001), room=1e4).strategy
    'moving-state'
    """
    # An old row of any stream is dropped when its life is over, and combinations before that.
    lives = [model.volumes.longest(1 << i) for i in range(model.size)]
    found = predict(model, old, new, terms_of(model.costs), t_purge=max(lives))
    pause, extra = found.t_ms * price, found.parallel_extra * price
    if running is not None:
        extra += (running - found.old_load * price) * found.t_purge
    extra = max(0.0, extra)

    def moving(reason: str) -> Way:
        return Way("moving-state", reason, pause + overhead, pause + overhead)

    if not found.t_recompute:
        return moving("every state of the new plan exists already")
    late = policy.latency is not None and pause > policy.latency
    reason = f"recomputing takes {duration(pause)}, running both plans {duration(extra)}"
    if not late and (pause <= extra or not found.parallel_work):
        return moving(reason)
    if room is not None and (needed := parallel_bytes(model, old, new)) > room:
        return moving(f"the states of both plans would take {size(needed)}, {size(room)} are free")
    if late:
        reason = (
            f"moving state would pause for {duration(pause)}, "
            f"the limit is {duration(policy.latency)}"
        )
    return Way("parallel-track", reason, overhead, extra + overhead)
