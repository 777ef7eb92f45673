"""Named points of a query on Spark at which parts of it are killed, and the orders to do so.

A *point* is a place in the life of a batch. A *task* point is reached by a Python worker on its way
through the operator. A *sink* point is reached by the worker of a further stage between operator
and sink. A *file* point is reached when the files of checkpoint and sink say so; a thread in the
driver looks for them. A *driver* point is reached by the driver's own code.

An *order* says: at this point, in this batch or later, kill this target with signal 9. It is a
file, and whoever moves it among the obeyed ones carries it out. So each order is obeyed once,
whichever processes race for it, and the record survives the process that wrote it.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

Target = Literal["worker", "executor", "driver", "query", "disk"]
"""A Python worker; the JVM that runs tasks; the whole driver; or something that kills no process:
the query is stopped and loses its batch, or the disk is full for a moment.

With a local master the executor's JVM is the driver's.
"""

PROCESSES: tuple[Target, ...] = ("worker", "executor", "driver")
"""The targets that are processes."""

Place = Literal["task", "sink", "file", "driver"]

LOCAL = "local[2,200]"
CLUSTER = "local-cluster[2,1,1024]"
MASTERS = (LOCAL, CLUSTER)


@dataclass(frozen=True, slots=True)
class Point:
    """A place in the life of a batch at which something can die."""

    name: str
    group: str
    place: Place
    about: str


POINTS: tuple[Point, ...] = (
    Point("task-begun", "operator", "task", "A task has begun; it has read and written nothing."),
    Point("packets-read", "operator", "task", "All packets of the batch have been read."),
    Point("results-begun", "operator", "task", "The first rows were handed to Spark."),
    Point("results-ended", "operator", "task", "The last row was handed over, all is written."),
    Point("segment-unwritten", "state", "task", "No segment of the batch is written yet."),
    Point("between-segments", "state", "task", "One segment is written, another is not."),
    Point("expired-unremoved", "state", "task", "A segment has expired and is still there."),
    Point("header-unwritten", "state", "task", "The segments are written, the header is not."),
    Point("header-written", "state", "task", "The header is written, the engine is not kept yet."),
    Point("manifest-unpublished", "arena", "task", "The manifest is written but not renamed."),
    Point("manifest-published", "arena", "task", "Others may take the engine already."),
    Point("report-unpublished", "control", "task", "The report is written but not renamed."),
    Point("report-published", "control", "task", "The report is there, the task has not ended."),
    Point("epoch-unpublished", "control", "driver", "An epoch is written but has no number yet."),
    Point("epoch-published", "control", "driver", "An epoch was decided, nobody has seen it."),
    Point("epoch-unadopted", "migration", "task", "A new epoch was seen, the old plan still runs."),
    Point("state-moving", "migration", "task", "States are handed over, others not recomputed."),
    Point("epoch-adopted", "migration", "task", "The new plan runs, or both do."),
    Point("track-running", "migration", "task", "A batch begins while two plans run in parallel."),
    Point("track-ended", "migration", "task", "The old plan has gone in this batch."),
    Point("plan-decided", "adaptive", "task", "The loop has decided to move, nothing is moved."),
    Point("plan-changed", "adaptive", "task", "The engine has the plan that the loop wanted."),
    Point("table-unpublished", "moves", "driver", "A routing table is written, it has no number."),
    Point("table-published", "moves", "driver", "A routing table is there, no batch goes by it."),
    Point("export-unpublished", "moves", "task", "Rows to move are written, nobody can see them."),
    Point("export-published", "moves", "task", "Rows to move are there, the batch has not ended."),
    Point("import-begun", "moves", "task", "Rows that have come are about to be read."),
    Point("rebalance-begun", "rebalance", "driver", "Nothing is written of a new division yet."),
    Point("processors-asked", "rebalance", "driver", "The number is there, the state is the old."),
    Point("state-dividing", "rebalance", "driver", "Spark is dividing the state anew."),
    Point("state-divided", "rebalance", "driver", "Spark has divided it, nobody has said so."),
    Point("rebalance-ended", "rebalance", "driver", "The state is divided and all logs say so."),
    Point("sink-begun", "sink", "sink", "The first rows have reached the sink's task."),
    Point("sink-ended", "sink", "sink", "All rows have, and the part file is still open."),
    Point("part-unlogged", "sink", "file", "Part files exist, the sink's log does not name them."),
    Point("sink-logged", "sink", "file", "The sink has the batch, the checkpoint does not say so."),
    Point("part-unwritten", "delta", "task", "No row is in a file of the Delta table yet."),
    Point("part-begun", "delta", "task", "Rows are in a file of the table, which has no end yet."),
    Point("part-written", "delta", "task", "A file of the table is whole, Spark does not know it."),
    Point("files-unlogged", "delta", "driver", "All files are there, the table's log lacks them."),
    Point("files-logged", "delta", "driver", "The table has the batch, Spark does not say so."),
    Point("checkpoint-begun", "commit", "file", "The checkpoint is there, no batch is planned."),
    Point("offsets-logged", "commit", "file", "A batch is planned; nothing of it is committed."),
    Point("state-logged", "commit", "file", "Some state of the batch is durable, the batch not."),
    Point("batch-committed", "commit", "file", "A batch is committed, the next is not planned."),
    Point("any-time", "random", "file", "Some time after a batch was planned."),
)
"""All points, in the order of a batch within each group."""

SITE_POINTS: tuple[Point, ...] = (
    Point("step-begun", "sites", "task", "A site has begun a step; it has written nothing."),
    Point("site-unsaved", "sites", "task", "A step is made, the header of the site is the old."),
    Point("site-saved", "sites", "task", "The header is written, the mail is not handed over."),
    Point("mail-handed-over", "sites", "task", "Spark has the mail of a step, no log names it."),
    Point("step-planned", "sites", "file", "A batch is planned, its mail is not logged."),
    Point("mail-logged", "sites", "file", "Others may read the mail, the batch is not committed."),
    Point("step-committed", "sites", "file", "A batch is committed, the next is not planned."),
)
"""The points of applications that run sites."""

BY_NAME = {point.name: point for point in POINTS + SITE_POINTS}

APART = ("delta", "rebalance")
"""Groups of points that take a round of their own to visit."""

SINKS = ("sink", "delta")
"""Groups of points that a round reaches only if it writes there: files, or a Delta table."""


def targets(point: Point, master: str) -> tuple[Target, ...]:
    """What can be killed at a point, the cheapest first.

    >>> targets(BY_NAME["task-begun"], LOCAL), targets(BY_NAME["sink-logged"], CLUSTER)
    (('worker', 'executor', 'driver'), ('driver', 'executor', 'query', 'disk'))
    """
    if point.place == "driver":
        return ("driver",)
    if point.place != "file":
        return ("worker", "executor", "driver")
    if point.name == "any-time":
        return ("worker", "executor", "driver", "query", "disk")
    if point.name == "checkpoint-begun":
        return ("driver",)
    return (
        ("driver", "query", "disk") if master == LOCAL else ("driver", "executor", "query", "disk")
    )


@dataclass(frozen=True, slots=True)
class Order:
    """To strike a target at a point, in this batch or a later one."""

    point: str
    target: Target
    batch: int = 0
    delay: float = 0.0
    """Seconds to wait, once the point is reached; for points in the driver's files."""


@dataclass(frozen=True, slots=True)
class Kill:
    """An order that was obeyed."""

    point: str
    target: Target
    batch: int
    pid: int


class Orders:
    """The orders of one round, in a folder that all its processes reach."""

    def __init__(self, folder: Path) -> None:
        self._waiting = folder / "orders"
        self._obeyed = folder / "kills"

    def give(self, orders: Iterable[Order]) -> None:
        """Add orders, before the query starts."""
        for folder in (self._waiting, self._obeyed):
            folder.mkdir(parents=True, exist_ok=True)
        for number, order in enumerate(orders):
            path = self._waiting / f"{order.point}~{number:03}"
            path.write_text(json.dumps(asdict(order)))

    def waiting(self, point: str | None = None) -> list[tuple[Path, Order]]:
        """The orders that nobody has obeyed yet, those of a point or all."""
        found = []
        for path in sorted(self._waiting.glob(f"{point or '*'}~*")):
            try:
                found.append((path, Order(**json.loads(path.read_text()))))
            except FileNotFoundError:
                continue  # somebody was faster
        return found

    def take(self, path: Path, batch: int, pid: int) -> bool:
        """Whether the order is the caller's to carry out; if so, it is recorded as obeyed."""
        try:
            path.rename(self._obeyed / f"{path.name}~{batch}~{pid}")
        except FileNotFoundError:
            return False
        return True

    def obey(self, point: str, batch: int, victim: Callable[[Target], int]) -> None:
        """Kill what the first order for this point and batch says, if there is one.

        `victim` finds the process of a target; a negative number is a process group.
        """
        for path, order in self.waiting(point):
            if order.batch <= batch:
                pid = victim(order.target)
                if self.take(path, batch, pid):
                    strike(pid)

    def kills(self) -> list[Kill]:
        """What was killed so far."""
        found = []
        for path in sorted(self._obeyed.glob("*~*")):
            order = Order(**json.loads(path.read_text()))
            batch, pid = path.name.split("~")[2:]
            found.append(Kill(order.point, order.target, int(batch), int(pid)))
        return found


def strike(pid: int) -> None:
    """Kill a process, or with a negative number its group, without giving it a chance."""
    if pid < 0:
        os.killpg(-pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGKILL)
