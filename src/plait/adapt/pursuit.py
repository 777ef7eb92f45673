"""The pursuit of a better plan: from the comparison that found one until the plan changes.

Staying with a worse plan costs CPU, the *regret*. A share of it may be spent on confirming that the
other plan is better.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from plait.adapt.decide import Decision


@dataclass(frozen=True, slots=True)
class Pursuit:
    """What is known of a better plan; a new one means that none was found."""

    confirmed: int = 0
    """Batches in a row after which a comparison found a better plan."""
    gain: float = 0.0
    """CPU seconds per second that it would save."""
    regret: float = 0.0
    """CPU seconds that staying has cost since it was found."""
    spent: float = 0.0
    """Seconds spent on confirming it since then."""
    learn: tuple[int, ...] = ()
    """Sets of streams of which the last comparison needs better estimates."""
    tries: int = 0
    """Samples that were drawn for that."""
    learned: bool = False
    """Whether one was drawn since the last comparison."""

    def after(self, span: float) -> Pursuit:
        """Add the regret of `span` seconds of event time.

        >>> Pursuit(confirmed=1, gain=0.5).after(4.0).regret
        2.0
        """
        return replace(self, regret=self.regret + self.gain * span) if self.gain else self

    def again(self) -> Pursuit:
        """Prepare another comparison after the same batch: both together confirm once."""
        return replace(self, confirmed=max(0, self.confirmed - 1))

    def decided(self, decision: Decision) -> Pursuit:
        """Take in a comparison of plans."""
        if not decision.better:
            return Pursuit()
        return replace(
            self,
            confirmed=self.confirmed + 1,
            gain=decision.gain,
            learn=decision.learn,
            learned=False,
        )

    def spending(self, seconds: float, *, sample: bool = False) -> Pursuit:
        """Add seconds of comparing plans or of drawing a sample."""
        spent = self.spent + seconds if self.confirmed else self.spent
        if sample and self.learn:
            return replace(self, spent=spent, tries=self.tries + 1, learned=True)
        return replace(self, spent=spent)
