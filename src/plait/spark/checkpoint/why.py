"""Explain why a query on Spark failed, as one of Plait's errors.

An error in a task reaches the user inside Spark's exception, below Java's stack traces. `why`
takes it out again, and knows those failures of Spark itself whose cause is not in their text.
"""

from __future__ import annotations

import re

from plait import errors
from plait.errors import (
    CheckpointDamaged,
    CheckpointMismatch,
    MissingRequirement,
    PlaitError,
    SourceError,
    StorageError,
)
from plait.spark.checkpoint.damage import RESTORE, damaged, find_damage, local_path

_RAISED = re.compile(r"plait\.errors\.(\w+): (.+)")

_KNOWN: tuple[tuple[str, type[PlaitError], str, str], ...] = (
    (
        r"Redefining watermark is disallowed",
        SourceError,
        "an input has a watermark below an operator with state, so the results cannot have another",
        "define the watermark on the results only, or on the input only",
    ),
    (
        r"driver worker exited unexpectedly",
        MissingRequirement,
        "Spark's Python worker could not start the stateful operator",
        "install protobuf and pandas in the Python of the driver and of the executors",
    ),
    (
        r"No module named 'plait",
        MissingRequirement,
        "the executors' Python does not have Plait",
        "install it there, or ship it with spark.submit.pyFiles",
    ),
    (
        r"JAVA_GATEWAY_EXITED|UnsupportedClassVersionError",
        MissingRequirement,
        "Java did not start, or is too old for this Spark",
        "install Java 17 or newer, and let JAVA_HOME name its directory",
    ),
    (
        r"STATE_STORE_(KEY|VALUE)_SCHEMA_NOT_COMPATIBLE|STATEFUL_OPERATOR_NOT_MATCH_IN_STATE"
        r"|INVALID_VARIABLE_TYPE_CHANGE|STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
        CheckpointMismatch,
        "the state in the checkpoint was written by other operators",
        "start this query with a new checkpoint location, or ask the old question",
    ),
    (
        r"supported log version|UNSUPPORTED_LOG_VERSION|UnsupportedLogVersion",
        CheckpointMismatch,
        "the checkpoint was written by a newer version of Spark",
        "run the query with that version, or begin with a new checkpoint location",
    ),
    (
        r"STREAMING_UNFINISHED_REPARTITION_DETECTED",
        CheckpointMismatch,
        "plait query rebalance was interrupted while it divided the state in the checkpoint",
        "run plait query rebalance again, or start the query with to_df(checkpoint=...), which "
        "does it",
    ),
    (
        r"CONCURRENT_STREAM_LOG_UPDATE",
        CheckpointMismatch,
        "another query writes to the same checkpoint",
        "stop it, or give each query a checkpoint location of its own",
    ),
    (
        r"(Timed out while waiting for the Python worker to|Python worker failed to) connect back",
        MissingRequirement,
        "Spark's Python workers did not start in time: the machine is too busy",
        "start the query again when there is room: it goes on from the last batch; "
        "plait.spark.doctor(spark) says whether workers could start faster",
    ),
)

_STORAGE = re.compile(
    r"[^\n]*(No space left on device|Disk quota exceeded|Read-only file system"
    r"|Permission denied|Mkdirs failed)[^\n]*"
)


_ABOUT_CHECKPOINTS = re.compile(
    r"Checksum error|CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT_|CONCURRENT_STREAM_LOG_UPDATE"
    r"|STATE_STORE_|STDS_|INVALID_VARIABLE_TYPE_CHANGE|batch \d+ doesn't exist|does(n't| not) exist"
    r"|[Ll]og file|log version|NumberFormat|JsonParse|JsonEOF|MappingException|RocksDBException"
    r"|ZipException|EOFException|[Cc]orrupt|NoSuchElement|NullPointer|MatchError|BufferUnderflow"
)
"""What Spark says when it cannot read its own files, or those it was given to read."""

_CERTAINLY = re.compile(
    r"Checksum error: (?P<file>\S+)|CANNOT_LOAD_STATE_STORE|STREAMING_CHECKPOINT_MISSING"
)

_LOCATIONS = (
    re.compile(r"checkpointLocation=([^,\]\n]+)"),
    re.compile(r"Checkpoint location (\S+) is"),
    re.compile(r"(?:file:)?(/[^\s'\"\[\]=]*?)/(?:offsets|commits|sources|state)/"),
    re.compile(r"file:(/[^\s'\"\[\]=]*?)/metadata\b"),
)


def why(error: BaseException, checkpoint: str | None = None) -> PlaitError | None:
    """Find the cause of an exception of Spark: the error of Plait behind it, or None.

        except PySparkException as error:
            raise plait.spark.why(error) or error

    If Spark could not read the checkpoint, its files are searched for damage; where Spark does not
    say where the checkpoint is, give its location. `plait.attach(query).why()` asks the same of a
    query.

    >>> why(RuntimeError("...\\nplait.errors.SourceError: no rows; look\\n at java..."))
    SourceError('no rows; look')
    >>> why(RuntimeError("java.io.IOException: No space left on device"))
    StorageError('the disk refused what a batch had to write: java.io.IOException: No space ...
    """
    if isinstance(error, PlaitError):
        return error
    text = _text(error)
    if raised := _RAISED.search(text):
        return _again(raised[1], raised[2].strip())
    about_checkpoints = _ABOUT_CHECKPOINTS.search(text) is not None
    if about_checkpoints and (found := _damage(text, checkpoint)):
        return found
    for pattern, kind, message, remedy in _KNOWN:
        if re.search(pattern, text):
            return kind(message, remedy=remedy)
    if refused := _STORAGE.search(text):
        return StorageError(
            f"the disk refused what a batch had to write: {refused[0].strip()}",
            remedy="make room, or make the directory writable, and start the query again: "
            "it goes on from the last batch that was committed",
        )
    if certain := _CERTAINLY.search(text):
        where = certain["file"] or "the checkpoint"
        return CheckpointDamaged(f"Spark cannot read {where}", remedy=RESTORE)
    return None


def _damage(text: str, checkpoint: str | None) -> CheckpointDamaged | None:
    """What is damaged in the checkpoint that was given, or in those that an error names."""
    named = [found[1] for pattern in _LOCATIONS for found in pattern.finditer(text)]
    for location in dict.fromkeys([checkpoint] if checkpoint else named):
        path = local_path(location)
        if path is not None and (path / "offsets").is_dir() and find_damage(path) is not None:
            return damaged(location)
    return None


def _text(error: BaseException) -> str:
    """Everything an exception and its causes say; the messages of Spark, with their traces."""
    parts, seen = [], set[int]()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        parts += [str(current), str(getattr(current, "_stackTrace", "") or "")]
        current = getattr(current, "_cause", None) or current.__cause__
    return "\n".join(parts)


def _again(name: str, message: str) -> PlaitError:
    """An error of this type, whatever its constructor asks for."""
    kind = getattr(errors, name, PlaitError)
    error: PlaitError = kind.__new__(kind)
    PlaitError.__init__(error, message)
    return error
