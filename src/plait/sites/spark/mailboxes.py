"""What is in the mailbox of sites, for who reads it without Spark.

Spark's file sink writes mail and a log of the files that count (`_spark_metadata`): one entry for
each batch, and now and then one that has all before it. Reports are rows with a body of JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import SourceError
from plait.sites.plans.plan import Jep, Sites
from plait.sites.plans.serde import loads

LOG = "_spark_metadata"
"""The log of Spark's file sink."""
SITES = "sites.json"
"""Which sites there are, and their first plan."""
REPORTS = "reports"
"""The box that reports are in."""


def is_mailbox(place: Path) -> bool:
    """Whether a folder is the mailbox of sites that have been started."""
    return (place / SITES).is_file() and (place / "mail").is_dir()


def described(place: Path) -> tuple[Sites, Jep]:
    """The sites of a mailbox, and their first plan."""
    try:
        return loads((place / SITES).read_text(encoding="utf-8"))
    except OSError as error:
        raise SourceError(
            f"{place} is no mailbox of sites: {error.strerror}",
            remedy="give the mailbox of sites that have been started",
        ) from error


class ReportReader:
    """Reads the reports in a mailbox, or of one application there; each file is read once."""

    def __init__(self, place: Path, application: str | None = None) -> None:
        self._mail = place / "mail"
        self._application = application
        self._read: set[Path] = set()

    def new(self) -> list[dict[str, Any]]:
        """The reports that have come since the last time."""
        found: list[dict[str, Any]] = []
        one = self._application
        for application in sorted(self._mail.iterdir()) if one is None else [self._mail / one]:
            for path in logged(application):
                if path.parent.name == f"box={REPORTS}" and path not in self._read:
                    bodies = pq.read_table(path, columns=["body"], partitioning=None)["body"]
                    found += [json.loads(body) for body in bodies.cast(pa.binary()).to_pylist()]
                    self._read.add(path)
        return found


def logged(folder: Path) -> Iterator[Path]:
    """The files that a file sink of Spark has written and that count."""
    log = folder / LOG
    names = [path.name for path in log.iterdir()] if log.is_dir() else []
    whole = max(
        (int(n.removesuffix(".compact")) for n in names if n.endswith(".compact")), default=-1
    )
    later = sorted(int(n) for n in names if n.isdigit() and int(n) > whole)
    for name in [f"{whole}.compact"] * (whole >= 0) + [str(n) for n in later]:
        _, *lines = (log / name).read_text(encoding="utf-8").splitlines()
        for entry in map(json.loads, lines):
            if entry.get("action", "add") == "add":
                # The mailbox may have been moved: only the end of the path counts.
                yield folder.joinpath(*unquote(entry["path"]).split("/")[-2:])
