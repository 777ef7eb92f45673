from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from plait.api.running import Running
from plait.errors import (
    CheckpointDamaged,
    CheckpointMismatch,
    MemoryExceeded,
    MissingRequirement,
    PlaitError,
    SourceError,
    StorageError,
)
from plait.spark.checkpoint.damage import RESTORE
from plait.spark.checkpoint.why import why
from plait_lab.laws.golden import CHECKPOINTS

GOLDEN = CHECKPOINTS["format-1"]

TRACE = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted.
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
{error}

	at org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
SQLSTATE: XXKST"""


class Query:
    """What `Running.why` asks of a streaming query."""

    def __init__(self, error: Exception | None) -> None:
        self._error = error

    def exception(self) -> Exception | None:
        return self._error


@pytest.mark.parametrize(
    "error",
    [
        CheckpointMismatch("it belongs to another: a was 1 and is now 2; b too", remedy="mend it"),
        MemoryExceeded("a⋈b", 5, 10, 7),
        SourceError("rows lack the column 'k'"),
    ],
)
def test_errors_of_tasks_come_back(error: PlaitError) -> None:
    wrapped = RuntimeError(TRACE.format(error=f"plait.errors.{type(error).__name__}: {error}"))
    for found in (why(wrapped), Running(cast(Any, Query(wrapped))).why()):
        assert type(found) is type(error)
        assert str(found) == str(error)


@pytest.mark.parametrize(
    ("text", "kind", "named"),
    [
        ("Redefining watermark is disallowed. You can", SourceError, "below an operator"),
        ("driver worker exited unexpectedly", MissingRequirement, "protobuf"),
        ("ModuleNotFoundError: No module named 'plait'", MissingRequirement, "executors"),
        ("[JAVA_GATEWAY_EXITED] Java gateway", MissingRequirement, "JAVA_HOME"),
        ("[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] x", CheckpointMismatch, "other operators"),
        ("maximum supported log version is v1, but encountered v9", CheckpointMismatch, "newer"),
        ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent", CheckpointMismatch, "another query writes"),
        (
            "Timed out while waiting for the Python worker to connect back",
            MissingRequirement,
            "too busy",
        ),
        ("Python worker failed to connect back.", MissingRequirement, "too busy"),
        ("java.io.IOException: No space left on device", StorageError, "last batch"),
        ("/x/offsets: Read-only file system", StorageError, "/x/offsets: Read-only"),
    ],
)
def test_failures_of_spark_itself(text: str, kind: type[PlaitError], named: str) -> None:
    found = why(RuntimeError(TRACE.format(error=text)))
    assert type(found) is kind and named in str(found)
    assert found.remedy


@pytest.mark.parametrize(
    "text",
    [
        "Checksum error: file:{at}/offsets/1 at 0 exp: 1 got: 2",
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] ... [checkpointLocation={at}, path=/x]",
        "batch 0 doesn't exist ... checkpointLocation={at}]",
        "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location file:{at} is in an",
        "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] ... {at}/state/0/_stateSchema/default",
    ],
)
def test_damage_is_looked_for_where_spark_says(tmp_path: Path, text: str) -> None:
    at = shutil.copytree(GOLDEN, tmp_path / "checkpoint")
    path = at / "offsets" / "1"
    path.write_bytes(path.read_bytes()[:100])
    found = why(RuntimeError(TRACE.format(error=text.format(at=at))))
    assert isinstance(found, CheckpointDamaged)
    assert str(found) == f"the checkpoint {_named(found)} is damaged: {path} is no JSON; {RESTORE}"


def test_damage_is_looked_for_where_it_is_said(tmp_path: Path) -> None:
    """Some errors of Spark name no place at all."""
    error = RuntimeError('java.lang.NumberFormatException: Error at index 1 in: "4r13"')
    assert why(error) is None
    at = shutil.copytree(GOLDEN, tmp_path / "check point")
    assert why(error, str(at)) is None, "it is whole: something else is wrong"
    (at / "metadata").write_text('{"id": ')
    found = why(error, str(at))
    assert isinstance(found, CheckpointDamaged) and "metadata is no JSON" in str(found)


def test_damage_elsewhere_is_told_as_spark_tells_it() -> None:
    for text, where in (
        ("Checksum error: hdfs://host/x/offsets/1 at 0", "hdfs://host/x/offsets/1"),
        ("[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred", "the checkpoint"),
    ):
        found = why(RuntimeError(text))
        assert isinstance(found, CheckpointDamaged)
        assert str(found) == f"Spark cannot read {where}; {RESTORE}"


def _named(found: PlaitError) -> str:
    return str(found).split()[2]


def test_what_is_not_known_is_not_guessed() -> None:
    assert why(RuntimeError("something else")) is None
    assert Running(cast(Any, Query(None))).why() is None


def test_causes_are_searched() -> None:
    try:
        try:
            raise OSError("No space left on device")
        except OSError as inner:
            raise RuntimeError("the query failed") from inner
    except RuntimeError as error:
        assert isinstance(why(error), StorageError)
