"""Which plan a head follows, by its stamp."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class PlanEras:
    """Which plan holds from which stamp on, and what a migration under way needs.

    >>> eras = PlanEras().switched(1, 40)
    >>> eras.plan_at(39), eras.plan_at(40)
    (0, 1)
    """

    begins: tuple[tuple[int, int], ...] = ((0, 0),)
    """(stamp, plan), in order."""
    hold: int | None = None
    """The stamp from which on heads wait for a decision."""
    missing: frozenset[tuple[int, str, str]] = frozenset()
    """(plan, stream, holder) of copies of windows that have not come so far."""
    subscribers: frozenset[tuple[int, str, str]] = frozenset()
    """(plan, stream, site) of those who get a stream for the sake of a plan to come."""
    abandoned: frozenset[int] = frozenset()
    """Plans that were given up, the newest of them."""

    @property
    def earliest_clock(self) -> int:
        """The clock that a site must have passed to follow its newest plan."""
        return self.begins[-1][0] - 1

    @property
    def newest(self) -> int:
        """The plan that heads to come follow."""
        return self.begins[-1][1]

    def plan_at(self, stamp: int) -> int:
        """The plan that a head with this stamp follows."""
        return next(plan for begin, plan in reversed(self.begins) if begin <= stamp)

    def holds(self, stamp: int) -> bool:
        """Whether a head with this stamp waits for a decision."""
        return self.hold is not None and stamp >= self.hold

    def switched(self, plan: int, stamp: int) -> PlanEras:
        """With a plan that holds from a stamp on."""
        return PlanEras((*self.begins, (stamp, plan)), abandoned=self.abandoned)

    def given_up(self, plan: int, remembered: int) -> PlanEras:
        """Without a plan that was to come; the newest `remembered` that were given up are kept."""
        newest = sorted(self.abandoned | {plan})[-remembered:]
        return PlanEras(self.begins, abandoned=frozenset(newest))

    def of(self, plans: Collection[int]) -> PlanEras:
        """Without the eras of plans that are gone: no head of theirs is to come.

        >>> PlanEras().switched(1, 40).of([1]).begins
        ((0, 1),)
        """
        (_, oldest), *others = [era for era in self.begins if era[1] in plans]
        return replace(self, begins=((0, oldest), *others))
