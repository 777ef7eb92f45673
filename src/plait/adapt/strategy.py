"""How to get to another plan: by moving state or on a parallel track.

Moving state recomputes the states that only the new plan has, and nothing comes out meanwhile. A
parallel track pauses for no more than a moment, but runs both plans until the last old row is
dropped, and holds the states of both. Both are predicted by the cost models of the CAPE paper
(`plait.optimize.migration_cost`) under the statistics of now. The cheaper one is taken, but

- a parallel track where moving state would pause for longer than the policy's `latency`;
- moving state where the states of both plans do not fit into the memory that is left.

Nothing here touches an engine: asking changes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from plait.adapt.policy import PlanPolicy
from plait.optimize.migration_cost import parallel_bytes, predict, terms_of
from plait.optimize.model import Model
from plait.plan.jtree import Node
from plait.plan.migration import Strategy


@dataclass(frozen=True, slots=True)
class Way:
    """How to get to another plan, why so, and what that is predicted to take."""

    strategy: Strategy
    reason: str
    pause: float = 0.0
    """Seconds in which nothing comes out."""
    work: float = 0.0
    """CPU seconds that the migration takes in all."""

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
    """The way from one plan to another with `room` bytes to spare; None is any number.

    `price` is what the machine takes for each second that the model foresees, and `overhead` what
    a migration has taken beside the states that had to be computed. `running` is what the old plan
    takes per second, if that was measured and is not what the model foresees.

    >>> from plait.testing.models import long_chain_model
    >>> from plait.plan.jtree import parse_shape
    >>> model = long_chain_model()
    >>> old, new = (parse_shape(model.query, s) for s in ("(((a b) c) d)", "(a ((b c) d))"))
    >>> way_to(model, old, new, PlanPolicy()).reason
    'recomputing takes 0.0396 s, running both plans 1.6 s'
    >>> way_to(model, old, new, PlanPolicy(latency=0.001)).reason
    'moving state would pause for 0.0396 s, the limit is 0.001 s'
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
        return moving("every state of the new plan is there")
    late = policy.latency is not None and pause > policy.latency
    reason = f"recomputing takes {pause:.3g} s, running both plans {extra:.3g} s"
    if not late and (pause <= extra or not found.parallel_work):
        return moving(reason)
    if room is not None and (needed := parallel_bytes(model, old, new)) > room:
        return moving(
            f"the states of both plans would take {needed:,.0f} bytes, {room:,.0f} are left"
        )
    if late:
        reason = f"moving state would pause for {pause:.3g} s, the limit is {policy.latency:g} s"
    return Way("parallel-track", reason, overhead, extra + overhead)
