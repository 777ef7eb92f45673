"""Results that wait for their turn: held back per plan, and emitted in the order of time.

Results are held as the columns they will be, since the base rows they are made of may go before
they do.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from plait.engine.states import Tuples
from plait.engine.windows import Windows
from plait.kernels.gather import take
from plait.kernels.jit import Ints


class Held:
    """Results of several tracks, with their latest times."""

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._batches: dict[str, list[pa.RecordBatch]] = {}
        self._times: dict[str, list[Ints]] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of what is held."""
        held: int = sum(b.nbytes for batches in self._batches.values() for b in batches)
        return held + sum(t.nbytes for times in self._times.values() for t in times)

    def add(self, track: str, tuples: Tuples) -> None:
        """Hold what the tuples make."""
        bases = self._windows.bases
        columns = [take(bases[s].window.latest, positions) for s, positions in tuples.items()]
        self._times.setdefault(track, []).append(np.maximum.reduce(columns))
        self._batches.setdefault(track, []).extend(self._windows.output.batches(tuples))

    def release(self, track: str) -> Iterator[pa.RecordBatch]:
        """Everything of a track, ordered by its latest time; nothing of it is held any more."""
        batches = self._batches.pop(track, [])
        if not batches:
            return
        order = np.argsort(np.concatenate(self._times.pop(track)), kind="stable")
        table = pa.Table.from_batches(batches)
        portion = self._windows.tuning.portion_rows
        for start in range(0, len(order), portion):
            yield from table.take(order[start : start + portion]).combine_chunks().to_batches()
