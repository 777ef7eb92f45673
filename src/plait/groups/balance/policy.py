"""Thresholds that say when partition groups move, all in one place.

Times are seconds of event time. A *load* is seconds of work per second of event time: a processor
whose load is above 1 falls behind. What is None follows the query: its *window* is the widest
bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from plait.adapt.thresholds import check_number
from plait.errors import PolicyError


@dataclass(frozen=True, slots=True)
class BalancePolicy:
    """The thresholds of the distribution manager.

    >>> BalancePolicy(margin=0.5).margin
    0.5
    >>> BalancePolicy(grow=0.5, shrink=0.5)
    Traceback (most recent call last):
    plait.errors.PolicyError: a policy with shrink=0.5 and grow=0.5; let shrink be less than grow
    """

    by: Literal["work", "memory"] = "work"
    """What is balanced. The D-CAPE paper balances memory."""
    margin: float = 0.15
    """How far above the mean a processor must be before it gives groups away, as a share of the
    mean."""
    least: float = 1e-3
    """The load that a processor must at least be relieved of (by work)."""
    least_bytes: float = 1 << 20
    """The bytes that it must at least be relieved of (by memory)."""
    payback: float = 1.0
    """What staying has cost must be so many times the predicted cost of the moves."""
    confirm: int = 2
    """In so many snapshots in a row the processor must have been above the margin."""
    half_life: float | None = None
    """After how long a measured load counts half; by default half a window."""
    rest: float | None = None
    """The least time between two moves of one processor; by default one window."""
    moves: int = 16
    """Moves that may be under way at once."""
    latency: float | None = None
    """The longest pause, in seconds, that MSLB may make."""
    memory: float | None = None
    """Bytes of state that a processor has room for."""
    headroom: float = 0.1
    """The share of that memory which is left free, as far as that can be chosen."""
    spread: bool = True
    """Whether a group that is too hot for one processor may be spread over several."""
    cool: float = 0.5
    """A spread group that would take less than this share of the mean load is put together."""
    trial: float | None = None
    """How long a move is watched before it is judged; by default one window."""
    worth: float = 0.25
    """The share of the predicted saving that must have come true for a move to have paid."""
    tolerance: float = 0.1
    """How much more than before the slowest processor may take and the groups still stay."""
    comparable: float = 1.5
    """Before and after are compared if rows came at most so many times as fast, or as slow."""
    backoff: float = 4.0
    """Processors whose move did not pay are left alone for so many trials, and each further time
    for twice as long as before."""
    active: int | None = None
    """How many processors take part; None: as many as do now, or as the load asks for."""
    least_active: int = 1
    """The load never asks for fewer processors."""
    grow: float | None = None
    """One more processor takes part where the mean load is above this; None: never."""
    shrink: float | None = None
    """One less, where the mean load of the others would still be below this; None: never."""

    def __post_init__(self) -> None:
        if self.by not in ("work", "memory"):
            raise PolicyError(f"a policy with by={self.by!r}", remedy="give 'work' or 'memory'")
        if not isinstance(self.spread, bool):
            raise PolicyError(f"a policy with spread={self.spread!r}", remedy="give True or False")
        for name in ("headroom", "cool", "worth"):
            check_number(self, name, most=1.0)
        for name in ("margin", "least", "least_bytes", "payback", "tolerance", "backoff"):
            check_number(self, name)
        for name in ("half_life", "rest", "latency", "memory", "trial", "grow", "shrink"):
            if getattr(self, name) is not None:
                check_number(self, name)
        check_number(self, "comparable")
        if self.comparable < 1:
            self._refuse("comparable", "give a number >= 1")
        if self.half_life == 0:
            self._refuse("half_life", "give more than 0 seconds")
        for name in ("confirm", "moves", "active", "least_active"):
            value = getattr(self, name)
            if value is None and name == "active":
                continue
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                self._refuse(name, "give a whole number, 1 or more")
        if self.grow is not None and self.shrink is not None and self.shrink >= self.grow:
            raise PolicyError(
                f"a policy with shrink={self.shrink!r} and grow={self.grow!r}",
                remedy="let shrink be less than grow",
            )

    def _refuse(self, name: str, remedy: str) -> None:
        raise PolicyError(f"a policy with {name}={getattr(self, name)!r}", remedy=remedy)
