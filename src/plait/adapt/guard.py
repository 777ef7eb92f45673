"""Judge whether a migration paid: compare the new plan with what the old one would take now.

The old plan no longer runs, so its cost now cannot be measured. It is the model's prediction under
current estimates, times the ratio of measured to predicted time from when the old plan ran. So
streams that became faster in the meantime do not count against the new plan. The new plan tells
little about sets of streams that only the old one combined: for these, the estimates of the moment
of the change still count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from plait.optimize.statistics import PROBABILITY, Estimate, Statistics
from plait.plan.jtree import Node
from plait.plan.labels import change_label
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class Trial:
    """A new plan that has yet to show that it pays; times are seconds of event time."""

    old: Node
    new: Node
    began: float
    predicted: float
    """The predicted time of the new plan, as a share of the old plan's."""
    price: float
    """Seconds that the old plan took for each one that the model predicted."""
    seconds: float = 0.0
    """CPU seconds that the new plan has taken so far."""
    span: float = 0.0
    """Seconds of event time in which it took them."""
    batches: int = 0
    joint: Mapping[str, float] = field(default_factory=dict)
    """The joint selectivities that the decision was made from."""

    def after(self, seconds: float, span: float) -> Trial:
        """Add a batch that the new plan has joined alone."""
        return replace(
            self, seconds=self.seconds + seconds, span=self.span + span, batches=self.batches + 1
        )

    def filled_up(self, known: Statistics, confidence: float) -> Statistics:
        """Current estimates; where they are uncertain, those of the moment of the change."""
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
    """Plans that did not pay and are not tried for a while, each time for longer."""

    until: Mapping[str, float] = field(default_factory=dict)
    """The end of each ban in seconds of event time, by the plan's label."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """How often each plan has failed to pay."""

    def after(self, label: str, now: float, wait: float) -> Bans:
        """Add a failure; the first ban lasts `wait` seconds, each further one twice as long.

        >>> Bans().after("(a b)", 10.0, 4.0).after("(a b)", 20.0, 4.0)
        Bans(until={'(a b)': 28.0}, failures={'(a b)': 2})
        """
        times = self.failures.get(label, 0) + 1
        until = now + wait * 2 ** (times - 1)
        return Bans({**self.until, label: until}, {**self.failures, label: times})


@dataclass(frozen=True, slots=True)
class Verdict:
    """The outcome of a trial."""

    paid: bool
    measured: float
    """The time of the new plan, as a share of what the old one would take."""
    predicted: float
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in self.__slots__}


def judge(trial: Trial, old: float, tolerance: float) -> Verdict:
    """Compare; `old` is the model's prediction for the old plan now, in seconds per second.

    >>> from plait.testing.examples import chain
    >>> from plait.plan.jtree import parse_shape
    >>> old, new = (parse_shape(chain(3), s) for s in ("((a b) c)", "(a (b c))"))
    >>> print(judge(Trial(old, new, 0.0, 0.5, 2.0, seconds=30.0, span=10.0), 1.0, 0.15).reason)
    (a (b c)) instead of ((a b) c) takes 1.50 times the time, predicted 0.50: it did not pay
    """
    expected = trial.price * old
    measured = trial.seconds / trial.span / expected if trial.span and expected else 1.0
    paid = measured <= 1 + tolerance
    reason = (
        f"{change_label(trial.old, trial.new)} takes {measured:.2f} times the time, predicted "
        f"{trial.predicted:.2f}: it {'paid' if paid else 'did not pay'}"
    )
    return Verdict(paid, measured, trial.predicted, reason)
