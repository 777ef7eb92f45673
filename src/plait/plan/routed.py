"""Run a query without a fixed plan: a router decides which window tuples visit next.

These values stand where a jtree could: they say that the query is to be run by Eddies, which route
tuple by tuple, or by Teddies, which route packets of tuples with the same history; and how.

>>> Teddies(policy="lottery", packet_limit=0)
Traceback (most recent call last):
plait.errors.PlanError: the packet limit is 0; a packet holds at least one tuple
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from plait.errors import PlanError, did_you_mean
from plait.plan.jtree import Node

POLICIES = ("lottery", "ordered", "random")
"""The policies of routers, described in `plait.engine.tactics.policies`."""


@dataclass(frozen=True, slots=True)
class Eddies:
    """Route single tuples, from one queue.

    >>> str(Eddies(policy="random"))
    'eddies (random)'
    """

    policy: str = "lottery"
    seed: int = 0
    intake: int = 64
    """New tuples that enter the queue when it is empty."""

    def __post_init__(self) -> None:
        _check_policy(self.policy)
        _at_least_one("intake", self.intake, "at least one new tuple enters at a time")

    def __str__(self) -> str:
        return f"eddies ({self.policy})"


@dataclass(frozen=True, slots=True)
class Teddies:
    """Route packets: tuples with the same history wait for each other in a metaqueue.

    A metaqueue is scheduled when it holds as many tuples as its threshold says. The threshold
    doubles when the metaqueue has twice as many tuples at its turn, and is halved in every round
    that it has waited beyond `counter_limit` rounds. So waiting is bounded in rounds, and
    in batches by `patience`.

    >>> str(Teddies())
    'teddies (ordered)'
    """

    policy: str = "ordered"
    seed: int = 0
    packet_limit: int = 1 << 16
    """The most tuples that are routed at once."""
    threshold_limit: int = 1 << 9
    """The most tuples that a metaqueue may be made to wait for; never more than a packet."""
    counter_limit: int = 16
    """The rounds that a metaqueue may stay unscheduled before its threshold shrinks."""
    patience: int = 0
    """The batches that a tuple may wait beyond its own; 0 finishes each batch completely."""
    intake: int | None = None
    """New tuples that enter when nothing can be scheduled; None leaves it to the engine."""

    def __post_init__(self) -> None:
        _check_policy(self.policy)
        _at_least_one("packet limit", self.packet_limit, "a packet holds at least one tuple")
        _at_least_one("threshold limit", self.threshold_limit, "a packet holds at least one tuple")
        if self.intake is not None:
            _at_least_one("intake", self.intake, "at least one new tuple enters at a time")
        for name, value in (("counter limit", self.counter_limit), ("patience", self.patience)):
            if value < 0:
                raise PlanError(f"the {name} is {value}; it cannot be negative")

    def __str__(self) -> str:
        return f"teddies ({self.policy})"


Routed = Eddies | Teddies
Plan = Node | Eddies | Teddies
"""What runs a query: a tree of joins, or a router."""

ENGINES: dict[str, type[Eddies] | type[Teddies]] = {"eddies": Eddies, "teddies": Teddies}


def routed(name: str, **options: Any) -> Routed:
    """Make the router called `name`, with its options by name.

    >>> routed("teddies", policy="lottery") == Teddies(policy="lottery")
    True
    >>> routed("teddies", policy="lotery")
    Traceback (most recent call last):
    plait.errors.PlanError: there is no routing policy 'lotery'; did you mean 'lottery'? ...
    """
    if name not in ENGINES:
        raise PlanError(f"there is no engine {name!r}", remedy=did_you_mean(name, ENGINES))
    kind = ENGINES[name]
    known = [f.name for f in fields(kind)]
    for option in options:
        if option not in known:
            raise PlanError(
                f"the engine {name!r} has no option {option!r}",
                remedy=did_you_mean(option, known),
            )
    return kind(**options)


def _check_policy(name: str) -> None:
    if name not in POLICIES:
        raise PlanError(f"there is no routing policy {name!r}", remedy=did_you_mean(name, POLICIES))


def _at_least_one(what: str, value: int, why: str) -> None:
    if value < 1:
        raise PlanError(f"the {what} is {value}; {why}")
