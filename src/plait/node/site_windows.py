"""The windows that a site keeps: rows in the order of their stamps, and the segments of these rows.

*Invariants.* All sites that keep a window of a stream store the same rows in the same order: by
stamp, and within a stamp by event time. Rows leave from the front only, in memory and, by whole
segments, in the store. So what any site keeps is an end of the same sequence, and of two such ends
the longer one has all that is in the shorter one. That makes windows easy to copy: `content` is
what a site has up to a stamp, and `fill` takes in another site's content where that is longer.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from functools import partial

import numpy as np
import pyarrow as pa

from plait.engine.one_way import StampedWindow
from plait.engine.times import event_times
from plait.engine.windows import Windows
from plait.node.site_store import WINDOW, SegmentChanges
from plait.node.store import lane_of
from plait.route.rows import decode_rows, encode_rows


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

    def store(self, stream: int, rows: pa.RecordBatch, stamp: int) -> None:
        """Add rows with a later stamp than all before, if the window is kept."""
        if stream not in self.kept:
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

    def content(self, stream: int, upto: int) -> list[tuple[int, pa.RecordBatch]]:
        """The live rows of a window with stamps up to this one, by stamp."""
        names = [field.name for field in self.windows.query.streams[stream].fields]
        return [
            (stamp, pa.RecordBatch.from_arrays(arrays, names=names))
            for stamp, arrays in self.kept[stream].content(names)
            if stamp <= upto
        ]

    def fill(self, stream: int, content: list[tuple[int, pa.RecordBatch]], upto: int) -> None:
        """Take in what another site has of a window up to a stamp, if that is more than is here."""
        self.keep(stream)
        mine = self.content(stream, upto)
        if sum(rows.num_rows for _, rows in content) <= sum(rows.num_rows for _, rows in mine):
            return
        last = np.iinfo(np.int64).max
        later = [part for part in self.content(stream, last) if part[0] > upto]
        for stamp, _ in self._segments[stream]:
            self._changes.remove(stamp, lane_of(stream, WINDOW))
        self._segments[stream].clear()
        self.kept[stream].clear()
        for stamp, rows in [*content, *later]:
            self.store(stream, rows, stamp)
