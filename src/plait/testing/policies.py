"""Policies that no user would choose: they make the adaptive loop do as much as it can."""

from __future__ import annotations

from plait.adapt.policy import Policy


def eager(half_life: float, latency: float | None) -> Policy:
    """Moves at every occasion, on any grounds, and judges at once.

    >>> eager(1.0, None).margin
    0.0
    """
    return Policy(
        half_life=half_life,
        confidence=0.0,
        margin=0.0,
        least=0.0,
        payback=0.0,
        confirm=1,
        rest=0.0,
        drift=0.0,
        look=0.0,
        effort=1.0,
        sampling=1.0,
        sample_rows=4,
        latency=latency,
        trial=0.0,
        tolerance=0.0,
        backoff=0.0,
    )
