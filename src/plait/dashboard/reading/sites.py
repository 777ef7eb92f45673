"""Read the mailbox of a join over sites again and again, at little cost.

A `SitesWatcher` reads the reports that are new since the last time, by the log of Spark's sink. It
writes nothing, and needs neither Spark nor the applications.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.sites.plans.plan import Jep, SiteLink, Sites
from plait.sites.site.progress import SitesProgress, sum_reports
from plait.sites.spark.mailboxes import ReportReader, described


@dataclass(frozen=True, slots=True)
class SitesSnapshot:
    """What a mailbox tells of the sites of a join."""

    sites: Sites
    first: Jep
    progress: SitesProgress

    @property
    def plan(self) -> tuple[int, Jep]:
        """The number of the newest plan that some site follows, and the plan."""
        return self.progress.plan or (0, self.first)

    @property
    def before(self) -> tuple[int, Jep] | None:
        """The plan before that one, if there was one."""
        plans = {n: jep for site in self.progress.sites.values() for n, jep in site.plans.items()}
        earlier = sorted(number for number in plans if number < self.plan[0])
        return (earlier[-1], plans[earlier[-1]]) if earlier else None

    @property
    def links(self) -> dict[tuple[str, str], SiteLink]:
        """The links as they are believed to be."""
        known = (*self.sites.links, *self.progress.links)
        return {(link.origin, link.target): link for link in known}


class SitesWatcher:
    """Reads one mailbox."""

    def __init__(self, place: Path) -> None:
        self.name = place.name
        self._sites, self._first = described(place)
        self._reader = ReportReader(place)
        self._reports: list[dict[str, Any]] = []
        self._contents = JoinSnapshot(self.name, str(place))

    @property
    def snapshot(self) -> JoinSnapshot:
        """What was read last."""
        return self._contents

    def refresh(self) -> JoinSnapshot:
        """Read what is new."""
        new = self._reader.new()
        self._contents = replace(self._contents, read=time.time())
        if new or self._contents.sites is None:
            self._reports += new
            read = SitesSnapshot(self._sites, self._first, sum_reports(self._reports))
            version = self._contents.version + 1
            self._contents = replace(self._contents, version=version, sites=read)
        return self._contents

    def settled(self) -> JoinSnapshot:
        """Everything there is."""
        return self.refresh()
