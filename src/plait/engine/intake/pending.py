"""Arrivals that are encoded but not stored yet, as long as somebody refers to them.

*Invariant.* A code may be forgotten only if neither a live row nor a pending arrival has it. A
batch is encoded at once and stored in parts, and between two parts the keys that no live row has
are forgotten. So the codes of the parts to come have to count as in use, also those of keys that
were seen long ago and have left every window since.

Nobody has to say when arrivals are done with: they are pending until the last reference to them,
or to a part of them, is gone. A batch that is refused half-way leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Iterator
from weakref import WeakSet

from plait.engine.intake.ingest import Arrivals
from plait.kernels.jit import Ints


class Pending:
    """The arrivals of one engine's windows to which somebody still refers."""

    def __init__(self) -> None:
        self._held: WeakSet[Arrivals] = WeakSet()

    def add(self, arrivals: Arrivals) -> None:
        """Add arrivals whose codes were just assigned."""
        self._held.add(arrivals)

    def codes(self, key_class: int) -> Iterator[Ints]:
        """Return the codes of pending arrivals in a key class."""
        for arrivals in list(self._held):
            if key_class in arrivals.codes:
                yield arrivals.codes[key_class]
