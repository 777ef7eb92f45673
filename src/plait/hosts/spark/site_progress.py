"""What sites on Spark have done, added up from the reports in their mail.

Reports are rows of the same sink as packets and results, so each step counts once, whatever was
killed and repeated meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # the name everybody uses

from plait.hosts.spark.mail import REPORTS
from plait.node.batch import add
from plait.query.names import quoted

_COUNTS = ("results", "probes", "matches", "compared")
_BY_STREAM = ("rows", "row_bytes", "null_times", "null_keys", "filtered", "late")


@dataclass(frozen=True, slots=True)
class SiteProgress:
    """What one site has done."""

    site: str
    steps: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)
    """Results, probes, matches and comparisons."""
    streams: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Rows of each stream that arrived here, their bytes, and those set aside, by reason."""
    arrived: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """For each stream, rows after the first step that had any, and the event time they span."""
    sent_bytes: Mapping[str, int] = field(default_factory=dict)
    """What it has sent to each other site."""
    last: Mapping[str, Any] = field(default_factory=dict)
    """Its last report: clock, windows, waiting tuples, watermarks, plans."""


@dataclass(frozen=True, slots=True)
class SitesProgress:
    """What all sites of a join have done; print it to see it."""

    sites: Mapping[str, SiteProgress]

    @property
    def results(self) -> int:
        """Results that have come out, over all sites."""
        return sum(site.counts.get("results", 0) for site in self.sites.values())

    @property
    def link_bytes(self) -> dict[tuple[str, str], int]:
        """Bytes that were sent over each link."""
        return {
            (name, target): size
            for name, site in self.sites.items()
            for target, size in site.sent_bytes.items()
        }

    def __str__(self) -> str:
        lines = [f"results {self.results:,}", "sites"]
        for name, site in sorted(self.sites.items()):
            came = ", ".join(f"{quoted(s)} {n:,}" for s, n in site.streams.get("rows", {}).items())
            kept = ", ".join(f"{quoted(s)} {n:,}" for s, n in site.last["windows"].items())
            lines.append(
                f"  {quoted(name)}  {site.steps} steps · rows {came or 'none'} · windows "
                f"{kept or 'none'} · plan {site.last['follows']}"
            )
        lines.append("links")
        for (origin, target), size in sorted(self.link_bytes.items()):
            lines.append(f"  {quoted(origin)} → {quoted(target)}  {size:,} bytes")
        return "\n".join(lines)


def sites_progress(mail: DataFrame) -> SitesProgress:
    """The progress in the mail of all applications."""
    rows = mail.where(F.col("box") == REPORTS).select("body").collect()
    return added_up(json.loads(bytes(row.body)) for row in rows)


def added_up(reports: Iterable[Mapping[str, Any]]) -> SitesProgress:
    """The sums of reports, in any order.

    >>> one = {"site": "oslo", "step": 1, "rows": {"a": 2}, "sent_bytes": {"rome": 10}}
    >>> two = {"site": "oslo", "step": 2, "rows": {}, "sent_bytes": {"rome": 5}}
    >>> added_up([two, one]).link_bytes
    {('oslo', 'rome'): 15}
    """
    by_site: dict[str, list[Mapping[str, Any]]] = {}
    for report in reports:
        by_site.setdefault(report["site"], []).append(report)
    return SitesProgress({name: _one_site(name, by_site[name]) for name in sorted(by_site)})


def _one_site(name: str, reports: list[Mapping[str, Any]]) -> SiteProgress:
    sent: dict[str, int] = {}
    streams: dict[str, dict[str, int]] = {what: {} for what in _BY_STREAM}
    for report in reports:
        for target, size in report["sent_bytes"].items():
            add(sent, target, size)
        for what in _BY_STREAM:
            for stream, n in report.get(what, {}).items():
                add(streams[what], stream, n)
    counts = {what: sum(report.get(what, 0) for report in reports) for what in _COUNTS}
    last = max(reports, key=lambda report: report["step"])
    return SiteProgress(name, len(reports), counts, streams, _arrived(reports), sent, last)


def _arrived(reports: list[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Rows and microseconds between the first and the last watermark of each stream."""
    first: dict[str, int] = {}
    found: dict[str, tuple[int, int]] = {}
    for report in sorted(reports, key=lambda report: report["step"]):
        for stream, watermark in report.get("watermarks", {}).items():
            if stream not in first:
                first[stream], found[stream] = watermark, (0, 0)
            else:
                rows = found[stream][0] + report.get("rows", {}).get(stream, 0)
                found[stream] = (rows, watermark - first[stream])
    return found
