"""The streams that arrive at a site: which rows are admitted, and how far each stream has come."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from plait.engine.intake.admission import LATE, NO_TIME, NULL_KEY, Admission, are_late
from plait.engine.intake.ingest import conformed
from plait.engine.intake.times import AFTER_ALL_TIMES, event_times
from plait.engine.intake.watermarks import own_watermark
from plait.errors import SiteError
from plait.node.batch import Aside, Rows, batch_of_rows
from plait.node.reports.report import add
from plait.query.names import quoted
from plait.query.query import Query
from plait.sites.site.setup import SiteOutcome


@dataclass(frozen=True, slots=True)
class SiteRows:
    """The rows of a stream that may be in a result, and the newest event time of all rows."""

    rows: pa.RecordBatch
    newest: int


class HomeStreams:
    """The streams whose home a site is; `lean` is the query of what is left after admission."""

    def __init__(
        self, site: str, query: Query, lean: Query, newest: Mapping[str, int], ended: bool
    ) -> None:
        self._site, self._query, self._lean = site, query, lean
        self._admissions = {s: Admission(query, query.index(s)) for s in newest}
        self.newest = dict(newest)
        """The newest event time of each stream."""
        self.ended = ended

    def watermark(self, stream: str) -> int:
        """The time below which a row of a stream is late."""
        if self.ended:
            return AFTER_ALL_TIMES
        return own_watermark(self._query.streams[self._query.index(stream)], self.newest[stream])

    def admit(self, given: Mapping[str, Rows], outcome: SiteOutcome) -> dict[str, SiteRows]:
        """The rows of each stream that can be in a result, in the order of time."""
        for unexpected in given.keys() - self.newest.keys():
            here = ", ".join(map(quoted, self.newest)) or "none"
            raise SiteError(
                f"rows of {unexpected!r} have come to the site {quoted(self._site)}",
                remedy=f"the streams that arrive there: {here}",
            )
        batch = batch_of_rows(self._query, given).rows
        return {
            self._query.names[index]: self._admitted(index, raw, outcome)
            for index, raw in batch.items()
        }

    def _admitted(self, index: int, raw: pa.RecordBatch, outcome: SiteOutcome) -> SiteRows:
        stream, report = self._query.streams[index], outcome.report
        if self.ended and raw.num_rows:
            raise SiteError(
                f"rows of {quoted(stream.name)} have come after its end",
                remedy="say that streams have ended with their last rows",
            )
        sorted_out = self._admissions[stream.name].sort_out(conformed(stream, raw))
        rows, late = sorted_out.rows, None
        times = event_times(rows.column(stream.time))
        is_late = are_late(times, self.watermark(stream.name))
        if is_late is not None:
            late = rows.filter(pa.array(is_late))
            rows, times = rows.filter(pa.array(~is_late)), times[~is_late]
        add(report.rows, stream.name, raw.num_rows)
        add(report.filtered, stream.name, sorted_out.filtered)
        for reason, counts, bad in (
            (NO_TIME, report.null_times, sorted_out.no_time),
            (NULL_KEY, report.null_keys, sorted_out.no_key),
            (LATE, report.late, late),
        ):
            if bad is not None and bad.num_rows:
                add(counts, stream.name, bad.num_rows)
                outcome.aside.append(Aside(index, reason, bad))
        rows = conformed(self._lean.streams[index], rows)
        if len(times) > 1 and np.any(times[1:] < times[:-1]):
            rows = rows.take(pa.array(np.argsort(times, kind="stable")))
        return SiteRows(rows, sorted_out.newest)

    def advance(self, admitted: Mapping[str, SiteRows]) -> None:
        """Note how far the streams have come with these rows."""
        for stream, fresh in admitted.items():
            self.newest[stream] = max(self.newest[stream], fresh.newest)
