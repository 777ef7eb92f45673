"""Flags of PTLB: rows that also go to another processor, and results that are found there.

*Correct output.* While partition groups move by PTLB (D-CAPE, section 3), the split sends each new
row of these groups to sender and receiver, flagged at the sender. A result whose rows are all
flagged by the same move is found by the receiver, which has all of them, so the sender does not
emit it. Any other result has a row that the receiver never got, and the sender emits it.

*Why the flag is the number of the move.* A move that is given up leaves flagged rows behind. If the
group moves again, a result of rows from both moves is found by neither receiver, so the sender has
to emit it.

*Invariants.* A row is remembered by its serial number: how many rows of its window came before it
since the flags were made. Serial numbers ascend by arrival, so those of dropped rows are the first.

*Cost.* Nothing without flagged rows. Otherwise a binary search for each part of a result, and
sixteen bytes for each flagged row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from plait.engine.probe import chosen_tuples
from plait.engine.states import BaseWindow, Tuples
from plait.kernels.jit import Ints, Positions
from plait.kernels.memory import Saved


class Flags:
    """The flagged rows in the windows of an engine."""

    def __init__(self, bases: Sequence[BaseWindow]) -> None:
        self._bases = bases
        self._dropped = [0] * len(bases)
        self._rows: dict[int, _Flagged] = {}

    def __bool__(self) -> bool:
        return bool(self._rows)

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return sum(flagged.nbytes for flagged in self._rows.values())

    def stored(self, stream: int, flags: Ints) -> None:
        """Note the flags of the newest rows of a window, 0 for none."""
        chosen = np.flatnonzero(flags)
        if len(chosen):
            first = self._dropped[stream] + len(self._bases[stream]) - len(flags)
            self._rows.setdefault(stream, _Flagged()).add(chosen + first, flags[chosen])

    def dropped(self, stream: int, n: int) -> None:
        """Note that the oldest rows of a window were dropped."""
        self._dropped[stream] += n
        if stream in self._rows and not self._rows[stream].drop_before(self._dropped[stream]):
            del self._rows[stream]

    def emitted(self, tuples: Tuples) -> Tuples:
        """Choose the results that this processor emits."""
        if any(stream not in self._rows for stream in tuples):
            return tuples
        common: Ints | None = None
        for stream, positions in tuples.items():
            flags = self._rows[stream].of(self._serials(stream, positions))
            common = flags if common is None else np.where(common == flags, common, 0)
        assert common is not None, "a result has rows"
        return chosen_tuples(tuples, (common == 0).view(np.uint8))

    def _serials(self, stream: int, positions: Positions) -> Ints:
        _, head, _, capacity = self._bases[stream].window.ring.header[:4]
        ages: Ints = (positions.astype(np.int64) - head) % capacity
        return ages + self._dropped[stream]

    def to_state(self) -> Saved:
        """Describe the flagged rows, between two batches."""
        return {
            "dropped": list(self._dropped),
            "rows": [[stream, *flagged.arrays] for stream, flagged in self._rows.items()],
        }

    def set_state(self, saved: Saved) -> None:
        """Flag the same rows in windows that were restored."""
        self._dropped = [int(n) for n in saved["dropped"]]
        self._rows = {}
        for stream, serials, moves in saved["rows"]:
            if len(serials) != len(moves) or not len(serials):
                raise ValueError("flags that do not fit together")
            flagged = self._rows[int(stream)] = _Flagged()
            flagged.add(serials, moves)


class _Flagged:
    """The flagged rows of one window: serial numbers in order, and flags."""

    def __init__(self) -> None:
        self._serials = np.empty(0, np.int64)
        self._moves = np.empty(0, np.int64)
        self._start = self._stop = 0

    @property
    def nbytes(self) -> int:
        return self._serials.nbytes + self._moves.nbytes

    @property
    def arrays(self) -> tuple[Ints, Ints]:
        """Serial numbers and flags."""
        return self._serials[self._start : self._stop], self._moves[self._start : self._stop]

    def add(self, serials: Ints, moves: Ints) -> None:
        """Add rows that are newer than all before."""
        if self._stop + len(serials) > len(self._serials):
            kept = self.arrays
            room = 2 * (len(kept[0]) + len(serials))
            self._serials, self._moves = np.empty(room, np.int64), np.empty(room, np.int64)
            self._start, self._stop = 0, len(kept[0])
            self._serials[: self._stop], self._moves[: self._stop] = kept
        end = self._stop + len(serials)
        self._serials[self._stop : end], self._moves[self._stop : end] = serials, moves
        self._stop = end

    def drop_before(self, serial: int) -> bool:
        """Forget rows that were dropped; return whether any are left."""
        serials, _ = self.arrays
        self._start += int(np.searchsorted(serials, serial))
        return self._start < self._stop

    def of(self, serials: Ints) -> Ints:
        """Return the flags of some rows, 0 for those without."""
        known, moves = self.arrays
        found = np.minimum(np.searchsorted(known, serials), len(known) - 1)
        flags: Ints = np.where(known[found] == serials, moves[found], 0)
        return flags
