"""When to change the plan: named thresholds, all in one place.

Times are seconds of event time. A threshold of None follows from the query: its *window* is the
widest bound.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from plait.adapt.thresholds import check_number, known_thresholds
from plait.errors import PolicyError


@dataclass(frozen=True, slots=True)
class PlanPolicy:
    """Thresholds that decide when a query changes its plan.

    >>> PlanPolicy(margin=0.5).margin
    0.5
    >>> PlanPolicy(sampling=2.0)
    Traceback (most recent call last):
    plait.errors.PolicyError: a policy with sampling=2.0; give a number from 0 to 1
    """

    half_life: float | None = None
    """The time after which an observation counts half; by default half a window."""
    confidence: float = 0.8
    """The confidence that an estimate must have to count: 0.8 means 24 recent matches."""
    margin: float = 0.2
    """The least saving for which to change the plan, as a share of the current plan's cost."""
    least: float = 1e-4
    """The least saving, in CPU seconds per second of event time."""
    payback: float = 1.0
    """Move once staying has cost this many times the predicted cost of the migration."""
    confirm: int = 2
    """How many comparisons of plans in a row must agree."""
    rest: float | None = None
    """The least time between two migrations; by default one window."""
    drift: float = 0.2
    """The relative change of an estimate since the last comparison at which to compare again."""
    look: float = 0.05
    """CPU seconds of joining after which the loop reads the counters; earlier if a batch, or a part
    of a large one, takes twice as long as usual. On Spark it reads them after every batch."""
    effort: float = 0.01
    """The share of CPU time that comparing plans may take."""
    sampling: float = 0.005
    """The share of CPU time that sampling may take, which shows what the plan never looks up."""
    pursuit: float = 0.5
    """Beyond these shares: the part of what staying with a worse plan has cost, or will cost in a
    window, that may be spent on confirming a better one."""
    sample_rows: int = 512
    """Rows of each stream in a sample."""
    latency: float | None = None
    """The longest pause that moving state may cause, in seconds of the clock."""
    headroom: float = 0.1
    """The share of the memory budget that is kept free, if any plan allows it."""
    trial: float | None = None
    """The time that a new plan runs before it is judged; by default one window."""
    tolerance: float = 0.15
    """How much more expensive than the old plan the new one may be and still stay, as a share."""
    backoff: float = 4.0
    """A plan that did not pay is banned for this many trials, each further time twice as long."""

    def __post_init__(self) -> None:
        for name in ("margin", "sampling", "effort", "confidence", "headroom"):
            check_number(self, name, most=1.0)
        for name in ("least", "payback", "drift", "look", "pursuit", "tolerance", "backoff"):
            check_number(self, name)
        for name in ("half_life", "rest", "latency", "trial"):
            if getattr(self, name) is not None:
                check_number(self, name)
        if self.half_life == 0:
            raise PolicyError("a policy with half_life=0", remedy="give more than 0 seconds")
        for name in ("sample_rows", "confirm"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise PolicyError(
                    f"a policy with {name}={value!r}", remedy="give a whole number, 1 or more"
                )

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return asdict(self)

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PlanPolicy:
        """Read a policy from plain data; missing thresholds have their defaults.

        >>> PlanPolicy.from_dict({"marging": 1})
        Traceback (most recent call last):
        plait.errors.PolicyError: a policy has no 'marging'; did you mean 'margin'? known: ...
        """
        return cls(**known_thresholds(cls, given))
