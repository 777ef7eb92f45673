"""Run the driver's background tasks: one daemon thread polls the tasks of all joins.

*Invariants.* A task that fails is released, logged once for each new reason and tried again later.
Neither the query nor the other tasks notice.
"""

from __future__ import annotations

import logging
import time
from threading import Lock as Mutex
from threading import Thread
from typing import Protocol, TypeVar

from plait.errors import PlaitError
from plait.machine.clock import REAL

LOG = logging.getLogger("plait")

SHORTEST, _LONGEST = 0.1, 1.0
"""Seconds between two polls of a task: while it finds work, and while it finds none."""


class BackgroundTask(Protocol):
    """Work that is done while a query runs."""

    def turn(self) -> bool:
        """Do what there is to do; whether there was something."""

    def release(self) -> None:
        """Release the locks, so that another process can do the work."""


Task = TypeVar("Task", bound=BackgroundTask)


class ScheduledTask:
    """A task, the pause until its next turn, and what it means if the task fails."""

    def __init__(self, task: BackgroundTask, failure: str, pause: float = SHORTEST) -> None:
        self.task = task
        self.due = 0.0
        self._failure = failure
        self._least = self._pause = pause
        self._logged = ""

    def run(self, now: float) -> None:
        """Give the task a turn; it waits longer while it finds nothing to do."""
        worked = False
        try:
            worked = self.task.turn()
        except Exception as error:  # whatever it is, the query and the other tasks go on
            self.task.release()
            reason = str(error) if isinstance(error, PlaitError | OSError) else repr(error)
            if reason != self._logged:
                LOG.warning("%s: %s", self._failure, reason)
            self._logged = reason
        self._pause = self._least if worked else max(self._least, min(2 * self._pause, _LONGEST))
        self.due = now + self._pause


class BackgroundThread:
    """A thread that runs while there are tasks; each is known by its folder and its type."""

    def __init__(self) -> None:
        self._tasks: dict[tuple[str, type[BackgroundTask]], ScheduledTask] = {}
        self._change = Mutex()
        self._thread: Thread | None = None

    def start(self, folder: str, scheduled: ScheduledTask) -> None:
        """Run a task from now on, instead of the one of its type for the same folder."""
        key = (folder, type(scheduled.task))
        with self._change:
            before = self._tasks.pop(key, None)
            if before is not None:
                before.task.release()
            self._tasks[key] = scheduled
            if self._thread is None:
                self._thread = Thread(target=self._run, name="plait-background", daemon=True)
                self._thread.start()

    def stop(self, folder: str) -> None:
        """End the tasks of a control directory."""
        with self._change:
            for key in [key for key in self._tasks if key[0] == folder]:
                self._tasks.pop(key).task.release()

    def task(self, folder: str, kind: type[Task]) -> Task | None:
        """The running task of that type for a control directory."""
        found = self._tasks.get((folder, kind))
        return found.task if found is not None and isinstance(found.task, kind) else None

    def _run(self) -> None:
        while True:
            with self._change:
                now = REAL.wall()
                for scheduled in [s for s in self._tasks.values() if s.due <= now]:
                    scheduled.run(now)
                if not self._tasks:
                    self._thread = None
                    return
                due = min(scheduled.due for scheduled in self._tasks.values())
            time.sleep(max(due - REAL.wall(), SHORTEST))


THREAD = BackgroundThread()
"""That of this process."""
