"""Another number of processors for a query that has stopped.

Spark keeps the number of state partitions for the life of a checkpoint, but it can divide the state
of a stopped query anew, as one more batch without rows. What processors there are then, and which
groups move, is decided when the query is started again: see `rebalanced`.

The file sink keeps a log of its batches, and neither reads nor continues one that has a gap. So the
batch without rows is added to it.

*Recovery.* Wherever this is interrupted, the query may be started, and its results are right. To
complete it, it is run again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from plait.errors import CheckpointMismatch, MoveError, PlaitError
from plait.hosts.spark.balance import THREAD
from plait.hosts.spark.checkpoint import is_checkpoint, readable, stored_contracts
from plait.hosts.spark.control import Control, controls_in
from plait.hosts.spark.damage import local_path
from plait.hosts.spark.locks import lock_on
from plait.hosts.spark.partitions import SETTING
from plait.hosts.spark.rebalanced import ask
from plait.hosts.spark.requirements import check_spark
from plait.node.transfer import Transfer
from plait.tuning import USUAL

_SINK_LOG = "_spark_metadata"
_LOG_VERSION = 1


class _Stopped(NamedTuple):
    """Where a query has stopped."""

    batch: int
    partitions: int


def rebalance(
    session: SparkSession, checkpoint: str, processors: int, output: Path | None
) -> tuple[int, int]:
    """Let a stopped query go on with so many processors; how many there were, and the last batch.

    `output` is the folder that it writes to, if it writes files with Spark's own sink. What is
    refused changes nothing.
    """
    check_spark(session.version)
    path = checked_place(checkpoint)
    _check_stopped(session, path)
    with _held(controls := controls_in(path)):
        _check_questions(list(stored_contracts(session, checkpoint)))
        stopped = _stopped(path)
        if output is not None:
            _check_output(output, stopped.batch)
        for control in controls:
            ask(control, processors)
        last = stopped.batch
        if stopped.partitions != processors:
            for control in controls:
                _prepare(control, last + 1)
            _repartition(session, checkpoint, processors)
            last += 1
        if output is not None:
            _log_empty_batch(session, output, last)
    return stopped.partitions, last


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
            f"no join has reported in {path}, because it was not told its checkpoint, so its "
            "groups cannot move",
            remedy="let the query run for a batch with to_df(checkpoint=...)",
        )
    return path


@contextmanager
def _held(controls: list[Control]) -> Iterator[None]:
    """While no query moves groups there."""
    with ExitStack() as stack:
        for control in controls:
            THREAD.leave(control)  # of a query that this process has stopped
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


def _stopped(path: Path) -> _Stopped:
    begun, ended = (_newest(path / log) for log in ("offsets", "commits"))
    if begun != ended:
        raise MoveError(
            f"the query was stopped in the middle of batch {begun}",
            remedy="start it once more with trigger(availableNow=True), and let it end",
        )
    # Spark has read it already, for the contracts: it is whole.
    lines = (path / "offsets" / str(begun)).read_text(encoding="utf-8").splitlines()
    return _Stopped(begun, int(json.loads(lines[1])["conf"][SETTING]))


def _newest(log: Path) -> int:
    return max((int(e.name) for e in log.iterdir() if e.name.isdecimal()), default=-1)


def _repartition(session: SparkSession, checkpoint: str, partitions: int) -> None:
    try:
        with readable(checkpoint) as place:
            session._streamingCheckpointManager.repartition(place, partitions)
    except PySparkException as error:
        raise PlaitError(
            f"Spark cannot divide the state of {checkpoint} anew: {error}",
            remedy="nothing is lost: start the query as before, or try again",
        ) from error


def _prepare(control: Control, batch: int) -> None:
    """Make a batch without rows do no harm to moves of groups.

    A table may not hold for this batch alone, because processors go from each to the next. And of
    groups that are on their way, processors export what comes with every batch: here it is nothing.
    If Spark runs a batch of this number after all, they write over it.
    """
    table = control.tables.at(batch - 1)
    control.tables.delay(batch)
    for move in () if table is None else table.under_way:
        for sender in move.senders if move.protocol == "MSLB" else ():
            raw = Transfer(move.number, sender, batch, False, {}).to_bytes()
            control.transfers.write(move.number, sender, batch, raw)


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


def _log_empty_batch(session: SparkSession, output: Path, batch: int) -> None:
    """Add a batch without files to the sink's log, if it is not there."""
    jvm, gateway = session.sparkContext._jvm, session.sparkContext._gateway
    assert jvm is not None and gateway is not None, "the session is a classic one"
    sinks = jvm.org.apache.spark.sql.execution.streaming.sinks
    folder = f"file:{output.absolute()}/{_SINK_LOG}"  # no URI: Spark would not decode it
    nothing = getattr(jvm.scala, "None$")  # a name that Python cannot write
    log = sinks.FileStreamSinkLog(
        _LOG_VERSION, session._jsparkSession, folder, getattr(nothing, "MODULE$")
    )
    log.add(batch, gateway.new_array(sinks.SinkFileStatus, 0))
