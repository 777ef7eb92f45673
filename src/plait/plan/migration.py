"""Migrations as values: what was requested, and what was done.

Engines make migrations, the adaptive loop decides on them, and reports show them.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Any, Literal

from plait.figures import duration
from plait.plan.boxes import Box
from plait.plan.routed import Plan

Strategy = Literal["moving-state", "parallel-track"]
STRATEGIES: tuple[Strategy, ...] = ("moving-state", "parallel-track")

ResultOrder = Literal["any", "timestamp"]
ORDERS: tuple[ResultOrder, ...] = ("any", "timestamp")
"""The order of results during a migration: as they are found, or by timestamp."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration.

    `start` and `end` are numbers of batches: those before it began, and those until the old plan
    was gone. A moving state ends where it starts. `start` is None while the migration is queued,
    `end` while it is under way.
    """

    strategy: Strategy | Literal["auto"]
    old: Plan
    new: Plan
    order: ResultOrder = "any"
    start: int | None = None
    end: int | None = None
    boxes: tuple[Box, ...] = ()
    """The sub-plans that were replaced; everything outside them ran on with its states."""
    shared: int = 0
    """Combined tuples in states that both plans have, shared and not copied."""
    recomputed: int = 0
    """Combined tuples that were recomputed."""
    discarded: int = 0
    """Combined tuples of the old plan that the new one does not need."""
    probes: int = 0
    """Lookups made to compute them."""
    visited: int = 0
    """Rows that these lookups read."""
    pause: float = 0.0
    """Seconds without joining."""
    old_results: int = 0
    """Output of the old boxes during the stage: results, where a box is the root of the plan."""
    new_results: int = 0
    """Output of the new boxes during the stage."""
    reason: str = ""
    """The reason for the strategy, if Plait chose it."""
    refused: str = ""
    """The reason why it was refused when its turn came."""

    @property
    def status(self) -> Literal["queued", "under way", "done", "refused"]:
        """The status."""
        if self.refused:
            return "refused"
        if self.start is None:
            return "queued"
        return "under way" if self.end is None else "done"

    def _repr_html_(self) -> str:
        """What notebooks show: the old tree, the new one, and what became of the states."""
        from plait.plan.picture import plan_svg

        told = (
            f"{self.strategy.replace('-', ' ')}, {self.status}: {self.shared:,} combinations "
            f"shared, {self.recomputed:,} recomputed, a pause of {duration(self.pause)}"
        )
        return (
            f'<div style="display:flex;gap:1em;align-items:center">{plan_svg(self.old)}'
            f'<span style="font-size:1.5em" aria-label="becomes">⟶</span>{plan_svg(self.new)}'
            f"</div><p>{escape('. '.join(filter(None, [told, self.reason, self.refused])))}</p>"
        )

    def to_dict(self) -> dict[str, Any]:
        """Write the migration in the types of JSON, for reports and event logs."""
        return {
            "status": self.status,
            "strategy": self.strategy,
            "old": str(self.old),
            "new": str(self.new),
            "start": self.start,
            "end": self.end,
            "shared": self.shared,
            "recomputed": self.recomputed,
            "pause": self.pause,
            "old_results": self.old_results,
            "new_results": self.new_results,
            "reason": self.refused or self.reason,
        }
