"""Decide which rows of a stream can be in a result, from each row alone.

The one place that decides it, whoever hosts an engine. A row has one fate, the first of these:

1. *no time*: its event time is null, or so far away that it cannot be counted with;
2. *ahead*: it is further ahead of the clock than its stream may be, if somebody said how far;
3. *filtered*: a condition on its own stream is not true;
4. *no key*: one of its keys is null, or fits no value of the other streams' type;
5. *filtered*: two of its columns must equal the same key of another stream, and differ;
6. *late*: it is older than its stream's watermark (`are_late`), which others know;
7. it is joined.

So a row that could never be in a result is not called late, as in Spark, where conditions come
before the join. All rows that have a time move the watermark, also those that are set aside, except
those that are ahead.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.engine.intake.codes import comparable, same_keys
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times, with_times
from plait.plan.steps import on_arrival
from plait.query.evaluate import evaluate
from plait.query.expr import Expr
from plait.query.query import Query

NO_TIME = "no event time"
AHEAD = "ahead of the clock"
NULL_KEY = "null key"
LATE = "late"
"""The reasons for which rows are set aside. Filtered rows are counted and not kept."""


@dataclass(frozen=True, slots=True)
class SortedRows:
    """The rows of a batch that may be in a result, and what became of the others."""

    rows: pa.RecordBatch
    newest: int
    """The newest event time of all rows that are not ahead."""
    no_time: pa.RecordBatch | None
    ahead: pa.RecordBatch | None
    no_key: pa.RecordBatch | None
    filtered: int


def are_late(times: npt.NDArray[np.int64], watermark: int) -> npt.NDArray[np.bool_] | None:
    """Mark the rows older than the watermark of their stream; None if there are no such rows.

    >>> are_late(np.array([5, 7, 9]), 7), are_late(np.array([7, 9]), 7)
    (array([ True, False, False]), None)
    """
    if not len(times) or times.min() >= watermark:
        return None
    found: npt.NDArray[np.bool_] = times < watermark
    return found


class Admission:
    """Sorts out the rows of one stream of a query."""

    def __init__(self, query: Query, stream: int) -> None:
        graph = query.graph
        self._time = query.streams[stream].time
        self._ahead = query.streams[stream].ahead
        self._filters = [query.residuals[r] for r in on_arrival(query, stream)]
        self._keys = [
            (graph.classes[k].type, graph.classes[k].columns[stream])
            for k in graph.classes_of(stream)
        ]

    def sort_out(self, rows: pa.RecordBatch, clock: int | None = None) -> SortedRows:
        """Separate the rows that may be in a result from the others.

        `clock` is the time of the batch in microseconds; without it no row is ahead.
        """
        rows, no_time = with_times(rows, self._time)
        times, ahead = event_times(rows.column(self._time)), None
        if clock is not None and self._ahead is not None:
            are_ahead = times > clock + self._ahead
            if are_ahead.any():
                ahead = rows.filter(pa.array(are_ahead))
                rows, times = rows.filter(pa.array(~are_ahead)), times[~are_ahead]
        newest = int(times.max()) if len(times) else BEFORE_ALL_TIMES
        timed = rows.num_rows
        for condition in self._filters:
            rows = _chosen(rows, _truth(condition, rows))
        filtered = timed - rows.num_rows
        keyed = self._keyed(rows)
        no_key = None if keyed is None else rows.filter(pc.invert(keyed))
        rows = rows if keyed is None else rows.filter(keyed)
        before = rows.num_rows
        for type_, columns in self._keys:
            for name in columns[1:]:
                same = same_keys(rows.column(columns[0]), rows.column(name), type_)
                rows = _chosen(rows, pa.array(same))
        return SortedRows(rows, newest, no_time, ahead, no_key, filtered + before - rows.num_rows)

    def _keyed(self, rows: pa.RecordBatch) -> pa.Array | None:
        """Mark the rows that have all their keys; None if all rows do."""
        valid: np.ndarray[tuple[int], np.dtype[np.bool_]] | None = None
        for type_, columns in self._keys:
            for name in columns:
                here = comparable(rows.column(name), type_)
                if here is not None:
                    valid = here if valid is None else valid & here
        return None if valid is None or valid.all() else pa.array(valid)


def _truth(condition: Expr, rows: pa.RecordBatch) -> pa.Array:
    verdict = evaluate(condition, lambda c: rows.column(c.name), rows.num_rows)
    return pc.fill_null(verdict.cast(pa.bool_()), False)


def _chosen(rows: pa.RecordBatch, verdict: pa.Array) -> pa.RecordBatch:
    return rows if pc.all(verdict).as_py() else rows.filter(verdict)
