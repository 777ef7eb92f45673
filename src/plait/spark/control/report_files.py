"""The reports of one query in the control directory, and how far the query is.

    reports/QUERY/17-0.json            what processor 0 did in batch 17, in a folder
    reports/QUERY/00000000/17-0.json   the same in a remote store: 64 batches share a folder

Each processor writes its own reports and removes old ones: in a remote store many at a time, a
folder of batches that are long past. Reports tell little about batches without input, and nothing
about when a batch began. That is in the logs that Spark keeps in the checkpoint (`spark_log`).
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from plait.errors import SourceError
from plait.machine.regular import folder_below
from plait.machine.stores import FileStore, is_remote, store_at
from plait.node.reports.report import Report
from plait.spark.control.background_requests import requests
from plait.spark.control.cached_tables import AHEAD
from plait.spark.control.epoch_files import reason_of
from plait.spark.control.spark_log import batch_times, last_logged

_REPORT = re.compile(r"[0-9]+-[0-9]+\.json")
_TIMED = 8
"""The last batches, from which the duration of a batch is taken."""
_MOST_AHEAD = 200
_BLOCKS = 3
"""Folders of reports that a remote directory has at a time."""


@dataclass(frozen=True, slots=True)
class QueryReports:
    """The reports of one query; `query` is its id."""

    folder: str
    """The control directory."""
    query: str
    kept: int = 128
    """Batches whose reports are kept."""
    temporary: bool = False
    """Whether the directory is in no checkpoint, so that there are no logs of Spark."""

    def write(self, batch: int, report: Report) -> None:
        """Write a report, and remove one of long ago."""
        raw, name = report.to_json().encode(), f"{batch}-{report.processor}.json"
        if not self._remote:
            self._store.write(f"{self._here}/{name}", raw)
            with suppress(OSError):  # then it is kept a little longer
                self._store.delete(f"{self._here}/{batch - self.kept}-{report.processor}.json")
            return
        requests().post(lambda: self._store.write(f"{self._folder(batch)}/{name}", raw))
        old_batch = batch - self.kept - self._block
        if old_batch >= 0 and batch % self._block == report.processor % self._block:
            requests().leave(lambda: self._store.clear(self._folder(old_batch)))

    def of(self, batch: int) -> list[Report]:
        """The reports of a batch that can be read."""
        return self.read(batch)[0]

    def read(self, batch: int) -> tuple[list[Report], list[str]]:
        """The reports of a batch that can be read, and what is wrong with the others."""
        found, notes = [], []
        for name in sorted(n for n in self._listed() if n.startswith(f"{batch}-")):
            path = f"{self.folder}/{self._folder(batch)}/{name}"
            try:
                raw = self._store.read(f"{self._folder(batch)}/{name}")
                report = Report.from_json(raw.decode("utf-8"))
            except FileNotFoundError:
                continue  # it is long ago, and was removed just now
            except (OSError, ValueError, SourceError) as error:
                notes.append(f"the report {path} cannot be read: {reason_of(error)}")
                continue
            if name == f"{batch}-{report.processor}.json":
                found.append(report)
            else:
                notes.append(f"the report {path} is a copy of another one")
        return found, notes

    def exist(self) -> bool:
        """Whether the query has reported."""
        if self._remote:
            return bool(self._times())
        try:
            with folder_below(Path(self.folder), self._here):
                return True
        except (OSError, ValueError):
            return False

    def batches(self) -> list[int]:
        """The batches with reports, in order."""
        return sorted(self._reported())

    def places(self) -> dict[str, str]:
        """The paths of all reports in the directory, by name (`BATCH-PROCESSOR.json`)."""
        return {name: f"{self._folder(_batch(name))}/{name}" for name in self._times()}

    def newest_epoch(self) -> int:
        """The greatest number of an epoch in the reports of the last batches."""
        newest = self.batches()[-2:]  # the last one may be under way
        return max((r.epoch for batch in newest for r in self.of(batch)), default=0)

    # -- how far the query is

    def last_ended(self, processors: int) -> int | None:
        """The last batch that has ended; None before the first.

        Spark logs a batch in `commits` when it has ended. Without the logs it is the last one that
        all processors have reported.
        """
        if not self.temporary:
            return last_logged(self._checkpoint, "commits")
        return max((b for b, n in self._reported().items() if n == processors), default=None)

    def last_begun(self) -> int:
        """The last batch that may have begun: Spark logs a batch in `offsets` before it runs it."""
        if self.temporary:
            return 1 + max(self._reported(), default=-1)
        return last_logged(self._checkpoint, "offsets") or 0

    def next_free(self, seconds: float) -> int:
        """The first batch that will not have begun even when this many seconds have passed.

        A batch takes as long as the shortest of the last ones.
        """
        times: dict[int, float] = {}
        for name, when in self._times().items():
            times[_batch(name)] = max(when, times.get(_batch(name), when))
        batches = sorted(times)[-_TIMED:]
        last = zip(batches, sorted(times[batch] for batch in batches), strict=True)
        # Batches in which no processor ran are not reported.
        apart = min(((t - s) / (b - a) for (a, s), (b, t) in pairwise(last)), default=1.0)
        within = math.ceil(seconds / max(apart, 1e-3))
        listed = AHEAD if self._remote else 0  # tasks have listed the tables so far ahead
        return self.last_begun() + 1 + min(within, _MOST_AHEAD) + listed

    def times(self, batch: int) -> tuple[float, float]:
        """When a batch began, in seconds since 1970, and how long it took; 0 is unknown.

        Without Spark's logs, it is when the last processor reported.
        """
        if not self.temporary:
            return batch_times(self._checkpoint, batch)
        written = [when for name, when in self._times().items() if _batch(name) == batch]
        return max(written, default=0.0), 0.0

    # -- files

    @property
    def _remote(self) -> bool:
        return is_remote(self.folder)

    @property
    def _store(self) -> FileStore:
        return store_at(self.folder)

    @property
    def _checkpoint(self) -> FileStore:
        return store_at(self.folder.rsplit("/", 2)[0])

    @property
    def _here(self) -> str:
        return f"reports/{self.query}"

    @property
    def _block(self) -> int:
        """Batches whose reports are in one folder of a remote directory, and go together."""
        return max(1, self.kept // 2)

    def _folder(self, batch: int) -> str:
        return f"{self._here}/{batch // self._block:08}" if self._remote else self._here

    def _times(self) -> dict[str, float]:
        """When each report was written, by its name."""
        try:
            found = self._store.names(self._here, files=False)
            if self._remote:
                blocks = sorted(name for name in found if name.isdecimal())[-_BLOCKS:]
                listed = [self._store.names(f"{self._here}/{block}") for block in blocks]
                found = {name: when for names in listed for name, when in names.items()}
        except OSError:
            return {}
        return {name: when for name, when in found.items() if _REPORT.fullmatch(name)}

    def _listed(self) -> list[str]:
        """The names alone, which a file system tells without looking at each file."""
        if self._remote:
            return list(self._times())
        try:
            with folder_below(Path(self.folder), self._here) as handle:
                names = os.listdir(handle)
        except (OSError, ValueError):
            return []
        return [name for name in names if _REPORT.fullmatch(name)]

    def _reported(self) -> Counter[int]:
        """The number of reports of each batch."""
        return Counter(map(_batch, self._listed()))


def _batch(name: str) -> int:
    return int(name.partition("-")[0])
