"""The settings of a Spark session that Plait needs or likes: applied, explained and undone.

`to_df` sets one thing by itself: where state is kept. `transformWithState` keeps it in RocksDB and
nowhere else, and with Spark's default the query would be built, started, and then die. Spark reads
the setting when a query starts and writes it into the checkpoint, so queries that go on from their
own checkpoint keep theirs (decision 0020). Everything else is the session's owner's to choose:
`configure` applies it and gives back what undoes it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import MissingRequirement
from plait.spark.environment.partitions import SETTING as PARTITIONS
from plait.spark.environment.partitions import SPARKS_DEFAULT, parallelism

LOG = logging.getLogger("plait")

STORE = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SPARKS_STORE = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"

BYTECODE = "PYTHONDONTWRITEBYTECODE"
"""The variable that forbids Python to keep compiled modules, unless it is empty."""

INTERVAL = "spark.sql.streaming.fileSink.log.compactInterval"
"""After how many batches the file sink compacts its log; the names of the log's files tell."""

REASONS: Mapping[str, tuple[str, str]] = {
    STORE: (ROCKSDB, "transformWithState keeps its state in RocksDB and nowhere else"),
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": (
        "true",
        "a batch writes what it changed, and not the whole state",
    ),
    # Spark asks for the size of an Arrow batch before every row that it adds to it, unless the
    # limit is this one. That took longer than to write the row.
    "spark.sql.execution.arrow.maxBytesPerBatch": (
        str(2**31 - 1),
        "Spark need not measure a batch before every row; the limit of 10,000 rows stays",
    ),
}
"""What a running session can be told, and why."""


@dataclass(frozen=True, slots=True)
class SettingChange:
    """One setting: what it was (None if it had no value), what it is now, and why."""

    setting: str
    before: str | None
    now: str
    why: str


@dataclass(frozen=True)
class SettingChanges:
    """What `configure` changed; print it to see it, `undo` it, or let `with` undo it."""

    session: SparkSession
    changes: tuple[SettingChange, ...]

    def undo(self) -> None:
        """Set everything back to what it was."""
        for change in self.changes:
            if change.before is None:
                self.session.conf.unset(change.setting)
            else:
                self.session.conf.set(change.setting, change.before)

    def __enter__(self) -> SettingChanges:
        return self

    def __exit__(self, *failure: object) -> None:
        self.undo()

    def __str__(self) -> str:
        if not self.changes:
            return "the session has all settings that suit Plait already"
        return "\n".join(
            f"{c.setting} = {c.now} (was {'not set' if c.before is None else c.before}): {c.why}"
            for c in self.changes
        )

    __repr__ = __str__


def configure(session: SparkSession, *, processors: int | None = None) -> SettingChanges:
    """Apply the settings that suit Plait to a running session, for all queries started in it.

        print(plait.spark.configure(spark))            # what was changed, and why
        with plait.spark.configure(spark, processors=8):
            query = q.to_df().writeStream.format(...).start()

    What it returns says what was changed and can undo it. The number of partitions is changed only
    if it is Spark's default of 200, or if `processors` are given. The time zone stays as it is.
    """
    wanted = dict(REASONS)
    known = session.conf.get(PARTITIONS, None)
    if processors is not None or known in (None, str(SPARKS_DEFAULT)):
        count = processors or parallelism(session)
        wanted[PARTITIONS] = (str(count), "one partition of the state for each processor")
    changes = tuple(
        SettingChange(setting, before, value, why)
        for setting, (value, why) in wanted.items()
        if (before := session.conf.get(setting, None)) != value
    )
    done = SettingChanges(session, changes)
    try:
        for change in changes:
            session.conf.set(change.setting, change.now)
    except PySparkException:
        done.undo()
        raise
    return done


def store_in_rocksdb(session: SparkSession) -> None:
    """Let queries that are started in the session from now on keep their state in RocksDB."""
    found = session.conf.get(STORE, SPARKS_STORE)
    if found == ROCKSDB:
        return
    if found != SPARKS_STORE:
        raise MissingRequirement(
            f"{STORE} is {found}, but transformWithState works with RocksDB only",
            remedy=f"set it to {ROCKSDB}, or call plait.spark.configure(spark)",
        )
    session.conf.set(STORE, ROCKSDB)
    LOG.info("%s is %s from now on: Plait's queries need it", STORE, ROCKSDB)
