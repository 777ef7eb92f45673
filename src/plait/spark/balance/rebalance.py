"""Change the number of processors of a stopped query.

Spark keeps the number of state partitions for the life of a checkpoint, but it can divide the state
of a stopped query anew, as one more batch without rows. What processors there are then, and which
groups move, is decided when the query is started again: see `processor_set`.

The file sink keeps a log of its batches, and neither reads nor continues one that has a gap. So the
batch without rows is added to it.

*Recovery.* The batch is written in this order:

    plait/rebalance.json      the folder that the query writes to
    offsets/N                 the offsets of the batch before it, with the new number of partitions
    plait/JOIN/               the new number
    OUTPUT/_spark_metadata/N  a batch without files
    state/, commits/N         the state, divided by Spark

Before `offsets/N` is there, nothing has happened. From then on Spark starts no query on the
checkpoint until the batch is committed, and takes the batch for a repartition of its own that
failed, which it tries again. So whoever comes next, this command or the start of the query, goes
on from `offsets/N`: each later write may be repeated. When the batch is committed, all of it is
written.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import CheckpointMismatch, MoveError, PlaitError
from plait.machine.drafts import write_whole
from plait.machine.sealed import sealed, unsealed
from plait.spark.balance.processor_set import request_partitions
from plait.spark.checkpoint.damage import local_path
from plait.spark.checkpoint.stored_state import is_checkpoint, readable, stored_contracts
from plait.spark.control.background import THREAD
from plait.spark.control.directory import Control, controls_in
from plait.spark.control.driver_files import SINK
from plait.spark.control.locks import lock_on
from plait.spark.environment.connect import is_connect
from plait.spark.environment.partitions import SETTING
from plait.spark.environment.requirements import check_spark
from plait.spark.environment.settings import INTERVAL, store_in_rocksdb
from plait.tuning import USUAL

_SINK_LOG = "_spark_metadata"
_LOG_VERSION = 1
_NO_OUTPUT = "none"


class _Batch(NamedTuple):
    """The newest batch of a query."""

    number: int
    partitions: int


def rebalance(
    session: SparkSession, checkpoint: str, processors: int, output: Path | None
) -> tuple[int, int]:
    """Give a stopped query another number of processors; returns the old number and the last batch.

    `output` is the folder that it writes to, if it writes files with Spark's own sink. What is
    refused changes nothing. One that was interrupted is finished first.
    """
    check_spark(session.version)
    path = checked_place(checkpoint)
    _check_stopped(session, path)
    with _held(controls := controls_in(path)):
        if (unfinished := _unfinished(path)) is not None:
            told = _read_output(path, unfinished.number)
            _finish(session, checkpoint, unfinished, output or _folder(told))
        _check_questions(list(stored_contracts(session, checkpoint)))
        last = _last(path)
        if output is not None:
            _check_output(output, last.number)
        if last.partitions != processors:
            batch = _begin(path, last, processors, output)
            _finish(session, checkpoint, batch, output)
            return last.partitions, batch.number
        for control in controls:
            request_partitions(control, processors)
        if output is not None:
            _log_empty_batch(session, path, output, last.number)
    return last.partitions, last.number


def finish_rebalance(session: SparkSession, checkpoint: str) -> None:
    """Finish what an interrupted `plait query rebalance` has begun, before a query starts."""
    path = local_path(checkpoint)
    if path is None or (unfinished := _unfinished(path)) is None:
        return
    number, partitions = unfinished
    given = _read_output(path, number)
    if given is None or is_connect(session):
        raise MoveError(
            f"plait query rebalance was interrupted in batch {number} of {checkpoint}",
            remedy=f"run it again: plait query rebalance {checkpoint} --processors {partitions} "
            f"--sink {given or 'DIR'}",
        )
    with _held(controls_in(path)):
        if _unfinished(path) == unfinished:
            store_in_rocksdb(session)
            _finish(session, checkpoint, unfinished, _folder(given))


def checked_place(checkpoint: str) -> Path:
    """The folder of a checkpoint, if its groups can move."""
    path = local_path(checkpoint)
    if path is None:
        raise MoveError(
            f"{checkpoint} is not in the file system of this machine, and groups move only where "
            "driver and executors share a folder",
            remedy="start the query with a new checkpoint and another number of processors",
        )
    if not is_checkpoint(path):
        raise CheckpointMismatch(
            f"{path} is not the checkpoint of a query that has run",
            remedy="name its checkpointLocation",
        )
    if not controls_in(path):
        raise MoveError(
            f"no join has reported in {path}: no batch with input has run there, or the query was "
            "not told its checkpoint, so its groups cannot move",
            remedy="let the query run for a batch with to_df(checkpoint=...)",
        )
    return path


@contextmanager
def _held(controls: list[Control]) -> Iterator[None]:
    """Hold the locks of a checkpoint, so that no query moves groups there."""
    with ExitStack() as stack:
        for control in controls:
            THREAD.stop(control.folder)  # of a query that this process has stopped
            lock = lock_on(control)
            try:
                lock.take()
            except MoveError:
                raise MoveError(
                    f"the query of {Path(control.folder).parents[1]} runs in another process, or "
                    "did a moment ago",
                    remedy="stop it, and end its driver or wait for a minute",
                ) from None
            stack.callback(lock.release)
        yield


def _check_stopped(session: SparkSession, path: Path) -> None:
    number = json.loads((path / "metadata").read_text(encoding="utf-8"))["id"]
    if any(str(query.id) == number for query in session.streams.active):
        raise MoveError(f"the query of {path} is running", remedy="stop it first")


def _check_questions(contracts: list[str]) -> None:
    """Refuse a join whose groups do not move."""
    for text in contracts:
        if max(json.loads(text)["shares"], default=1) < USUAL.groups:
            raise MoveError(
                "the streams of this query share no key, so its groups are cells of a hypercube, "
                "which do not move",
                remedy="start the query with a new checkpoint and another number of processors",
            )


def _last(path: Path) -> _Batch:
    """The batch at which a query has stopped."""
    begun, ended = (_newest(path / log) for log in ("offsets", "commits"))
    if begun != ended:
        raise MoveError(
            f"the query was stopped in the middle of batch {begun}",
            remedy="start it once more with trigger(availableNow=True), and let it end",
        )
    return _Batch(begun, _partitions(path, begun))  # Spark has read it: it is whole


def _newest(log: Path) -> int:
    return max((int(e.name) for e in log.iterdir() if e.name.isdecimal()), default=-1)


def _partitions(path: Path, batch: int) -> int:
    """The number of partitions that the state has in a batch that was begun."""
    lines = (path / "offsets" / str(batch)).read_text(encoding="utf-8").splitlines()
    return int(json.loads(lines[1])["conf"][SETTING])


# -- the batch without rows


def _begin(path: Path, last: _Batch, partitions: int, output: Path | None) -> _Batch:
    """Log the offsets of a batch without rows, as Spark's repartition does.

    Spark itself logs offsets and commit in one call, and the sink's log has to be between them.
    """
    batch = _Batch(last.number + 1, partitions)
    place = _NO_OUTPUT if output is None else str(output.absolute())
    write_whole(_request(path), sealed({"batch": batch.number, "output": place}))
    log = path / "offsets"
    version, told, *offsets = (log / str(last.number)).read_text(encoding="utf-8").splitlines()
    fields = json.loads(told)
    fields["conf"][SETTING] = str(partitions)
    # Two batches of one time look like copies of each other.
    fields["batchTimestampMs"] = max(time.time_ns() // 10**6, fields["batchTimestampMs"] + 1)
    # Assumption: no-query-on-half-a-repartition
    write_whole(log / str(batch.number), "\n".join([version, json.dumps(fields), *offsets]))
    return batch


def _unfinished(path: Path) -> _Batch | None:
    """The batch without rows that was begun and is not committed, if there is one."""
    try:
        begun, ended = (_newest(path / log) for log in ("offsets", "commits"))
        if not begun > ended >= 0:
            return None
        before, now = (_partitions(path, number) for number in (begun - 1, begun))
    except (OSError, ValueError, LookupError, TypeError):
        return None  # no checkpoint, or a damaged one, which is for others to say
    return _Batch(begun, now) if before != now else None


def _finish(session: SparkSession, checkpoint: str, batch: _Batch, output: Path | None) -> None:
    """Write all that belongs to the batch, and commit it."""
    path = checked_place(checkpoint)
    if output is not None:
        _check_output(output, batch.number)
    for control in controls_in(path):
        request_partitions(control, batch.partitions)
    if output is not None:
        _log_empty_batch(session, path, output, batch.number)
    _repartition(session, checkpoint, batch.partitions)
    _request(path).unlink(missing_ok=True)


def _repartition(session: SparkSession, checkpoint: str, partitions: int) -> None:
    try:
        with readable(checkpoint) as place:
            session._streamingCheckpointManager.repartition(place, partitions)
    except PySparkException as error:
        raise PlaitError(
            f"Spark cannot divide the state of {checkpoint} anew: {error}",
            remedy="nothing is lost: run plait query rebalance again, or start the query",
        ) from error


def _request(path: Path) -> Path:
    return path / "plait" / "rebalance.json"


def _read_output(path: Path, batch: int) -> str | None:
    """The output of the query as the interrupted command was told it; None if nothing tells."""
    try:
        told = unsealed(_request(path).read_text(encoding="utf-8"))
        return str(told["output"]) if told["batch"] == batch else None
    except (OSError, ValueError, KeyError, PlaitError):
        return None


def _folder(told: str | None) -> Path | None:
    return None if told in (None, _NO_OUTPUT) else Path(told)


# -- Spark's file sink


def _check_output(output: Path, last: int) -> None:
    """Refuse a folder that is not what the last batch wrote to."""
    try:
        names = [entry.name.removesuffix(".compact") for entry in (output / _SINK_LOG).iterdir()]
    except OSError:
        names = []
    newest = max((int(name) for name in names if name.isdecimal()), default=-1)
    if newest not in (last, last - 1):  # an interrupted run has not added its batch
        found = f"the last batch there is {newest}" if newest >= 0 else "no file sink writes there"
        raise MoveError(
            f"{output} is not the output of this query, whose last batch is {last}: {found}",
            remedy="name the folder that the query writes to, or none if it writes elsewhere",
        )


@contextmanager
def _interval(session: SparkSession, path: Path) -> Iterator[None]:
    """Let the session compact logs as often as the query's does: that decides their names."""
    before = session.conf.get(INTERVAL) or ""
    for control in controls_in(path, SINK):
        told = unsealed(Path(control.folder, SINK).read_text(encoding="utf-8"))
        session.conf.set(INTERVAL, int(told["interval"]))
    try:
        yield
    finally:
        session.conf.set(INTERVAL, before)


def _log_empty_batch(session: SparkSession, path: Path, output: Path, batch: int) -> None:
    """Add a batch without files to the sink's log, if it is not there."""
    jvm, gateway = session.sparkContext._jvm, session.sparkContext._gateway
    assert jvm is not None and gateway is not None, "the session is a classic one"
    sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
    folder = f"file:{output.absolute()}/{_SINK_LOG}"  # no URI: Spark would not decode it
    nothing = getattr(jvm.scala, "None$")  # a name that Python cannot write
    with _interval(session, path):
        # Assumption: sink-log-has-no-gaps
        log = sinks.FileStreamSinkLog(
            _LOG_VERSION, session._jsparkSession, folder, getattr(nothing, "MODULE$")
        )
        log.add(batch, gateway.new_array(sinks.SinkFileStatus, 0))
