from __future__ import annotations

import pytest

from plait.errors import (
    CheckpointMismatch,
    MemoryExceeded,
    MissingRequirement,
    PlaitError,
    SourceError,
    StorageError,
)
from plait.runtime.spark.why import why

TRACE = """[STREAM_FAILED] Query [id = 1] terminated with exception: Job aborted.
org.apache.spark.api.python.PythonException: Traceback (most recent call last):
  File "worker.py", line 1, in main
    process()
{error}

	at org.apache.spark.api.python.BasePythonRunner(PythonRunner.scala:1)
SQLSTATE: XXKST"""


class Query:
    """What `why` asks of a streaming query."""

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
    for failed in (wrapped, Query(wrapped)):
        found = why(failed)
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
        ("java.io.IOException: No space left on device", StorageError, "last batch"),
        ("/x/offsets: Read-only file system", StorageError, "/x/offsets: Read-only"),
    ],
)
def test_failures_of_spark_itself(text: str, kind: type[PlaitError], named: str) -> None:
    found = why(RuntimeError(TRACE.format(error=text)))
    assert type(found) is kind and named in str(found)
    assert found.remedy


def test_what_is_not_known_is_not_guessed() -> None:
    assert why(RuntimeError("something else")) is None
    assert why(Query(None)) is None


def test_causes_are_searched() -> None:
    try:
        try:
            raise OSError("No space left on device")
        except OSError as inner:
            raise RuntimeError("the query failed") from inner
    except RuntimeError as error:
        assert isinstance(why(error), StorageError)
