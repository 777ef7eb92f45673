"""`plait rebalance`: another number of processors for a query that has stopped."""

from __future__ import annotations

import tempfile
from pathlib import Path

import plait
from plait.cli.show import say
from plait.errors import MissingRequirement


def rebalance(checkpoint: str, processors: int, output: str) -> None:
    """Divide the state of a stopped query anew."""
    from plait.spark.environment import java
    from plait.spark.environment.connect import refuse_remote

    refuse_remote("plait rebalance")
    if problem := java.missing():
        raise MissingRequirement(problem, remedy="install a Java runtime, version 17 or 21")
    from plait.spark.balance.rebalance import checked_place
    from plait.spark.balance.rebalance import rebalance as divide

    checked_place(checkpoint)  # before Spark starts, which takes some seconds
    with tempfile.TemporaryDirectory(prefix="plait-rebalance-") as scratch:
        log = Path(scratch) / "spark.log"
        say("starting Spark ...")
        session = plait.spark.session(name="plait rebalance", scratch=Path(scratch), log=log)
        try:
            say(f"dividing the state into {processors} partitions ...")
            before, last = divide(
                session, checkpoint, processors, None if output == "none" else Path(output)
            )
        finally:
            session.stop()
    done = (
        f"the state has {processors} partitions already"
        if before == processors
        else f"the state had {before} partitions and has {processors} since batch {last}"
    )
    say(f"{done}; start the query again, and its groups move while it runs")
