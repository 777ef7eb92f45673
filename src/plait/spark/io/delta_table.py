"""Check a Delta table beforehand, and commit each batch of results to it once.

*Correct output.* The table has the rows of every batch that was committed, once.

*Invariants.* Files are written first and named in the table's log afterwards, all those of a batch
in one entry, together with the query's id as application id and the batch as its version. So the
log itself says which batch was the last, and a batch that is repeated after a crash is not added
again. Processors remember the last batch that had files, in the state of the checkpoint: a table
that lacks it was put back from a copy, or is another one, and is refused. What somebody else writes
to the table meanwhile is no conflict, as long as its schema stays.

*Ties and time.* If the writing of an entry fails, it may have been written all the same: the log is
read again, and decides.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.errors import CheckpointMismatch, StorageError, TableMismatch
from plait.spark.io.delta_parts import TablePart, no_deltalake, table_store

if TYPE_CHECKING:
    from deltalake import DeltaTable

_TRIES = 20
"""Times that an entry of the log is tried while others write to the table, too."""

_APPENDABLE = frozenset(
    {
        "appendOnly",
        "changeDataFeed",
        "checkConstraints",
        "columnMapping",
        "deletionVectors",
        "generatedColumns",
        "identityColumns",
        "invariants",
        "timestampNtz",
        "typeWidening",
        "v2Checkpoint",
        "vacuumProtocolCheck",
        "variantType",
    }
)
"""Features that ask nothing of those who add files, unless `_demands` finds them in use."""

_COLOUR = re.compile("\x1b\\[[0-9;]*m")
_ANSWER = re.compile(
    r"(?:<\?xml[^>]*>\s*)?<Error><Code>(.*?)</Code><Message>(.*?)</Message>", re.DOTALL
)
"""What stores of S3 say when they refuse something."""

_BAD_IN_NAMES = " ,;{}()\n\t="


def check_delta(location: str, schema: pa.Schema) -> bool:
    """Whether the table exists; refuse one that cannot take rows of this schema.

    Also refused: a schema that no Delta table can have, and a folder with other things in it.
    """
    _check_columns(location, schema)
    if os.path.isfile(location):
        raise TableMismatch(
            f"{location} is a file, not the folder of a Delta table", remedy="name a folder"
        )
    found = opened_delta(location)
    if found is None:
        _check_place(location)
        return False
    _check_table(found, location, schema)
    return True


def create_delta(location: str, schema: pa.Schema) -> None:
    """Make the table, unless somebody else has done so meanwhile."""
    with storage_errors(location):
        _library().DeltaTable.create(location, schema, mode="ignore")
    check_delta(location, schema)


@dataclass(slots=True)
class DeltaCommits:
    """Adds batches of a query to a table; a value that may travel to where batches end."""

    location: str
    schema: pa.Schema
    _table: Any = field(default=None, init=False, repr=False, compare=False)
    """The table as it was last seen; None before the first batch, when this may travel."""

    def commit(
        self, query: str, batch: int, parts: Sequence[TablePart], delivered: int = -1
    ) -> bool:
        """Add the files of a batch; False if the batch had been added before, by an earlier try.

        Then its new files are removed. A batch without files adds no entry. `delivered` is the last
        batch before this one that had files, by what the checkpoint knows; -1 if none had any.
        """
        self._check_files(parts)
        tried = False
        for _ in range(_TRIES):
            table = self._refreshed()
            # Assumption: delta-table-fits-checkpoint
            last = table.transaction_version(query)
            if last is not None and last > batch:
                raise CheckpointMismatch(
                    f"the table {self.location} has batch {last} of this query already, but the "
                    f"checkpoint goes on with batch {batch}: it is older than the table",
                    remedy="use the checkpoint that belongs to the table, or a new table and a "
                    "new checkpoint",
                )
            if delivered > (-1 if last is None else last) and not _forgets(table, last):
                had = "no batch" if last is None else f"only batches up to {last}"
                raise CheckpointMismatch(
                    f"the table {self.location} has {had} of this query, but batch {delivered} was "
                    "written to its table: it is older than the checkpoint, or another one",
                    remedy="put back the table that belongs to the checkpoint, or use a new table "
                    "and a new checkpoint",
                )
            if last == batch:
                if not tried:
                    remove_files(self.location, [part.path for part in parts])
                return tried
            if not parts:
                return True
            tried = True
            try:
                self._append(table, query, batch, parts)
            except _library().exceptions.CommitFailedError:
                continue  # somebody was faster; the log says whether that matters
            return True
        raise StorageError(
            f"others write to the table {self.location} so often that batch {batch} could not be "
            f"added in {_TRIES} tries",
            remedy="let fewer writers use it, and start the query again: it goes on from there",
        )

    def _append(
        self, table: DeltaTable, query: str, batch: int, parts: Sequence[TablePart]
    ) -> None:
        """Write the entry of a batch."""
        from deltalake import CommitProperties, Transaction
        from deltalake.transaction import AddAction, RemoveAction

        now = int(time.time() * 1000)
        added: list[AddAction | RemoveAction] = [
            AddAction(p.path, p.size, {}, now, True, p.stats) for p in parts
        ]
        properties = CommitProperties(
            custom_metadata={"plait": {"query": query, "batch": batch}},
            app_transactions=[Transaction(query, batch)],
        )
        with storage_errors(self.location):
            table.create_write_transaction(
                added, "append", table.schema(), commit_properties=properties
            )

    def _refreshed(self) -> DeltaTable:
        """The table as it is now, which must still be one that can get the rows."""
        with storage_errors(self.location):
            if self._table is None:
                self._table = _library().DeltaTable(self.location)
            else:
                self._table.update_incremental()
        _check_table(self._table, self.location, self.schema)
        found: DeltaTable = self._table
        return found

    def _check_files(self, parts: Sequence[TablePart]) -> None:
        """Refuse files that the driver does not see: a local folder on several hosts."""
        if "://" in self.location:
            return
        for part in parts:
            path = os.path.join(self.location, part.path)
            if not os.path.isfile(path) or os.path.getsize(path) != part.size:
                raise StorageError(
                    f"a processor has written {path}, but the driver does not find it there",
                    remedy="choose a location that driver and executors share for the table",
                )


def _forgets(table: DeltaTable, last: int | None) -> bool:
    """Whether a table that knows no batch of a query may have known one."""
    return last is None and "delta.setTransactionRetentionDuration" in (
        table.metadata().configuration
    )


def remove_files(location: str, names: Sequence[str]) -> None:
    """Remove files that no log names; what cannot be removed is left to `vacuum`."""
    store = table_store(location)
    for name in names:
        with suppress(Exception):
            store.delete_file(name)


# --- what a table must be like --------------------------------------------------------------------


def _check_columns(location: str, schema: pa.Schema) -> None:
    """Refuse columns that no Delta table can have."""
    library, seen = _library(), dict[str, str]()
    for column in schema:
        if bad := sorted(set(column.name) & set(_BAD_IN_NAMES)):
            raise TableMismatch(
                f"the column {column.name!r} has {bad[0]!r} in its name, which the Delta table "
                f"{location} cannot have",
                remedy="give it another name: select('... AS name')",
            )
        if (other := seen.setdefault(column.name.lower(), column.name)) != column.name:
            raise TableMismatch(
                f"the columns {other!r} and {column.name!r} are one to a Delta table",
                remedy="give one of them another name: select('... AS name')",
            )
        try:
            library.Schema.from_arrow(pa.schema([column]))
        except Exception as error:  # whatever the library raises for what it cannot write
            raise TableMismatch(
                f"the column {column.name!r} is of type {column.type}, which a Delta table cannot "
                "have",
                remedy="cast it to another type in select(...)",
            ) from error


def _check_place(location: str) -> None:
    """Refuse a folder without a table that has other things in it."""
    from pyarrow.fs import FileSelector

    names: list[str]
    if "://" not in location:
        names = sorted(os.listdir(location)) if os.path.isdir(location) else []
    else:
        with storage_errors(location):
            found = table_store(location).get_file_info(FileSelector("", allow_not_found=True))
        names = sorted(info.path for info in found)
    if names:
        raise TableMismatch(
            f"{location} has other things in it ({', '.join(names[:3])}), and is no Delta table",
            remedy="name a new or an empty folder, or one with a Delta table",
        )


def _check_table(table: DeltaTable, location: str, schema: pa.Schema) -> None:
    """Refuse a table that must not or cannot get rows of this schema."""
    if found := _differences(table.schema(), _library().Schema.from_arrow(schema)):
        raise TableMismatch(
            f"the Delta table {location} has another schema: {'; '.join(found)}",
            remedy="select what the table has, or write to another table",
        )
    if demand := _demands(table):
        raise TableMismatch(
            f"the Delta table {location} {demand}, which files that processors write do not heed",
            remedy="write to a table without it, or use to_df() and Delta's own sink",
        )


def _differences(there: Any, here: Any) -> list[str]:
    """The differences between the schema of a table and that of results, in words."""
    table, results = _types(there), _types(here)
    found = [f"it has no column {name!r}" for name in results if name not in table]
    found += [f"results have no column {name!r}" for name in table if name not in results]
    for name in results:
        if name in table and table[name] != results[name]:
            found.append(f"{name!r} is {_shown(table[name])} there, {_shown(results[name])} here")
    return found


def _types(schema: Any) -> dict[str, tuple[object, bool]]:
    """Type and nullability of the columns; the order of columns means nothing to Delta."""
    fields = json.loads(schema.to_json())["fields"]
    return {f["name"]: (_bare(f["type"]), bool(f["nullable"])) for f in fields}


def _bare(type_: Any) -> object:
    """A type without comments and the like of its fields."""
    if isinstance(type_, dict):
        return {name: _bare(part) for name, part in type_.items() if name != "metadata"}
    return [_bare(part) for part in type_] if isinstance(type_, list) else type_


def _shown(found: tuple[object, bool]) -> str:
    type_, nullable = found
    text = type_ if isinstance(type_, str) else json.dumps(type_)
    return text if nullable else f"{text} not null"


def _demands(table: DeltaTable) -> str | None:
    """What a table asks of its writers beyond rows of its schema, in words; None if nothing."""
    metadata, protocol = table.metadata(), table.protocol()
    if metadata.partition_columns:
        return f"is partitioned by {', '.join(metadata.partition_columns)}"
    if unknown := sorted(set(protocol.writer_features or ()) - _APPENDABLE):
        return f"has the feature {unknown[0]}"
    for name, value in metadata.configuration.items():
        if name.startswith("delta.constraints."):
            return f"has the constraint {name.removeprefix('delta.constraints.')!r}"
        if name == "delta.columnMapping.mode" and value != "none":
            return "has column mapping"
    for column in json.loads(table.schema().to_json())["fields"]:
        for word in ("generationExpression", "identity.start", "invariants"):
            if f"delta.{word}" in column["metadata"]:
                return f"has {word} for the column {column['name']!r}"
    return None


# --- the library ----------------------------------------------------------------------------------


def _library() -> Any:
    """The package, if it is installed."""
    try:
        import deltalake
        import deltalake.exceptions
    except ImportError as error:
        raise no_deltalake() from error
    return deltalake


def opened_delta(location: str) -> DeltaTable | None:
    """The table, None if there is none."""
    library = _library()
    with storage_errors(location):
        try:
            found: DeltaTable = library.DeltaTable(location)
        except library.exceptions.TableNotFoundError:
            return None
    return found


def _in_short(error: BaseException) -> str:
    """What the library says, in one line without colours; of a store's answer, what it means.

    >>> answer = "list\\n \x1b[31m↳\x1b[0m <Error><Code>NoSuchBucket</Code><Message>no</Message>"
    >>> _in_short(OSError(answer + "<HostId>x</HostId></Error>"))
    'list: NoSuchBucket: no'
    """
    told = _COLOUR.sub("", str(error)).replace("↳", ": ")
    if meant := _ANSWER.search(told):
        told = f"{told[: meant.start()]}{meant[1]}: {meant[2]}"
    return re.sub(r"\s*:\s+(:\s+)*", ": ", " ".join(told.split()))


class storage_errors:
    """Turn the library's errors about an unreachable store into a StorageError."""

    def __init__(self, location: str) -> None:
        self._location = location

    def __enter__(self) -> None:
        _library()

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        known = _library().exceptions
        if isinstance(error, known.TableNotFoundError | known.CommitFailedError):
            return
        if isinstance(error, known.DeltaError | OSError):
            raise StorageError(
                f"the Delta table {self._location} cannot be read or written: {_in_short(error)}",
                remedy="look at its location and credentials, and start the query again: it goes "
                "on from the last batch that was committed",
            ) from error
