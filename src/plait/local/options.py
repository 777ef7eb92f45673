"""The options of a run in this process, passed whole from the caller to the replay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:  # whoever only names the options need not load what runs them
    from plait.adapt.policy import PlanPolicy
    from plait.optimize.budget import Budget
    from plait.plan.text import Given

Order = Literal["event-time", "file"]
ORDERS: tuple[Order, ...] = ("event-time", "file")
BATCH_ROWS = 100_000
UNDATED_ROWS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalOptions:
    """How a query is run over its sources."""

    plan: Given = None
    """Whatever `plait.plan.text` reads: "((a b) c)", "teddies", or a plan as a value."""
    order: Order = "event-time"
    """Whether rows arrive sorted by event time, so that none is late, or as they stand."""
    batch_rows: int = BATCH_ROWS
    """Rows with an event time in a batch, over all streams."""
    batch_seconds: float | None = None
    """Seconds of event time in a batch, instead of a number of rows."""
    undated_rows: int = UNDATED_ROWS
    """Rows without an event time that may wait for a batch to be full."""
    memory_limit: int | None = None
    """Bytes of states beyond which a tree of joins ends in MemoryExceeded."""
    policy: PlanPolicy | None = None
    """The policy by which the plan changes while it runs; None: it stays."""
    budget: Budget | None = None
    """The limits within which plans are chosen."""
    seed: int | None = None
    """Seed of the hashes; None draws one, so that nobody can choose keys that collide."""
