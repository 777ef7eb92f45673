"""Observations while a plan runs: counts of its lookups, and samples of the windows.

Engines make these observations, and the adaptive loop learns from them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LookupCounts:
    """The lookups of one step of a plan; sets of streams are bit masks."""

    gathered: int
    """The streams of the tuples that were looked up."""
    target: int
    """The streams of the state that was searched."""
    part: int
    """The streams of the input through which the tuples arrived."""
    probes: int
    matches: int
    rows: float
    """Rows of that state, on average."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """The outcome of joining samples of two sets of streams."""

    gathered: frozenset[int]
    """The streams that were combined before."""
    target: frozenset[int]
    """The streams they were joined with."""
    pairs: float
    """Combinations that were close enough in time."""
    matches: float
    """The number of those that agreed in all keys and satisfied the conditions."""
