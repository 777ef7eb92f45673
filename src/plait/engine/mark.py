"""Old and new: which tuples of the base windows were there at a certain moment.

*Correct output.* A row is old if it was in its window when the mark was set, new if it came later;
a combination is old if any of its parts is, new only if all of them are (CAPE, section 4).

*Invariants.* A ring appends at the end and drops at the front, so the old rows of a window are
always its first rows, and their number is all there is to remember: no flag per row. Whoever drops
rows tells the mark how many.

*Cost.* One number per stream; a test is a comparison of positions.

*Ties and time.* Arrival alone decides; event time plays no part. `earliest_new` only lets a lookup
stop early: no new row is older than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from plait.engine.states import BaseWindow, Tuples
from plait.kernels.arrival import keep_first
from plait.kernels.jit import Bytes
from plait.kernels.memory import Saved

_FAR_FUTURE = 2**62


class Mark:
    """A moment that divides rows into old and new ones, for `streams` or for all."""

    def __init__(self, bases: Sequence[BaseWindow], streams: Iterable[int] | None = None) -> None:
        self._bases = bases
        marked = set(range(len(bases)) if streams is None else streams)
        self.old = [len(base) if s in marked else 0 for s, base in enumerate(bases)]
        """The number of old rows in each window."""
        self.earliest_new = [_FAR_FUTURE] * len(bases)
        """The earliest event time of a new row of each stream."""

    @property
    def passed(self) -> bool:
        """Whether no window has an old row left."""
        return not any(self.old)

    def to_state(self) -> Saved:
        """Describe which rows are old."""
        return {"old": list(self.old), "earliest": list(self.earliest_new)}

    def set_state(self, saved: Saved) -> None:
        """Go on from another mark in the same windows."""
        old = [int(n) for n in saved["old"]]
        if [n for n, base in zip(old, self._bases, strict=True) if not 0 <= n <= len(base)]:
            raise ValueError(f"a window cannot have {old} old rows")
        self.old = old
        self.earliest_new = [int(t) for t in saved["earliest"]]

    def since(self, streams: Iterable[int]) -> int:
        """The least latest time of any combination of new tuples of these streams."""
        return max(self.earliest_new[stream] for stream in streams)

    def arrived(self, stream: int, earliest: int) -> None:
        """Note that new rows of a stream were stored, none older than this."""
        self.earliest_new[stream] = min(self.earliest_new[stream], earliest)

    def dropped(self, stream: int, n: int) -> None:
        """Note that the oldest rows of a window were dropped."""
        self.old[stream] = max(0, self.old[stream] - n)

    def old_tuples(self, tuples: Tuples) -> Bytes:
        """Return one byte per combination, 1 if any of its parts is old."""
        keep = np.zeros(len(next(iter(tuples.values()))), np.uint8)
        for stream, positions in tuples.items():
            if self.old[stream]:
                header = self._bases[stream].window.ring.header
                keep_first(keep, header, positions, self.old[stream])
        return keep
