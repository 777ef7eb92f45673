"""How to get to another plan: by moving state or on a parallel track.

Moving state is the shorter way, but nothing comes out while it recomputes; a parallel track pauses
for no more than a moment, but runs both plans for a window and holds the states of both. So the
predicted pause, the latency that is asked for and the memory that is left decide, in that order.

Routing by Eddies or Teddies would be a third answer: a router is a plan without states, so getting
there is moving state with nothing to move. The seam is `Chooser`: whatever it answers is carried
out by `plait.engine.migrate`.
"""

from __future__ import annotations

from plait.adapt.policy import Policy
from plait.engine.migrate.choose import Chooser, Situation, moving_unless_dearer
from plait.optimize.costs import Costs
from plait.optimize.footprint import combined_bytes
from plait.plan.migration import Strategy


def chooser(
    policy: Policy,
    costs: Costs,
    price: float,
    room: float | None,
    streams: int,
    running_on: float = 0.0,
) -> Chooser:
    """Decides with `room` bytes to spare (None: any number) in a query of so many streams.

    `running_on` is how many seconds the old plan is predicted to take in a window, if it is not 0.
    Otherwise what it took so far says so; but streams may just have changed.

    >>> from plait.optimize.costs import DEFAULT
    >>> given = Situation(100_000, 0, recomputed=5e6, recomputing=1.5e7, running_on=1e9)
    >>> chooser(Policy(latency=0.1), DEFAULT, 1.0, None, 4)(given)
    ('parallel-track', 'moving state would pause for 1.15 s, the limit is 0.1 s')
    >>> chooser(Policy(latency=0.1), DEFAULT, 1.0, 1e6, 4)(given)[0]
    'moving-state'
    >>> chooser(Policy(), DEFAULT, 1.0, None, 4)(given)[0]
    'moving-state'
    >>> chooser(Policy(), DEFAULT, 1.0, None, 4, running_on=0.5)(given)
    ('parallel-track', 'recomputing takes 1.15 s, running both plans 0.5 s')
    """

    def choose(given: Situation) -> tuple[Strategy, str]:
        cheaper, why = moving_unless_dearer(given)
        if not given.recomputed or given.recomputing is None:
            return cheaper, why
        # A state that is kept has all streams but one, at most.
        extra = combined_bytes(max(2, streams - 1), given.recomputed, 1)
        seconds = pause(given.recomputed, given.recomputing, costs) * price
        if running_on:
            cheaper = "parallel-track" if seconds > running_on else "moving-state"
            why = f"recomputing takes {seconds:.3g} s, running both plans {running_on:.3g} s"
        late = policy.latency is not None and seconds > policy.latency
        if (late or cheaper == "parallel-track") and room is not None and extra > room:
            return "moving-state", (
                f"the states of both plans would take {extra:,.0f} bytes, {room:,.0f} are left"
            )
        if late:
            return "parallel-track", (
                f"moving state would pause for {seconds:.3g} s, the limit is {policy.latency:g} s"
            )
        return cheaper, why

    return choose


def pause(recomputed: float, recomputing: float, costs: Costs) -> float:
    """Seconds to compute so many combinations by so many operations in all."""
    looked = recomputing - recomputed
    return looked * (costs.probe + costs.visit) / 2 + recomputed * (
        costs.insert + costs.combine + 3 * costs.carry + costs.match
    )
