"""Results that wait for their turn while boxes are replaced, to be emitted in timestamp order.

*Correct output.* What is added is released once: the results with an old tuple at the end of the
batch, those of new tuples only at the end of the stage; either in the order of their latest time.

*Why.* Of two results, the one that is released later then has a tuple that arrived no earlier than
the other's of the same stream. If streams come in order of time, that is the timestamp order of
lemma 2.1 (CAPE).

*Cost.* Results are held as the columns they will be, since the base rows they are made of may go
before they do.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from plait.engine.mark import Mark
from plait.engine.probe import chosen_tuples, length
from plait.engine.states import Tuples
from plait.engine.windows import Windows
from plait.kernels.gather import take
from plait.kernels.jit import Ints


@dataclass(slots=True)
class _Results:
    """Some results, with their latest times."""

    batches: list[pa.RecordBatch] = field(default_factory=list)
    times: list[Ints] = field(default_factory=list)


class Held:
    """The results that a migration holds back."""

    def __init__(self, windows: Windows, mark: Mark) -> None:
        self._windows = windows
        self._mark = mark
        self._old, self._new = _Results(), _Results()

    @property
    def nbytes(self) -> int:
        """Bytes of the results held back."""
        both = (self._old, self._new)
        columns: int = sum(b.nbytes for some in both for b in some.batches)
        return columns + sum(t.nbytes for some in both for t in some.times)

    def add(self, tuples: Tuples) -> None:
        """Hold back the results of these tuples."""
        old = self._mark.old_tuples(tuples)
        self._add(self._old, chosen_tuples(tuples, old))
        self._add(self._new, chosen_tuples(tuples, np.logical_not(old).view(np.uint8)))

    def _add(self, some: _Results, tuples: Tuples) -> None:
        if not length(tuples):
            return
        bases = self._windows.bases
        columns = [take(bases[s].window.latest, positions) for s, positions in tuples.items()]
        some.times.append(np.maximum.reduce(columns))
        some.batches.extend(self._windows.output.batches(tuples))

    def close_batch(self) -> Iterator[pa.RecordBatch]:
        """Yield the results of this batch that have an old tuple, in timestamp order."""
        old, self._old = self._old, _Results()
        yield from self._in_order(old)

    def finish(self) -> Iterator[pa.RecordBatch]:
        """Yield all results held back, those with an old tuple first."""
        yield from self.close_batch()
        new, self._new = self._new, _Results()
        yield from self._in_order(new)

    def _in_order(self, some: _Results) -> Iterator[pa.RecordBatch]:
        if not some.batches:
            return
        order = np.argsort(np.concatenate(some.times), kind="stable")
        table = pa.Table.from_batches(some.batches)
        portion = self._windows.tuning.portion_rows
        for start in range(0, len(order), portion):
            yield from table.take(order[start : start + portion]).combine_chunks().to_batches()
