"""Keep the history as columns of numbers, and reduce it to the points that a picture can show.

A picture has some hundred points, a history tens of thousands of lines. `bucketed` puts neighbours
together: what is counted is added up, times and sizes are those of the largest, so that a peak of
one batch stays visible.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from plait.node.reports.history import HistoryEntry

Columns = npt.NDArray[np.float64]

COLUMNS = (
    "first", "last", "at", "batches", "rows", "results", "took", "slowest", "state", "late", "lag"
)  # fmt: skip
"""`slowest` is the time of one batch, `lag` how far the watermark is behind the clock; NaN where
that is not known."""
_LARGEST = ("slowest", "state", "lag")
_SUMMED = ("batches", "rows", "results", "took", "late")


@dataclass(frozen=True, slots=True)
class Series:
    """One row of numbers for each line of a history."""

    table: Columns = field(default_factory=lambda: np.zeros((0, len(COLUMNS))))

    def __len__(self) -> int:
        return len(self.table)

    def __getitem__(self, name: str) -> Columns:
        found: Columns = self.table[:, COLUMNS.index(name)]
        return found

    def with_lines(self, lines: Sequence[HistoryEntry]) -> Series:
        """With more lines at the end.

        >>> lines = [HistoryEntry(0, 0, results=3), HistoryEntry(1, 1, results=4)]
        >>> Series().with_lines(lines)["results"].tolist()
        [3.0, 4.0]
        """
        if not lines:
            return self
        rows = np.array([_row(line) for line in lines], dtype=np.float64)
        return Series(np.concatenate([self.table, rows]))

    def last(self, batches: int | None) -> Series:
        """The rows of the last batches; None is all."""
        if batches is None or not len(self):
            return self
        return Series(self.table[self["last"] > self["last"][-1] - batches])

    def bucketed(self, most: int) -> Series:
        """Merge neighbours until there are at most this many rows.

        >>> lines = [HistoryEntry(n, n, results=1, took=n) for n in range(5)]
        >>> few = Series().with_lines(lines).bucketed(3)
        >>> few["results"].tolist(), few["slowest"].tolist(), few["last"].tolist()
        ([2.0, 2.0, 1.0], [1.0, 3.0, 4.0], [1.0, 3.0, 4.0])
        """
        if len(self) <= most:
            return self
        size = -(-len(self) // most)
        begins = np.arange(0, len(self), size)
        ends = np.append(begins[1:], len(self)) - 1
        found = np.empty((len(begins), len(COLUMNS)))
        for c, name in enumerate(COLUMNS):
            column = self.table[:, c]
            if name in _SUMMED:
                found[:, c] = np.add.reduceat(column, begins)
            elif name in _LARGEST:
                found[:, c] = np.fmax.reduceat(column, begins)
            else:
                found[:, c] = column[begins if name == "first" else ends]
        return Series(found)


def _row(past: HistoryEntry) -> tuple[float, ...]:
    behind = min(past.watermarks.values(), default=None)
    known = behind is not None and past.at > 0
    return (
        past.first,
        past.last,
        past.at or float("nan"),
        past.batches,
        sum(past.rows.values()),
        past.results,
        past.took,
        past.took / max(past.batches, 1),
        past.state_bytes,
        sum(past.late.values()),
        past.at - behind / 1e6 if known and behind is not None else float("nan"),
    )
