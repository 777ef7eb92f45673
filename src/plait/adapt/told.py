"""What a host tells the loop, and what the loop asks of it.

Told: rows are `Coming`, a piece of a batch was `Joined`, a sample was drawn (`Sampled`), comparing
plans took so long (`Compared`), a migration was made or refused (`PlanChanged`).

Asked: nothing, a sample (`Draw`), or another plan (`ChangePlan`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.adapt.decide import Decision
from plait.adapt.strategy import Way
from plait.optimize.statistics import Statistics
from plait.plan.jtree import Node
from plait.plan.migration import Migration
from plait.plan.observed import Evidence, Looked

# -- told


@dataclass(frozen=True, slots=True)
class Coming:
    """So many rows of each stream are about to be joined by a plan."""

    plan: Node
    rows: Sequence[int]
    newest: int
    """The newest event time among them and all before, in microseconds."""


@dataclass(frozen=True, slots=True)
class Joined:
    """One or more pieces of batches were joined: what was counted since the last time."""

    plan: Node
    newest: int
    """The newest event time so far, in microseconds."""
    oldest: int
    """The oldest event time of the first piece; counts until the loop has seen some."""
    stored: Sequence[int]
    """Tuples that entered each window."""
    looked: Sequence[Looked] = ()
    seconds: float = 0.0
    """What joining them took."""
    nbytes: int = 0
    """What the states hold now."""
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""
    migrating: bool = False
    """Whether two plans run beside each other."""
    ended: Migration | None = None
    """The record of a parallel track that has come to its end."""


@dataclass(frozen=True, slots=True)
class Sampled:
    """The sample that was asked for: each step with the rows of the window that it stands for."""

    steps: Sequence[tuple[Evidence, int]]
    seconds: float = 0.0
    """What drawing it took."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Comparing plans, in the step before, took so long."""

    seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanChanged:
    """The move that was asked for was begun, done or refused: its record says which."""

    record: Migration


Told = Coming | Joined | Sampled | Compared | PlanChanged


# -- asked


@dataclass(frozen=True, slots=True)
class Draw:
    """Draw a sample: join random rows of these streams, one stream after the other."""

    order: tuple[int, ...]
    rows: int
    """Of each stream, at most."""
    seed: int
    newest: float
    """The share of each window to draw from: what came last tells most."""
    least: int
    """Draw from so many of the newest rows at least."""


@dataclass(frozen=True, slots=True)
class ChangePlan:
    """Go to another plan, in this way."""

    decision: Decision
    plan: Node
    way: Way
    old: Node
    """The plan that is left."""
    known: Statistics
    """What was known when that was decided."""
    returned: bool = False
    """Whether it goes back to a plan because the present one did not pay."""

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why this plan; `way` has the reason for the strategy."""
        return self.decision.reasons


Wish = Draw | ChangePlan
