"""The windows that a site keeps: rows in the order of their stamps, and the segments of these rows.

*Invariants.* All sites that keep a window of a stream store the same rows in the same order: by
stamp, and within a stamp by event time. Rows leave from the front only, in memory and, by whole
segments, in the store. So what any site keeps is an end of the same sequence, and of two sites the
one that has more rows of a stamp has all that the other has. That makes windows easy to copy:
`content` is what a site has up to a stamp, and `fill` takes in another site's content, stamp by
stamp, where that is more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import pairwise

import numpy as np
import pyarrow as pa

from plait.engine.intake.codes import stored_type
from plait.engine.intake.times import AFTER_ALL_TIMES, event_times
from plait.engine.windows import Windows
from plait.groups.moves.lanes import lane_of
from plait.groups.routing.rows import decode_rows, encode_rows
from plait.sites.site.one_way import STAMP, StampedWindow, composite, shipped_column
from plait.sites.site.store import WINDOW, SegmentChanges


class SiteWindows:
    """The windows of some streams, and what is durable of them."""

    def __init__(self, windows: Windows, changes: SegmentChanges) -> None:
        self.windows = windows
        self._changes = changes
        self.kept: dict[int, StampedWindow] = {}
        self._segments: dict[int, deque[tuple[int, int]]] = {}
        """For each stream, (stamp, newest event time) of the segments."""

    def keep(self, stream: int) -> None:
        """Keep the window of a stream from now on."""
        if stream not in self.kept:
            self.kept[stream] = StampedWindow(self.windows.bases[stream])
            self._segments[stream] = deque()

    def keep_only(self, streams: Collection[int]) -> None:
        """Keep no other windows than these from now on."""
        for stream in self.kept.keys() - set(streams):
            self._emptied(stream)
            del self.kept[stream], self._segments[stream]

    def _emptied(self, stream: int) -> None:
        for stamp, _ in self._segments[stream]:
            self._changes.remove(stamp, lane_of(stream, WINDOW))
        self._segments[stream].clear()
        self.kept[stream].clear()

    def store(self, stream: int, rows: pa.RecordBatch, stamp: int) -> None:
        """Add the rows of a stamp, if the window is kept."""
        if stream not in self.kept:
            return
        if stamp <= self.kept[stream].last_stamp:
            # A copy of the window has overtaken these rows on their way from the home.
            self.fill(stream, [(stamp, rows)])
            return
        newest = self._added(stream, rows, stamp)
        body = partial(encode_rows, rows)
        self._changes.add(stamp, lane_of(stream, WINDOW), newest, body)

    def restore(self, stream: int, stamp: int, body: bytes) -> None:
        """Have a segment of the store again; earlier stamps come first."""
        (rows,) = decode_rows(body)
        self._added(stream, rows, stamp)

    def _added(self, stream: int, rows: pa.RecordBatch, stamp: int) -> int:
        time = self.windows.query.streams[stream].time
        newest = int(event_times(rows.column(time)).max())
        self.kept[stream].append(self.windows, stream, rows, stamp)
        self._segments[stream].append((stamp, newest))
        return newest

    def purge(self, cutoffs: Mapping[int, int]) -> None:
        """Drop the first rows of each window, as long as they are before its cutoff."""
        for stream, cutoff in cutoffs.items():
            self.kept[stream].drop_before(cutoff)
            segments = self._segments[stream]
            while segments and segments[0][1] < cutoff:
                self._changes.remove(segments.popleft()[0], lane_of(stream, WINDOW))
        self.windows.forget_keys()

    def content(self, stream: int, upto: int = AFTER_ALL_TIMES) -> list[tuple[int, pa.RecordBatch]]:
        """The live rows of a window with stamps up to this one, by stamp."""
        names = [field.name for field in self.windows.query.streams[stream].fields]
        return [
            (stamp, pa.RecordBatch.from_arrays(arrays, names=names))
            for stamp, arrays in self.kept[stream].content(names)
            if stamp <= upto
        ]

    def fill(self, stream: int, content: Sequence[tuple[int, pa.RecordBatch]]) -> None:
        """Take in what another site has of a window, by stamp, where that is more than is here."""
        self.keep(stream)
        known = dict(self.content(stream))
        more = [
            (stamp, rows)
            for stamp, rows in content
            if stamp not in known or rows.num_rows > known[stamp].num_rows
        ]
        if not more:
            return
        known.update(more)
        self._emptied(stream)
        for stamp in sorted(known):
            self.store(stream, known[stamp], stamp)

    def packed(self, stream: int, upto: int) -> pa.RecordBatch:
        """The content of a window as one batch with a column of stamps."""
        found = [composite(stream, rows, stamp) for stamp, rows in self.content(stream, upto)]
        if found:
            return pa.concat_batches(found)
        fields = self.windows.query.streams[stream].fields
        arrays = [pa.array([], stored_type(field.type)) for field in fields]
        names = [field.name for field in fields]
        return composite(stream, pa.RecordBatch.from_arrays(arrays, names=names), 0)

    def unpack(self, stream: int, packed: pa.RecordBatch) -> None:
        """Take in what another site has packed."""
        names = [field.name for field in self.windows.query.streams[stream].fields]
        stamps = np.asarray(packed.column(STAMP).to_numpy(), np.int64)
        starts = [*np.flatnonzero(np.diff(stamps, prepend=-1)).tolist(), len(stamps)]
        content = []
        for start, end in pairwise(starts):
            rows = packed.slice(start, end - start)
            arrays = [rows.column(shipped_column(stream, name)) for name in names]
            part = pa.RecordBatch.from_arrays(arrays, names=names)
            content.append((int(stamps[start]), part))
        self.fill(stream, content)
