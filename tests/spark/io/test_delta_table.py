"""Batches in Delta tables: once, beside other writers, and only where they fit."""

from __future__ import annotations

import os
import pickle
import shutil
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import CommitFailedError

from plait.errors import CheckpointMismatch, MissingRequirement, StorageError, TableMismatch
from plait.spark.io import delta_parts, delta_table
from plait.spark.io.delta_parts import PartWriter, TablePart, part_name
from plait.spark.io.delta_table import DeltaCommits, check_delta, create_delta
from plait.spark.io.delta_vacuum import vacuum

SCHEMA = pa.schema([("k", pa.int64()), ("at", pa.timestamp("us", tz="UTC"))])


def part(place: Path, query: str, batch: int, rows: int = 1) -> TablePart:
    writer = PartWriter(str(place), part_name(query, batch, 0), SCHEMA)
    writer.write(pa.RecordBatch.from_pylist([{"k": batch, "at": n} for n in range(rows)], SCHEMA))
    found = writer.close()
    assert found is not None
    return found


@pytest.fixture
def place(tmp_path: Path) -> Path:
    create_delta(str(tmp_path / "t"), SCHEMA)
    return tmp_path / "t"


def keys(place: Path) -> Counter[int]:
    return Counter(DeltaTable(place).to_pyarrow_table()["k"].to_pylist())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_every_batch_once_with_crashes_everywhere(
    place: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drivers die before or after an entry, or are told that it failed although it did not."""
    chance = Random(seed)
    append = DeltaCommits._append

    def fails(*given: Any) -> None:
        how = chance.choice(["well", "before", "after", "lost", "refused"])
        if how == "before":
            raise KeyboardInterrupt
        if how == "refused":
            raise CommitFailedError
        append(*given)
        if how == "after":
            raise KeyboardInterrupt
        if how == "lost":
            raise CommitFailedError("timed out")

    monkeypatch.setattr(DeltaCommits, "_append", fails)
    commits = pickle.loads(pickle.dumps(DeltaCommits(str(place), SCHEMA)))
    expected: Counter[int] = Counter()
    for batch in range(15):
        rows = chance.randrange(3)
        for _ in range(100):
            parts = [part(place, "q", batch) for _ in range(rows)]
            try:
                commits.commit("q", batch, parts)
            except KeyboardInterrupt:
                commits = DeltaCommits(str(place), SCHEMA)
                continue
            if chance.random() < 0.7:
                break  # else Spark did not hear of it
        else:
            pytest.fail("it gets on")
        expected += Counter({batch: rows})
        assert keys(place) == expected
    loose = {p.name for p in place.glob("*.parquet")} - {
        os.path.basename(uri) for uri in DeltaTable(place).file_uris()
    }
    for name in loose:
        os.utime(place / name, (1, 1))
    assert set(vacuum(place)) == loose
    assert keys(place) == expected
    assert expected.total() > 5


def test_a_repeated_batch_leaves_nothing_behind(place: Path) -> None:
    commits = DeltaCommits(str(place), SCHEMA)
    assert commits.commit("q", 0, [part(place, "q", 0)])
    again = part(place, "q", 0)
    assert not commits.commit("q", 0, [again])
    assert not (place / again.path).exists() and keys(place) == Counter([0])
    with pytest.raises(CheckpointMismatch, match=r"batch 0 of this query.*goes on with batch -1"):
        commits.commit("q", -1, [])
    assert commits.commit("other", 0, [part(place, "other", 0)]), "another query is another one"


def test_a_table_that_lacks_a_batch_is_refused(place: Path, tmp_path: Path) -> None:
    commits = DeltaCommits(str(place), SCHEMA)
    assert commits.commit("q", 0, [part(place, "q", 0)])
    copy = tmp_path / "copy"
    shutil.copytree(place, copy)
    assert commits.commit("q", 3, [part(place, "q", 3)], 0), "batches 1 and 2 had no rows"
    write_deltalake(copy, DeltaTable(copy).to_pyarrow_table(), mode="append")
    old = DeltaCommits(str(copy), SCHEMA)
    for parts in ([], [part(copy, "q", 4)]):
        with pytest.raises(CheckpointMismatch, match=r"only batches up to 0 .* but batch 3 was"):
            old.commit("q", 4, parts, 3)
    another = tmp_path / "another"
    create_delta(str(another), SCHEMA)
    with pytest.raises(CheckpointMismatch, match=r"has no batch of this query, but batch 3 was"):
        DeltaCommits(str(another), SCHEMA).commit("q", 4, [], 3)


def test_a_table_that_has_every_batch_is_not_refused(place: Path) -> None:
    commits = DeltaCommits(str(place), SCHEMA)
    assert commits.commit("q", 0, [])
    assert commits.commit("q", 1, [part(place, "q", 1)], -1)
    assert not commits.commit("q", 1, [part(place, "q", 1)], -1), "the driver died after the entry"
    assert commits.commit("other", 7, [part(place, "other", 7)], -1)
    write_deltalake(place, DeltaTable(place).to_pyarrow_table(), mode="append")
    table = DeltaTable(place)
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    table = DeltaTable(place)
    table.create_checkpoint()
    for name in (place / "_delta_log").glob("*.json"):
        if int(name.stem) < table.version():
            name.unlink()  # as after a month: the checkpoint of the log has it all
    again = DeltaCommits(str(place), SCHEMA)
    assert again.commit("q", 2, [], 1)
    assert again.commit("q", 3, [part(place, "q", 3)], 1)


def test_a_table_that_forgets_queries_is_not_refused(tmp_path: Path) -> None:
    place, setting = tmp_path / "t", "delta.setTransactionRetentionDuration"
    DeltaTable.create(place, SCHEMA, configuration={setting: "interval 7 days"})
    assert DeltaCommits(str(place), SCHEMA).commit("q", 4, [part(place, "q", 4)], 3)


def test_an_empty_batch_adds_no_entry(place: Path) -> None:
    assert DeltaCommits(str(place), SCHEMA).commit("q", 0, [])
    assert DeltaTable(place).version() == 0


@pytest.mark.slow
def test_other_writers_are_no_conflict(place: Path) -> None:
    """Queries, other programs and deletions at the same time."""
    wrong: list[BaseException] = []

    def guarded(work: Callable[[], None]) -> threading.Thread:
        def run() -> None:
            try:
                work()
            except BaseException as error:  # an assertion in a thread would be lost
                wrong.append(error)

        return threading.Thread(target=run)

    def query(name: str) -> None:
        commits = DeltaCommits(str(place), SCHEMA)
        for batch in range(6):
            assert commits.commit(name, batch, [part(place, name, batch)])

    def program() -> None:
        for _ in range(6):
            write_deltalake(place, pa.table({"k": [100], "at": [0]}).cast(SCHEMA), mode="append")
            DeltaTable(place).delete("k = 100")

    threads = [guarded(lambda: query("a")), guarded(lambda: query("b")), guarded(program)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # The deletions of the other program may have had a conflict; the queries must not.
    assert not [error for error in wrong if not isinstance(error, CommitFailedError)]
    found = keys(place)
    found.pop(100, None)
    assert found == Counter(dict.fromkeys(range(6), 2))


def test_two_drivers_of_one_query_add_a_batch_once(place: Path) -> None:
    one, two = (DeltaCommits(str(place), SCHEMA) for _ in range(2))
    for batch in range(5):
        parts = [part(place, "q", batch), part(place, "q", batch)]
        threads = [
            threading.Thread(target=c.commit, args=("q", batch, [p]))
            for c, p in zip((one, two), parts, strict=True)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert keys(place) == Counter(range(5))


def test_writers_that_never_let_go_are_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise CommitFailedError

    monkeypatch.setattr(DeltaCommits, "_append", refuse)
    with pytest.raises(StorageError, match=r"others write to the table .* so often"):
        DeltaCommits(str(place), SCHEMA).commit("q", 0, [part(place, "q", 0)])


def test_a_file_that_the_driver_does_not_see_is_named(place: Path) -> None:
    lost = part(place, "q", 0)
    (place / lost.path).unlink()
    with pytest.raises(StorageError, match="the driver does not find it"):
        DeltaCommits(str(place), SCHEMA).commit("q", 0, [lost])


def test_another_schema_is_named(place: Path) -> None:
    assert check_delta(str(place), pa.schema(list(reversed(SCHEMA)))), "in any order"
    for schema, said in (
        (pa.schema([SCHEMA[0]]), "results have no column 'at'"),
        (SCHEMA.append(pa.field("n", pa.int8())), "it has no column 'n'"),
        (SCHEMA.set(0, pa.field("k", pa.string())), "'k' is long there, string here"),
        (SCHEMA.set(1, pa.field("at", pa.timestamp("us"))), "timestamp there, timestamp_ntz here"),
        (SCHEMA.set(0, pa.field("K", pa.int64())), "it has no column 'K'"),
        (SCHEMA.append(pa.field("a b", pa.int8())), "'a b' has ' ' in its name"),
        (SCHEMA.append(pa.field("AT", pa.int8())), "'at' and 'AT' are one"),
        (SCHEMA.append(pa.field("t", pa.time64("us"))), "'t' is of type time64"),
    ):
        with pytest.raises(TableMismatch, match=said):
            check_delta(str(place), schema)


def test_a_schema_that_changes_between_batches_is_named(place: Path) -> None:
    commits = DeltaCommits(str(place), SCHEMA)
    assert commits.commit("q", 0, [part(place, "q", 0)])
    more = SCHEMA.append(pa.field("n", pa.int64()))
    write_deltalake(
        place, pa.Table.from_pylist([{"n": 1}], more), mode="append", schema_mode="merge"
    )
    with pytest.raises(TableMismatch, match="results have no column 'n'"):
        commits.commit("q", 1, [part(place, "q", 1)])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partition_by": ["k"]}, "is partitioned by k"),
        ({"configuration": {"delta.columnMapping.mode": "name"}}, "has column mapping"),
    ],
)
def test_tables_with_rules_are_refused(tmp_path: Path, options: Any, said: str) -> None:
    DeltaTable.create(str(tmp_path / "t"), SCHEMA, **options)
    with pytest.raises(TableMismatch, match=said):
        check_delta(str(tmp_path / "t"), SCHEMA)


def test_constraints_are_refused(place: Path) -> None:
    DeltaTable(place).alter.add_constraint({"positive": "k >= 0"})
    with pytest.raises(TableMismatch, match="has the constraint 'positive'"):
        check_delta(str(place), SCHEMA)


def test_places_that_are_no_table(tmp_path: Path) -> None:
    assert not check_delta(str(tmp_path / "new"), SCHEMA)
    assert not (tmp_path / "new").exists(), "looking makes nothing"
    (tmp_path / "file").write_text("")
    with pytest.raises(TableMismatch, match="is a file"):
        check_delta(str(tmp_path / "file"), SCHEMA)
    with pytest.raises(TableMismatch, match=r"has other things in it \(file\)"):
        check_delta(str(tmp_path), SCHEMA)


def test_a_folder_that_nobody_may_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("deltalake.DeltaTable.__init__", denied)
    with pytest.raises(StorageError, match=r"cannot be read or written.*Permission denied"):
        check_delta(str(tmp_path), SCHEMA)


def test_without_the_library_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("deltalake", "deltalake.fs", "deltalake.exceptions"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingRequirement, match=r"plait\[delta\]"):
        delta_table.check_delta(str(tmp_path / "t"), SCHEMA)
    with pytest.raises(MissingRequirement, match=r"plait\[delta\]"):
        delta_parts.table_store(str(tmp_path))
