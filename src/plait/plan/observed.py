"""What is observed of the streams while a plan runs: its lookups, and samples of the windows.

Engines make these observations, and the adaptive loop learns from them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Looked:
    """The lookups of one step of a plan; sets of streams are bit masks."""

    gathered: int
    """The streams of the tuples that were looked up."""
    target: int
    """The streams of the state in which they were."""
    part: int
    """The streams of the input through which they came."""
    probes: int
    matches: int
    rows: float
    """Rows of that state, on average."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What joining samples of two sets of streams showed."""

    gathered: frozenset[int]
    """The streams that were together."""
    target: frozenset[int]
    """The streams they were joined with."""
    pairs: float
    """Combinations that were close enough in time."""
    matches: float
    """Of those, how many agreed in all keys and satisfied the conditions."""
