"""Did it pay? After a migration, what the new plan takes is compared with what the old one would.

What the old plan would take now is not measured, since it is gone: it is what the model says under
the estimates of now, times what the old plan took for each second that the model foresaw when it
still ran. So streams that became faster in the meantime are not held against the new plan. Of sets
of streams that only the old plan put together little is heard any more: for these, what was known
when the plan changed still counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plait.optimize.statistics import PROBABILITY, Estimate, Statistics
from plait.plan.jtree import Node
from plait.plan.labels import plan_label
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Trial:
    """A new plan that has yet to show that it pays; times are seconds of event time."""

    old: Node
    new: Node
    began: float
    predicted: float
    """What the new plan was predicted to take, as a share of the old plan's time."""
    price: float
    """What the old plan took for each second that the model foresaw."""
    seconds: float = 0.0
    """What the new plan has taken so far."""
    span: float = 0.0
    """In so much event time."""
    batches: int = 0
    joint: Mapping[str, float] = field(default_factory=dict)
    """The joint selectivities that the decision was made from."""

    def after(self, seconds: float, span: float) -> Trial:
        """With one more batch that the new plan has joined alone."""
        return replace(
            self, seconds=self.seconds + seconds, span=self.span + span, batches=self.batches + 1
        )

    def filled_up(self, known: Statistics, confidence: float) -> Statistics:
        """What is known now; where that is not sure enough, what was known then."""
        sure = {n: e for n, e in known.joint.items() if (e.confidence or 0.0) >= confidence}
        then = {n: Estimate(value, PROBABILITY) for n, value in self.joint.items()}
        return replace(known, joint={**known.joint, **then, **sure})

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        parts = {name: getattr(self, name) for name in _PARTS}
        return parts | {"old": to_dict(self.old), "new": to_dict(self.new)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], query: Query) -> Trial:
        """The inverse of `to_dict`."""
        old, new = (from_dict(given[name], query) for name in ("old", "new"))
        return cls(old, new, **{name: given[name] for name in _PARTS if name in given})


_PARTS = ("began", "predicted", "price", "seconds", "span", "batches", "joint")


@dataclass(frozen=True, slots=True)
class Bans:
    """Plans that did not pay are left alone for a while, each time for longer."""

    until: Mapping[str, float] = field(default_factory=dict)
    """By the plan's label, until when, in seconds of event time."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often each has not paid."""

    def after(self, label: str, now: float, wait: float) -> Bans:
        """With one more failure; the first ban takes `wait` seconds, each further twice the last.

        >>> Bans().after("(a b)", 10.0, 4.0).after("(a b)", 20.0, 4.0)
        Bans(until={'(a b)': 28.0}, failures={'(a b)': 2})
        """
        times = self.failures.get(label, 0) + 1
        until = now + wait * 2 ** (times - 1)
        return Bans({**self.until, label: until}, {**self.failures, label: times})


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of a trial."""

    paid: bool
    measured: float
    """What the new plan takes, as a share of what the old one would."""
    predicted: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge(trial: Trial, old: float, tolerance: float) -> Verdict:
    """Compare; `old` is what the model says of the old plan now, in seconds per second.

    >>> from plait.testing.examples import chain
    >>> from plait.plan.jtree import parse_shape
    >>> old, new = (parse_shape(chain(3), s) for s in ("((a b) c)", "(a (b c))"))
    >>> print(judge(Trial(old, new, 0.0, 0.5, 2.0, seconds=30.0, span=10.0), 1.0, 0.15).reason)
    (a (b c)) takes 1.50 times what ((a b) c) would, 0.50 times was predicted: it did not pay
    """
    expected = trial.price * old
    measured = trial.seconds / trial.span / expected if trial.span and expected else 1.0
    paid = measured <= 1 + tolerance
    reason = (
        f"{plan_label(trial.new)} takes {measured:.2f} times what {plan_label(trial.old)} would, "
        f"{trial.predicted:.2f} times was predicted: it {'paid' if paid else 'did not pay'}"
    )
    return Verdict(paid, measured, trial.predicted, reason)
