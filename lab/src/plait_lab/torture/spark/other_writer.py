"""Somebody else who writes to the Delta table of a query on Spark, before it and beside it.

Each of its rows has the next number below zero as its first column, so that one which is lost or
repeated shows.
"""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from plait.spark.io.delta_table import create_delta

_HISTORY = 12
"""Versions that a table has before the query begins."""

_PAUSE = 0.5
"""Seconds between two of its writes."""

_MOST = 200
"""Rows after which it is content: each is a file."""


class Neighbour(threading.Thread):
    """Writes to a table again and again until it is told to stop."""

    def __init__(self, table: Path) -> None:
        super().__init__(daemon=True)
        self._table = table
        self._end = threading.Event()

    def run(self) -> None:
        """Add a row, wait, add the next."""
        number = 0
        while not self._end.wait(_PAUSE):
            if number < _MOST:
                number = add_row(self._table)

    def stop(self) -> None:
        """Write no more."""
        self._end.set()
        self.join()


def age(table: Path, schema: pa.Schema) -> None:
    """Give a table a history, with a checkpoint in its log, unless it has one."""
    create_delta(str(table), schema)
    if _rows(DeltaTable(table)) >= _HISTORY:
        return  # the query is started again, and the neighbour is at work
    while add_row(table) < _HISTORY:
        pass
    DeltaTable(table).create_checkpoint()


def add_row(table: Path) -> int:
    """Add the next row; how many there are."""
    found = DeltaTable(table)
    number = _rows(found)
    schema = pa.schema(found.schema().to_arrow())
    first = pa.array([-number - 1], schema.field(0).type)
    columns = [first, *(pa.nulls(1, field.type) for field in list(schema)[1:])]
    try:
        write_deltalake(found, pa.table(columns, schema=schema), mode="append")
    except CommitFailedError:
        return number  # the query was faster; the next try is as good
    return number + 1


def _rows(found: DeltaTable) -> int:
    """How many rows of the neighbour's a table has."""
    written = [entry for entry in found.history() if entry["operation"] == "WRITE"]
    return len([entry for entry in written if "plait" not in entry])
