"""A job on Spark from start to end, in a process of its own, with its progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from plait.errors import PlaitError
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.launch import listen
from plait_lab.reporting.report import Note


@dataclass(frozen=True, slots=True)
class RanJob:
    """What a job told, batch by batch."""

    batches: list[dict[str, Any]]
    stopped: bool = False
    """Whether it was ended because its time was over."""

    @property
    def seconds(self) -> tuple[float, ...]:
        """How long each batch took, by Spark's clock."""
        return tuple(b["durations"]["triggerExecution"] / 1000 for b in self.batches)

    @property
    def results(self) -> tuple[int, int]:
        """The number of all results, and their checksum."""
        return (
            sum(b["results"] for b in self.batches),
            sum(int(b["checksum"]) for b in self.batches),
        )

    @property
    def reports(self) -> list[list[dict[str, Any]]]:
        """The reports of the processors on each batch."""
        return [[json.loads(text) for text in batch["reports"]] for batch in self.batches]


def run_job(
    name: str,
    job: Job,
    where: Path,
    batches: int,
    limit: float,
    note: Note,
    *,
    may_stop: bool,
    environment: Mapping[str, str] | None = None,
) -> RanJob:
    """Run a job in a new folder; it is ended after `limit` seconds, which is an error or not."""
    where.mkdir()
    path = replace(job, scratch=str(where)).write(where / "job")

    def on_word(word: dict[str, Any]) -> None:
        if word["kind"] == "batch":
            note(f"{name}: batch {word['id'] + 1} of {batches}")

    note(f"{name}: starting")
    command = [sys.executable, "-m", "plait_lab.bench.spark.child", str(path)]
    heard = listen(command, where / "log", limit, on_word, environment=environment)
    if heard.error or (heard.over and not may_stop):
        raise PlaitError(heard.error or f"{name} took more than {limit:g} s")
    return RanJob(heard.of("batch"), heard.over)
