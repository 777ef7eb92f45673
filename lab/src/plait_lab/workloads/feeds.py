"""Tables in order of arrival, cut into batches.

A table says when its rows happened, not when they arrived. A row is taken to arrive when its
stream's clock, the largest event time so far, says so: a row out of order arrives together with
the newest row before it. Batches are cut at instants of this clock that are the same for all
streams; the order within a stream is kept, so a stream whose disorder is within its watermark
delay has no late rows, however it is cut.

>>> import pyarrow as pa
>>> def stamps(*seconds): return pa.table({"ts": pa.array([s * 10**6 for s in seconds],
...                                                       pa.timestamp("us"))})
>>> feed = batches({"a": stamps(0, 1, 5), "b": stamps(2, 3, 0)}, seconds=2)
>>> [{name: t.num_rows for name, t in batch.items()} for batch in feed]
[{'a': 2, 'b': 0}, {'a': 0, 'b': 3}, {'a': 1, 'b': 0}]
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from plait.errors import PlaitError

Ints = npt.NDArray[np.int64]
_NEVER = np.iinfo(np.int64).min


def batches(
    tables: Mapping[str, pa.Table],
    *,
    rows: int | None = None,
    seconds: float | None = None,
    time: str | Mapping[str, str] = "ts",
) -> Iterator[dict[str, pa.Table]]:
    """Batches of about `rows` rows over all streams, or of `seconds` of their common clock.

    `time` names the event-time column, one for all streams or one for each. Every batch has every
    stream, some perhaps without rows; batches of `seconds` begin at the earliest event.
    """
    clocks = {
        name: clock(table.column(time if isinstance(time, str) else time[name]))
        for name, table in tables.items()
    }
    cuts = _cuts(list(clocks.values()), rows, seconds)
    begin = dict.fromkeys(tables, 0)
    for k in range(len(cuts[0]) if cuts else 0):
        end = {name: int(cuts[i][k]) for i, name in enumerate(tables)}
        yield {n: t.slice(begin[n], end[n] - begin[n]) for n, t in tables.items()}
        begin = end


def clock(times: pa.ChunkedArray) -> Ints:
    """When each row arrives: the largest event time up to it, in microseconds.

    Rows without an event time arrive with their predecessor.

    >>> clock(pa.chunked_array([pa.array([3, 1, None, 7], pa.timestamp("us"))])).tolist()
    [3, 3, 3, 7]
    """
    counts = pc.fill_null(times.cast(pa.int64()), 0).to_numpy()
    scale = {"s": 1_000_000, "ms": 1_000, "us": 1}.get(times.type.unit)
    micros = counts // 1_000 if scale is None else counts * scale
    known = pc.is_valid(times).to_numpy()
    return np.maximum.accumulate(np.where(known, micros, _NEVER))


def _cuts(clocks: list[Ints], rows: int | None, seconds: float | None) -> list[Ints]:
    """For each stream, where its batches end."""
    if (rows is None) == (seconds is None) or (rows or seconds or 0) <= 0:
        raise PlaitError(
            f"batches of rows={rows}, seconds={seconds}", remedy="give one of them, above 0"
        )
    everything = np.concatenate(clocks) if clocks else np.empty(0, dtype=np.int64)
    if not len(everything):
        return []
    if rows is not None:
        return _cuts_by_rows(clocks, everything, rows)
    last = int(everything.max())
    begin = int(everything.min(where=everything > _NEVER, initial=last))
    width = max(1, round((seconds or 0) * 1e6))
    ends = begin + width * np.arange(1, (last - begin) // width + 2)
    return [np.searchsorted(c, ends, side="left") for c in clocks]


def _cuts_by_rows(clocks: list[Ints], everything: Ints, rows: int) -> list[Ints]:
    owner = np.repeat(np.arange(len(clocks)), [len(c) for c in clocks])
    owner = owner[np.argsort(everything, kind="stable")]
    ends = np.append(np.arange(rows, len(owner), rows), len(owner))
    return [np.searchsorted(np.flatnonzero(owner == i), ends) for i in range(len(clocks))]
