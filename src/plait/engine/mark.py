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
    """What the base windows hold now is old, what comes is new; of `streams`, or of all."""

    def __init__(self, bases: Sequence[BaseWindow], streams: Iterable[int] | None = None) -> None:
        self._bases = bases
        marked = set(range(len(bases)) if streams is None else streams)
        self.old = [len(base) if s in marked else 0 for s, base in enumerate(bases)]
        """How many old rows each window still has."""
        self.earliest_new = [_FAR_FUTURE] * len(bases)
        """The earliest event time of a new row of each stream."""

    @property
    def passed(self) -> bool:
        """Whether no window has an old row any more."""
        return not any(self.old)

    def to_state(self) -> Saved:
        """What is old, and since when the rest is new."""
        return {"old": list(self.old), "earliest": list(self.earliest_new)}

    def set_state(self, saved: Saved) -> None:
        """Stand where another mark stood in the same windows."""
        old = [int(n) for n in saved["old"]]
        if [n for n, base in zip(old, self._bases, strict=True) if not 0 <= n <= len(base)]:
            raise ValueError(f"{old} rows cannot be old")
        self.old = old
        self.earliest_new = [int(t) for t in saved["earliest"]]

    def since(self, streams: Iterable[int]) -> int:
        """No combination of new tuples of these streams has a latest time before this."""
        return max(self.earliest_new[stream] for stream in streams)

    def arrived(self, stream: int, earliest: int) -> None:
        """New rows of a stream, none older than this, were stored."""
        self.earliest_new[stream] = min(self.earliest_new[stream], earliest)

    def dropped(self, stream: int, n: int) -> None:
        """The first rows of a window were dropped."""
        self.old[stream] = max(0, self.old[stream] - n)

    def old_tuples(self, tuples: Tuples) -> Bytes:
        """One byte per combination, 1 if any of its parts is old."""
        keep = np.zeros(len(next(iter(tuples.values()))), np.uint8)
        for stream, positions in tuples.items():
            if self.old[stream]:
                header = self._bases[stream].window.ring.header
                keep_first(keep, header, positions, self.old[stream])
        return keep
