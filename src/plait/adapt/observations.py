"""Observations that a host gives to the loop, and requests that the loop makes.

Observations: rows arrive (`IncomingRows`), a piece of a batch was `Joined`, a sample was drawn
(`Sampled`), a comparison of plans took some time (`Compared`), a migration was made or refused
(`PlanChanged`).

Requests: a sample (`Draw`), or another plan (`ChangePlan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.adapt.decide import Decision
from plait.adapt.strategy import Way
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Node
from plait.plan.migration import Migration
from plait.plan.observed import Evidence, LookupCounts

# -- observations


@dataclass(frozen=True, slots=True)
class IncomingRows:
    """Rows that are about to be joined; `rows` counts them by stream."""

    plan: Node
    rows: Sequence[int]
    newest: int
    """The newest event time among them and all before, in microseconds."""


@dataclass(frozen=True, slots=True)
class Joined:
    """What was counted while joining pieces of batches since the last observation."""

    plan: Node
    newest: int
    """The newest event time so far, in microseconds."""
    oldest: int
    """The oldest event time of the first piece; only the first observation uses it."""
    stored: Sequence[int]
    """Tuples that entered each window."""
    looked: Sequence[LookupCounts] = ()
    seconds: float = 0.0
    """CPU seconds of joining them."""
    nbytes: int = 0
    """Bytes in the states now."""
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""
    migrating: bool = False
    """Whether two plans run beside each other."""
    ended: Migration | None = None
    """The record of a parallel track that has ended."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The requested sample: each step with the size of the window that it was drawn from."""

    steps: Sequence[tuple[Evidence, int]]
    seconds: float = 0.0
    """CPU seconds of drawing it."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The CPU time of the last comparison of plans."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The requested migration was begun, done or refused: its record says which."""

    record: Migration


Observation = IncomingRows | Joined | Sampled | Compared | PlanChanged


# -- requests


@dataclass(frozen=True, slots=True)
class Draw:
    """Draw a sample: join random rows of these streams, one stream after the other."""

    order: tuple[int, ...]
    rows: int
    """At most this many of each stream."""
    seed: int
    newest: float
    """The share of each window to draw from: the newest rows tell most."""
    least: int
    """The fewest of the newest rows to draw from."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Change to another plan, in this way."""

    decision: Decision
    plan: Node
    way: Way
    old: Node
    """The plan to leave."""
    known: Statistics
    """The statistics that the decision was based on."""
    returned: bool = False
    """Whether it goes back because the current plan did not pay."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reasons for the plan; `way` has the reason for the strategy."""
        return self.decision.reasons


Request = Draw | ChangePlan
