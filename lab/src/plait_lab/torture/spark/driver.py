"""The process that runs queries on Spark while parts of them die on order.

    python -m plait_lab.torture.spark.driver MASTER HOME
    python -m plait_lab.torture.spark.driver pyspark.worker

Each line of standard input is the folder of a round (see `rounds`). Its query is run until
all input is used up; then the file `done` appears there. When this process is killed, whoever
started it starts another one and names the folder again. The second form is the daemon that Spark
starts for its Python workers.

What dies in the workers is in `worker`. A thread in here looks at the files of checkpoint and
sink, kills when they say that a point is reached, and changes plans. Both modules import pyspark,
so they run in processes of their own.
"""

from __future__ import annotations

import contextlib
import functools
import os
import random
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # the name everybody uses
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import IntegerType

from plait.errors import MigrationError, PlaitError
from plait.groups.balance.policy import BalancePolicy
from plait.groups.routing.packets import lean
from plait.query.query import Stream
from plait.spark.balance.moves import Moves
from plait.spark.control import joins
from plait.spark.environment.session import LOCAL as LOCAL_DISK
from plait.spark.environment.session import SETTINGS
from plait.spark.io.delta_table import create_delta
from plait.spark.io.write_delta import start_delta, table_schema
from plait.spark.join import frame
from plait.spark.join.aside import LATE_COLUMN
from plait.spark.join.options import JoinOptions
from plait.spark.join.schemas import spark_schema
from plait_lab.laws.golden import CHANGELOG
from plait_lab.torture.spark.inputs import KEPT
from plait_lab.torture.spark.killpoints import BY_NAME, LOCAL, Order, Orders, Target, strike
from plait_lab.torture.spark.other_writer import Neighbour, age
from plait_lab.torture.spark.restarts import enter, leave, with_agreement
from plait_lab.torture.spark.rounds import Round, read_round, warm
from plait_lab.torture.spark.worker import (
    Mortal,
    MortalCommits,
    MortalOperator,
    arm,
    mortal_sink,
    obey,
    parent,
    publishes,
)

_PATIENCE = "200"
"""How often a task may fail, which is more than a round has orders."""

_MODULE = "plait_lab.torture.spark.driver"

_MOST_FAILURES = 30
"""How often a query may fail in one driver before that is given up."""

_MOST_STUCK = 3
"""How often it may fail in a row without getting any further."""

_WORKER = b"pyspark.worker"
"""What Spark's daemon for Python workers has among its arguments."""

_LOOK = 0.004
"""Seconds between two looks at the files of a checkpoint."""

_WRITING = 0.8
"""Seconds that writing a routing table is supposed to take: less, so that moves go faster."""

_EAGER = BalancePolicy(
    margin=0.0, least=0.0, least_bytes=0.0, payback=0.0, confirm=1, rest=0.0, trial=0.0, backoff=0.0
)
"""Moves groups at every occasion."""

_FULL_SECONDS = 0.4
"""How long a full disk stays full."""


class Files:
    """What the files of checkpoint and sink say about a query."""

    def __init__(self, folder: Path) -> None:
        self._checkpoint = folder / "checkpoint"
        self._out = folder / "out"
        self._old_parts: tuple[int, set[str]] = (-1, set())

    def planned(self) -> int:
        """The newest batch that was planned, -1 before the first."""
        return newest(self._checkpoint / "offsets")

    def committed(self) -> int:
        """The newest batch that was committed, -1 before the first."""
        return newest(self._checkpoint / "commits")

    def reached(self, point: str) -> int | None:
        """The batch that is at this point, None if none is."""
        planned, committed = self.planned(), self.committed()
        if point == "checkpoint-begun":
            return 0 if planned < 0 and self._checkpoint.exists() else None
        if point == "batch-committed":
            return planned if planned == committed >= 0 else None
        if planned <= committed or not self._is_at(point, planned):
            return None
        return planned

    def _is_at(self, point: str, batch: int) -> bool:
        """Whether a batch that is under way is at this point."""
        if point == "any-time":
            return True
        if newest(self._out / "_spark_metadata") >= batch:
            return point == "sink-logged"
        if point == "part-unlogged":
            return self._has_parts(batch)
        return point == ("state-logged" if self._has_state(batch) else "offsets-logged")

    def _has_state(self, batch: int) -> bool:
        """Whether some store has a version that only this batch can have written."""
        begins = (f"{batch + 1}.", f"{batch + 1}_")
        for _, _, names in os.walk(self._checkpoint / "state" / "0"):
            if any(name.startswith(begins) for name in names):
                return True
        return False

    def _has_parts(self, batch: int) -> bool:
        """Whether there are part files that were not there when the batch was first seen."""
        names = {n for n in _names(self._out) if n.startswith("part-")}
        if self._old_parts[0] != batch:
            self._old_parts = (batch, names)
        return bool(names - self._old_parts[1])


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []


def newest(folder: Path) -> int:
    """The highest number in a log of Spark's."""
    names = (name.removesuffix(".compact") for name in _names(folder))
    return max((int(name) for name in names if name.isdigit()), default=-1)


class Watcher(threading.Thread):
    """Kills at the points that files tell, and changes plans, while a query runs."""

    def __init__(self, session: SparkSession, round_: Round, query: StreamingQuery | None) -> None:
        super().__init__(daemon=True)
        self._jvm = _jvm(session)
        self._master = round_.master
        self._orders = Orders(round_.folder)
        self._files = Files(round_.folder)
        # Nobody else obeys these.
        self._waiting = [w for w in self._orders.waiting() if BY_NAME[w[1].point].place == "file"]
        self._changes = round_.changes()
        self._mover = Mover(round_) if round_.moves else None
        self._due: dict[Path, float] = {}
        self._full_until: float | None = None
        self._end = threading.Event()
        self.query = query
        self.stopped = False
        """Whether the query was stopped on order."""

    def run(self) -> None:
        """Look again and again."""
        starter = os.getppid()
        while not self._end.wait(_LOOK):
            if os.getppid() != starter:  # whoever wanted to know is gone
                strike(-os.getpgrp())
            if self._full_until is not None and time.monotonic() > self._full_until:
                self._limit_files(resource.RLIM_INFINITY)
            now = max(0, self._files.planned())
            for path, order in [w for w in self._waiting if w[1].batch <= now]:
                self._consider(path, order)
            if self.query is not None and self._changes:
                self._migrate(self.query)
            if self.query is not None and self._mover is not None:
                self._mover.look(self.query, self._files.committed())

    def progress(self) -> int:
        """A number that grows while the query gets on, or something happens to it."""
        return self._files.committed() + len(self._orders.kills())

    def stop(self) -> None:
        """The query has ended."""
        self._end.set()
        self.join()
        if self._full_until is not None:
            self._limit_files(resource.RLIM_INFINITY)

    def _consider(self, path: Path, order: Order) -> None:
        batch = self._files.reached(order.point)
        if batch is None or batch < order.batch:
            self._due.pop(path, None)
            return
        if time.monotonic() < self._due.setdefault(path, time.monotonic() + order.delay):
            return
        # While the JVM stands still, what the files say stays true.
        os.kill(self._jvm, signal.SIGSTOP)
        try:
            if self._files.reached(order.point) == batch:
                self._kill(path, order, batch)
        finally:
            os.kill(self._jvm, signal.SIGCONT)
        if self.stopped and self.query is not None and self.query.isActive:
            self.query.stop()

    def _kill(self, path: Path, order: Order, batch: int) -> None:
        found = self._victims(order.target)
        if not found or not self._orders.take(path, batch, found[0]):
            return
        self._waiting.remove((path, order))
        if order.target == "query":
            self.stopped = True
        elif order.target == "disk":
            self._limit_files(random.choice((0, 1, 100, 1 << 12, 1 << 16)))
            self._full_until = time.monotonic() + _FULL_SECONDS
        else:
            strike(found[0])

    def _limit_files(self, size: int) -> None:
        """Let no file of Spark's processes grow beyond a size: as if the disk ended there."""
        for pid in (self._jvm, *_descendants(self._jvm)):
            with contextlib.suppress(OSError):
                _, most = resource.prlimit(pid, resource.RLIMIT_FSIZE)
                resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, most))
        self._full_until = None

    def _victims(self, target: Target) -> list[int]:
        if target == "query":
            return [0] if self.query is not None else []
        if target == "disk":
            return [self._jvm]
        if target == "driver" or (target == "executor" and self._master == LOCAL):
            return [-os.getpgrp()]
        below = _descendants(self._jvm)
        if target == "executor":
            found = [p for p in below if b"CoarseGrainedExecutorBackend" in _command(p)]
        else:
            python = {p for p in below if _WORKER in _command(p)}  # the daemon, and its forks
            found = [p for p in python if below[p] in python]
        random.shuffle(found)
        return found

    def _migrate(self, query: StreamingQuery) -> None:
        """Change the plan, when enough batches are committed."""
        path, change = self._changes[0]
        if change.batch > self._files.committed() or not query.isActive:
            return
        try:
            with publishes("epoch-unpublished"):
                if change.plan is None:
                    joins.release(query)
                else:
                    joins.migrate(query, change.plan, change.strategy)
        except (MigrationError, PySparkException):
            return  # it has not reported yet, or has just ended
        path.unlink(missing_ok=True)
        del self._changes[0]
        obey("epoch-published")


class Mover:
    """Moves partition groups for no reason, and keeps to the protocols."""

    def __init__(self, round_: Round) -> None:
        self._streams = len(round_.query.streams)
        self._seen = -1
        self._first = True

    def look(self, query: StreamingQuery, committed: int) -> None:
        """After each batch: let moves go on, begin one, or give one up."""
        if committed <= self._seen or not query.isActive:
            return
        self._seen = committed
        try:
            join = joins.find_join(str(query.id), None)
            if join is None or join.routing.by is None:
                return
            moves = Moves(join.routing, join.control, str(query.id), writing=_WRITING)
            active = sorted(join.active or range(join.routing.processors))
            self._move(moves, join.control.reports(str(query.id)).last_begun(), active)
        except (PlaitError, PySparkException, OSError):
            return  # it has not reported yet, or has just ended, or its disk is full

    def _move(self, moves: Moves, begun: int, everyone: Sequence[int]) -> None:
        table = moves.advance()
        if table.since > begun:
            return  # one after the other
        if table.under_way:
            if random.random() < 0.1:
                moves.give_up(random.choice(table.under_way).number)
            return
        group = random.randrange(len(table.places))
        same = [g for g, place in enumerate(table.places) if place == table.places[group]]
        groups = random.sample(same, random.randint(1, len(same)))
        if len(everyone) < 2:
            return
        if self._first:  # so that every round with enough batches has rows that move
            self._first = False
            moves.begin(groups, [next(p for p in everyone if (p,) != table.places[group])])
        elif random.random() < 0.3:
            receivers = random.sample(everyone, 2)
            moves.begin(groups, receivers, spread=random.randrange(self._streams))
        else:
            ptlb = len(table.places[group]) == 1 and random.random() < 0.4
            moves.begin(groups, [random.choice(everyone)], "PTLB" if ptlb else "MSLB")


def _jvm(session: SparkSession) -> int:
    gateway: Any = session.sparkContext._gateway
    return int(gateway.proc.pid)


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _descendants(pid: int) -> dict[int, int]:
    """The processes below one, each with its parent."""
    parents = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError):
                parents[int(name)] = parent(int(name))
    found: dict[int, int] = {}
    layer = {pid}
    while layer:
        layer = {child for child, parent in parents.items() if parent in layer}
        found |= {child: parents[child] for child in layer}
    return found


def run(session: SparkSession, round_: Round) -> None:
    """Run a query until all of its input is used up, starting it again when it fails."""
    mortal = Mortal(str(round_.folder), os.getpgrp(), round_.lies)
    arm(mortal)  # for the points in the driver's own code
    failed = stuck = reached = 0
    neighbour = Neighbour(round_.folder / "out") if round_.neighbours else None
    while not (round_.folder / "done").exists():
        with (round_.folder / "starts").open("a") as log:
            log.write(f"{os.getpid()}\n")
        watcher = Watcher(session, round_, None)
        watcher.start()
        try:
            enter(session, round_)
            watcher.query = with_agreement(round_, lambda: _started(session, round_, mortal))
            if neighbour is not None and neighbour.ident is None:
                neighbour.start()  # now there is a table
            watcher.query.awaitTermination()
        except PySparkException as failure:
            with (round_.folder / "failed").open("a") as log:
                log.write(f"{str(failure)[:2000]}\n---\n")
            failed += 1
            stuck = stuck + 1 if watcher.progress() == reached else 0
            reached = watcher.progress()
            if failed > _MOST_FAILURES or stuck > _MOST_STUCK:
                raise
            continue
        finally:
            watcher.stop()
        if not watcher.stopped:
            leave(round_)
    if neighbour is not None and neighbour.ident is not None:
        neighbour.stop()


def _started(session: SparkSession, round_: Round, mortal: Mortal) -> StreamingQuery:
    number = round_.phase()
    query = round_.phases[number].query
    # `results` makes its operator by this name.
    frame.__dict__["JoinOperator"] = functools.partial(MortalOperator, mortal=mortal)
    session.conf.set("spark.sql.shuffle.partitions", str(round_.processors))
    # The golden checkpoints are small because they are logs of changes.
    session.conf.set(CHANGELOG, str(round_.upgrade is not None).lower())
    checkpoint = str(round_.folder / "checkpoint")
    table = str(round_.folder / "out") if round_.delta else None
    options = JoinOptions(
        plan=round_.plan,
        processors=None if number else round_.processors,
        late=True,
        checkpoint=checkpoint if round_.shared else None,
        policy=round_.policy,
        tuning=round_.tuning,
        table=table,
        balance=_EAGER if round_.balance else None,
    )
    streams = {s.name: _stream(session, round_, s) for s in query.streams}
    found: DataFrame = frame.results(query, streams, options)
    if table is not None:
        commits = MortalCommits(table, table_schema(lean(query), LATE_COLUMN))
        create_delta(table, commits.schema)
        if round_.neighbours:
            age(Path(table), commits.schema)
        return start_delta(found, commits, checkpoint, None, {"availableNow": True})
    if round_.labelled:
        found = found.withColumn("phase", F.lit(number))
    if round_.staged:
        found = found.mapInArrow(mortal_sink(mortal), found.schema)
    writer = found.writeStream.format("parquet").option("path", str(round_.folder / "out"))
    return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True).start()


def _stream(session: SparkSession, round_: Round, stream: Stream) -> DataFrame:
    schema, place = spark_schema(stream.schema), str(round_.folder / "in" / stream.name)
    reader = session.readStream.option("maxFilesPerTrigger", max(1, round_.files))
    if not round_.files:
        return reader.schema(schema).parquet(place)
    found = reader.schema(schema.add(KEPT, IntegerType())).parquet(place)
    return found.where(F.col(KEPT) == 1).drop(KEPT)


def session_for(master: str, home: Path) -> SparkSession:
    # These JVMs die young, so what pays off late only costs. Whoever is killed leaves temporary
    # files behind: Java's libraries, for instance.
    java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.io.tmpdir={tempfile.gettempdir()}"
    settings: dict[str, bool | float | int | str | None] = {
        **SETTINGS,
        **(LOCAL_DISK if master == LOCAL else {}),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.executor.memory": "1g",
        "spark.driver.extraJavaOptions": java,
        "spark.executor.extraJavaOptions": java,
        "spark.local.dir": str(home / "local"),
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.python.daemon.module": _MODULE,
        "spark.sql.codegen.wholeStage": "false",
        # Deaths are what this is about: none of them may end the application.
        "spark.task.maxFailures": _PATIENCE,
        "spark.stage.maxConsecutiveAttempts": _PATIENCE,
        "spark.deploy.maxExecutorRetries": "-1",
    }
    builder = SparkSession.builder.master(master).appName("torture").config(map=settings)
    session: SparkSession = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def daemon() -> None:
    """Spark's daemon, which forks workers, with everything imported and compiled beforehand.

    Otherwise each worker would spend seconds on that after each death of another one.
    """
    from pyspark.daemon import manager

    warm()
    manager()


def main(master: str, home: Path) -> None:
    """Run the rounds that are named on standard input."""
    session = session_for(master, home)
    for line in sys.stdin:
        run(session, read_round(Path(line.strip())))
    session.stop()


if __name__ == "__main__":
    # Under its own name, so that workers import what they are sent and do not get a copy of it.
    from plait_lab.torture.spark import driver  # noqa: PLW0406  # see above

    try:
        if sys.argv[1].encode() == _WORKER:
            driver.daemon()
        else:
            driver.main(sys.argv[1], Path(sys.argv[2]))
    except SystemExit:  # how the daemon's workers end
        raise
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # its JVM may be dead, and then there is nobody to say goodbye to
