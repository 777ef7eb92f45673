"""Where partition groups are."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group is: one processor, or several over which the rows of a stream are spread."""

    processors: tuple[int, ...]
    spread: int | None = None
    since: int = 0
    """The move that put it there."""
