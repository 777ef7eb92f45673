"""Remove files that failed batches left in the folder of a Delta table.

*Invariants.* Only files are removed that Plait wrote, that no version of the table within Delta's
own retention names, and that are older than any batch takes. So what is visible, what is about to
become visible, and what somebody may still travel back to stays.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from plait.errors import StorageError, TableMismatch
from plait.query.durations import Duration, micros
from plait.spark.io.delta_parts import PART, table_store
from plait.spark.io.delta_table import opened_delta, storage_errors

if TYPE_CHECKING:
    from deltalake import DeltaTable

_LEAST = timedelta(hours=1)
"""A batch under way may have written files that are younger."""


def vacuum(
    table: str | os.PathLike[str], older_than: Duration = "7 days", *, dry_run: bool = False
) -> list[str]:
    """Remove files that failed batches left in the folder of a Delta table; return their names.

        plait.spark.vacuum("/data/matches", "2 days")

    Only files that `write_delta` wrote and that no version of the table names are removed, once
    they are older than `older_than`; no batch may take longer than that. With `dry_run` they are
    only named. Delta's own vacuum removes them too, together with old versions of the table.
    """
    location, age = os.fspath(table), timedelta(microseconds=micros(older_than))
    if age < _LEAST:
        raise StorageError(
            f"files that are {older_than} old may belong to a batch that is under way",
            remedy="give an hour or more",
        )
    found = opened_delta(location)
    if found is None:
        raise TableMismatch(f"{location} is no Delta table", remedy="name the folder of one")
    with storage_errors(location):
        # The first list has files that some version has named; the second has others as well.
        named = set(_unused(found, full=False))
        loose = [name for name in _unused(found, full=True) if name not in named]
        store, before = table_store(location), datetime.now(UTC) - age
        old = []
        for name in sorted(n for n in loose if PART.match(os.path.basename(n))):
            modified = store.get_file_info(name).mtime
            if modified is not None and modified < before:
                old.append(name)
        if not dry_run:
            for name in old:
                store.delete_file(name)
    return old


def _unused(table: DeltaTable, *, full: bool) -> list[str]:
    """The files that a vacuum without retention would remove."""
    return table.vacuum(
        retention_hours=0, dry_run=True, enforce_retention_duration=False, full=full
    )
