"""When to change the plan: named thresholds, all in one place.

Times are seconds of event time. What is None follows the query: its *window* is the widest bound.
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
    """After how long an observation counts half; by default half a window."""
    confidence: float = 0.8
    """Estimates that are less sure do not count: 0.8 is 24 matches, and not too old."""
    margin: float = 0.2
    """How much cheaper another plan must be, as a share of the current plan's cost."""
    least: float = 1e-4
    """How much cheaper it must be at least, in CPU seconds per second of event time."""
    payback: float = 1.0
    """Move once staying has cost this many times the predicted cost of the migration."""
    confirm: int = 2
    """How many comparisons of plans in a row must agree."""
    rest: float | None = None
    """The least time between two migrations; by default one window."""
    drift: float = 0.2
    """How far an estimate must have moved, since plans were last compared, to compare again."""
    look: float = 0.05
    """Batches, and parts of large ones, are looked at together until they have taken so many
    seconds of CPU, or one takes twice as long as usual. On Spark there is a look after every
    batch in any case."""
    effort: float = 0.01
    """The share of the time that may go into comparing plans."""
    sampling: float = 0.005
    """The share of the time that may go into looking at what the plan never looks up."""
    pursuit: float = 0.5
    """Beyond these shares, how much of what staying with a worse plan has cost, or will in a
    window, may go into making sure of a better one."""
    sample_rows: int = 512
    """Rows of each stream in such a sample."""
    latency: float | None = None
    """The longest pause, in seconds of the clock, that moving state may make."""
    headroom: float = 0.1
    """The share of the memory budget that is left free, as far as that can be chosen."""
    trial: float | None = None
    """How long a new plan runs before it is judged; by default one window."""
    tolerance: float = 0.15
    """How much dearer than the old plan the new one may turn out and still stay."""
    backoff: float = 4.0
    """A plan that did not pay is left alone for so many trials, and each further time for twice
    as long as before."""

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
        """A policy from plain data; what is not given is as usual.

        >>> PlanPolicy.from_dict({"marging": 1})
        Traceback (most recent call last):
        plait.errors.PolicyError: a policy has no 'marging'; did you mean 'margin'? known: ...
        """
        return cls(**known_thresholds(cls, given))
