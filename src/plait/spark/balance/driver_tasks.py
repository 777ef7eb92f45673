"""Start the background tasks of a join in the driver: its service, and balancing."""

from __future__ import annotations

from plait.spark.balance.balancer import BalanceTask
from plait.spark.control.background import SHORTEST, THREAD, ScheduledTask
from plait.spark.control.driver_files import QUESTION, question_of
from plait.spark.control.driver_service import DriverService
from plait.spark.control.joins import RegisteredJoin

_REMOTE = 5.0
"""Seconds between two polls of a remote store, where each one takes some requests."""


def start_tasks(join: RegisteredJoin) -> None:
    """Start the tasks of a join, instead of those of a join made before it for the same directory.

    Where groups stay, moves under way still end.
    """
    control = join.control
    THREAD.stop(control.folder)
    if not control.shared:
        return
    if control.remote:  # nothing can be added to a file there, so no history is kept
        control.write_later(QUESTION, question_of(join).to_json())
    else:
        service = ScheduledTask(DriverService(join), "the history of batches is not kept")
        THREAD.start(control.folder, service)
    if join.routing.by is not None and join.routing.processors > 1:
        pause = _REMOTE if control.remote else SHORTEST
        task = BalanceTask(join, join.balance)
        THREAD.start(
            control.folder, ScheduledTask(task, "partition groups stay where they are", pause)
        )
