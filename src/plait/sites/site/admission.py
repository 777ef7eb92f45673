"""Which rows a site takes in, and what it reports of a step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from plait.engine.intake.admission import LATE, NO_TIME, NULL_KEY, are_late
from plait.engine.intake.ingest import conformed
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.errors import SiteError
from plait.node.batch import Aside, Rows, batch_of_rows
from plait.node.reports.report import add
from plait.query.names import quoted
from plait.sites.site.setup import SiteOutcome, SiteReport

if TYPE_CHECKING:
    from plait.sites.site.site import Site


@dataclass(frozen=True, slots=True)
class SiteRows:
    """The rows of a stream that may be in a result, and the newest event time of all rows."""

    rows: pa.RecordBatch
    newest: int


def admit(site: Site, given: Mapping[str, Rows], outcome: SiteOutcome) -> dict[str, SiteRows]:
    """The rows of each stream that can be in a result, in the order of time."""
    for unexpected in given.keys() - site.newest.keys():
        here = ", ".join(map(quoted, site.newest)) or "none"
        raise SiteError(
            f"rows of {unexpected!r} have come to the site {quoted(site.name)}",
            remedy=f"the streams that arrive there: {here}",
        )
    report, found = outcome.report, {}
    for index, raw in batch_of_rows(site.query, given).rows.items():
        stream, name = site.query.streams[index], site.query.names[index]
        if site.ended and raw.num_rows:
            raise SiteError(
                f"rows of {quoted(name)} have come after its end",
                remedy="say that streams have ended with their last rows",
            )
        sorted_out = site.admissions[name].sort_out(conformed(stream, raw))
        rows, late = sorted_out.rows, None
        times = event_times(rows.column(stream.time))
        is_late = are_late(times, site.watermark(name))
        if is_late is not None:
            late = rows.filter(pa.array(is_late))
            rows, times = rows.filter(pa.array(~is_late)), times[~is_late]
        add(report.rows, name, raw.num_rows)
        add(report.filtered, name, sorted_out.filtered)
        for reason, counts, bad in (
            (NO_TIME, report.null_times, sorted_out.no_time),
            (NULL_KEY, report.null_keys, sorted_out.no_key),
            (LATE, report.late, late),
        ):
            if bad is not None and bad.num_rows:
                add(counts, name, bad.num_rows)
                outcome.aside.append(Aside(index, reason, bad))
        rows = conformed(site.lean.streams[index], rows)
        if len(times) > 1 and np.any(times[1:] < times[:-1]):
            rows = rows.take(pa.array(np.argsort(times, kind="stable")))
        found[name] = SiteRows(rows, sorted_out.newest)
    return found


def counted(site: Site) -> tuple[int, int, int]:
    """Probes, matches and comparisons so far."""
    steps = [step for run in site.runs.values() for step in run.joins.steps]
    return (
        site.done[0] + sum(step.counters.probes for step in steps),
        site.done[1] + sum(step.counters.matches for step in steps),
        site.done[2] + sum(step.compared for step in steps),
    )


def complete(
    site: Site, report: SiteReport, before: tuple[int, int, int], outcome: SiteOutcome
) -> None:
    """Complete the report of a step."""
    done = [now - then for now, then in zip(counted(site), before, strict=True)]
    report.probes, report.matches, report.compared = done
    report.clock = site.clock
    report.results = sum(rows.num_rows for rows in outcome.results)
    for packet in outcome.packets:
        add(report.sent_bytes, packet.target, len(packet.body))
    names = site.query.names
    report.windows = {names[stream]: len(window) for stream, window in site.windows.kept.items()}
    report.waiting = sum(item.rows.num_rows for run in site.runs.values() for item in run.waiting)
    report.unanswered = site.links.unanswered()
    report.awaited = _awaited(site)
    report.watermarks = {
        stream: site.watermark(stream)
        for stream in site.newest
        if site.watermark(stream) > BEFORE_ALL_TIMES
    }


def _awaited(site: Site) -> dict[str, int]:
    """By site, the tuples that wait for its clock."""
    found: dict[str, int] = {}
    for run in site.runs.values():
        for item in run.waiting:
            late = {site.setup.sites.homes[s][1]: limit for s, limit in sorted(run.limits(item))}
            for home, limit in late.items():
                if home != site.name and site.links.clock(home) < limit:
                    add(found, home, item.rows.num_rows)
    return found
