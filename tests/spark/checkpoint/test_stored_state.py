from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest
from pyspark.errors import PySparkException
from tests.machine.remote import in_memory

from plait.errors import CheckpointDamaged, CheckpointMismatch, StorageError
from plait.groups.routing.routing import route
from plait.node.durable.contract import contract
from plait.spark.checkpoint.damage import RESTORE
from plait.spark.checkpoint.stored_state import is_checkpoint, stored_contracts
from plait.testing.examples import clique
from plait_lab.laws.golden import CHECKPOINTS

GOLDEN = CHECKPOINTS["format-1"]
ASKED = contract(clique(2), route(clique(2).graph, 2))


def test_new_and_empty_locations_are_fine(tmp_path: Path) -> None:
    assert not is_checkpoint(tmp_path / "new")
    assert not is_checkpoint(tmp_path)


def test_a_checkpoint_with_a_committed_batch_is_one(tmp_path: Path) -> None:
    (tmp_path / "metadata").touch()
    assert not is_checkpoint(tmp_path), "its driver died before it could write anything else"
    (tmp_path / "offsets").mkdir()
    assert not is_checkpoint(tmp_path), "nothing was committed: any query may begin here"
    (tmp_path / "commits").mkdir()
    (tmp_path / "commits" / "0").touch()
    assert is_checkpoint(tmp_path)


def test_a_directory_with_other_things_is_refused(tmp_path: Path) -> None:
    for name in ("d.csv", "b.csv", "a.csv", "c.csv"):
        (tmp_path / name).touch()
    with pytest.raises(CheckpointMismatch, match=r"\(a.csv, b.csv, c.csv, ...\), not a checkpoint"):
        is_checkpoint(tmp_path)


def test_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(CheckpointMismatch, match="x is a file; choose a new"):
        is_checkpoint(tmp_path / "x")


def test_a_checkpoint_without_its_metadata_is_damaged(tmp_path: Path) -> None:
    (tmp_path / "offsets").mkdir()
    (tmp_path / "commits").mkdir()
    with pytest.raises(CheckpointDamaged, match="metadata is missing; put the file back"):
        is_checkpoint(tmp_path)


class Readers:
    """A session whose readers of state fail in some way."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    @property
    def read(self) -> Any:
        return self

    def format(self, _: str) -> Any:
        return self

    def load(self, _: str) -> Any:
        raise self.error


JAVA = """An error occurred while calling o1.load.
: org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 78.0 failed
\tat org.apache.spark.scheduler.DAGScheduler(DAGScheduler.scala:1)
Caused by: java.lang.IllegalStateException: the state is torn
\t... 12 more"""


@pytest.mark.parametrize("kind", [RuntimeError, PySparkException])
def test_whatever_spark_raises_becomes_an_error_of_plait(
    tmp_path: Path, kind: type[Exception]
) -> None:
    """Errors of Java come through Py4J as they are, unless PySpark knows them."""
    session: Any = Readers(kind(JAVA))
    at = shutil.copytree(GOLDEN, tmp_path / "checkpoint")
    with pytest.raises(CheckpointDamaged) as refused:
        stored_contracts(session, str(at))
    said = "Spark cannot read it: java.lang.IllegalStateException: the state is torn"
    assert str(refused.value) == f"the checkpoint {at} is damaged: {said}; {RESTORE}"
    changelog = at / "state" / "0" / "1" / "2.changelog"
    changelog.unlink()
    with pytest.raises(CheckpointDamaged, match=r"1/2.changelog is missing"):
        stored_contracts(session, str(at))


def test_what_spark_begins_with_is_looked_at_first(tmp_path: Path) -> None:
    session: Any = Readers(AssertionError("nobody asks Spark"))
    at = shutil.copytree(GOLDEN, tmp_path / "checkpoint")
    (at / "offsets" / "1").write_text("v1")
    with pytest.raises(CheckpointDamaged, match="offsets/1 is cut off"):
        stored_contracts(session, str(at))


def test_nothing_on_another_file_system_is_a_new_checkpoint() -> None:
    session: Any = Readers(PySparkException("there is no such path"))
    assert not stored_contracts(session, "dbfs:/new")


def test_nothing_in_an_object_store_is_a_new_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    store, session = in_memory(monkeypatch), Readers(AssertionError("Spark need not look"))
    store.objects["bucket/new/metadata"] = (b"{}", 0)
    assert not stored_contracts(cast(Any, session), "s3a://bucket/new")
    store.away = OSError("AWS Error ACCESS_DENIED")
    with pytest.raises(StorageError, match="cannot be listed: AWS Error ACCESS_DENIED"):
        stored_contracts(cast(Any, session), "s3a://bucket/new")
