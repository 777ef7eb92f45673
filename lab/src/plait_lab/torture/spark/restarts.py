"""What happens to a query on Spark between two of its starts: another question, other processors.

A round has phases (`rounds.Phase`). When the input of one is used up, the driver goes on to the
next. It lets the files come and agrees to a question that has changed, as `plait query upgrade`
does. Where there are other processors it divides the state anew, as `plait query rebalance` does.
It may die at any point of that. Then it does all of it again, or starts the query although the
command did not end.
"""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from plait.errors import CheckpointMismatch, PlaitError
from plait.machine.drafts import write_whole
from plait.spark.balance import rebalance
from plait.spark.checkpoint.upgrades import agree, refused_changes
from plait_lab.torture.spark.inputs import release
from plait_lab.torture.spark.killpoints import BY_NAME, Orders
from plait_lab.torture.spark.rounds import Round
from plait_lab.torture.spark.worker import obey

_DIVIDING = 0.5
"""Seconds after which a driver dies at the latest that is to die while Spark divides the state."""


def enter(session: SparkSession, round_: Round) -> None:
    """Prepare what the phase of a round needs; nothing, if that is done already."""
    number = round_.phase()
    if not number:
        return
    before, now = round_.phases[number - 1], round_.phases[number]
    if before.processors != now.processors:
        _divide(session, round_, number, now.processors)
    release(round_.folder, number)


def leave(round_: Round) -> None:
    """Go on to the next phase, or say that the round is done."""
    following = round_.phase() + 1
    if following < len(round_.phases):
        write_whole(round_.folder / "phase", str(following))
    else:
        (round_.folder / "done").touch()


def with_agreement(round_: Round, made: Callable[[], Any]) -> Any:
    """What a function makes, after somebody has agreed to the question if that was refused."""
    try:
        return made()
    except CheckpointMismatch:
        if not round_.phase():
            raise
        for control, change in refused_changes(str(round_.folder / "checkpoint")).values():
            agree(control, change)
        return made()


def _divide(session: SparkSession, round_: Round, number: int, processors: int) -> None:
    """Change the number of processors, unless that was done, or was interrupted and is left so."""
    begun, ended = (round_.folder / f"{name}-{number}" for name in ("dividing", "divided"))
    if ended.exists():
        return
    more = [o for _, o in Orders(round_.folder).waiting() if BY_NAME[o.point].group == "rebalance"]
    leaves_it = random.Random(f"{round_.folder.name} {number}").random() < 0.5
    if begun.exists() and not more and leaves_it:
        ended.write_text("interrupted")
        return
    if not any((round_.folder / "checkpoint" / "plait").glob("*/reports")):
        ended.write_text("no processor has run yet")
        return
    begun.touch()
    output = None if round_.delta else round_.folder / "out"
    obey("rebalance-begun")
    try:
        with _mortal():
            rebalance.rebalance(session, str(round_.folder / "checkpoint"), processors, output)
    except PlaitError as error:
        _fail(round_.folder, f"plait query rebalance refused: {error}")
    obey("rebalance-ended")
    ended.touch()


def _fail(folder: Path, text: str) -> None:
    with (folder / "failed").open("a") as log:
        log.write(f"{text}\n---\n")


@contextlib.contextmanager
def _mortal() -> Iterator[None]:
    """Die around the steps of a division, if there is an order to."""
    module = rebalance.__dict__
    ask, repartition = module["request_partitions"], module["_repartition"]

    def mortal_ask(*given: Any) -> None:
        ask(*given)
        obey("processors-asked")

    def mortal_repartition(*given: Any) -> None:
        soon = threading.Timer(random.uniform(0.0, _DIVIDING), obey, ["state-dividing"])
        soon.daemon = True
        soon.start()
        repartition(*given)
        soon.cancel()
        obey("state-divided")

    steps = {"request_partitions": mortal_ask, "_repartition": mortal_repartition}
    module.update(steps)
    try:
        yield
    finally:
        module.update({"request_partitions": ask, "_repartition": repartition})
