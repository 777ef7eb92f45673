"""The process that runs the applications of a join over sites while parts of it die on order.

    python -m plait_lab.torture.spark.site_driver MASTER HOME

Each line of standard input is the folder of a round (see `sites`). Its applications run, one
file of each stream after the other comes, and when all is at rest the results are written to a
folder of each application; then the file `done` appears. When this process is killed, whoever
started it starts another one and names the folder again.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import plait
from plait.machine.drafts import write_whole
from plait.sites.spark import join as sites_module
from plait.sites.spark.join import PlacedJoin
from plait.sites.spark.mail import Mailbox
from plait.sites.spark.mailboxes import LOG
from plait_lab.torture.spark.driver import newest, session_for
from plait_lab.torture.spark.killpoints import BY_NAME, Orders, strike
from plait_lab.torture.spark.site_worker import MortalSiteOperator
from plait_lab.torture.spark.sites import SiteRound, read_site_round
from plait_lab.torture.spark.worker import Mortal, arm

_SCHEMA = "k BIGINT, id BIGINT, ts TIMESTAMP"
_LOOK = 0.01
_MOST_FAILURES = 40
"""How often applications may fail in one process before that is given up."""
_AT_REST = 0.5
"""Seconds without a batch anywhere after which a step is over."""


def placed_join(session: SparkSession, round_: SiteRound) -> PlacedJoin:
    """The join of a round."""
    names = round_.streams

    def frame(name: str) -> DataFrame:
        reader = session.readStream.schema(_SCHEMA).option("maxFilesPerTrigger", 1)
        return reader.parquet(str(round_.folder / "feeds" / name))

    asked = (
        plait.join(**{name: frame(name) for name in names})
        .time(**dict.fromkeys(names, "ts"))
        .watermark("30 seconds")
        .on(*(f"{a}.k = {b}.k" for a, b in pairwise(names)))
        .within("6 seconds")
        .select(*(f"{name}.id AS {name}" for name in names))
    )
    return plait.sites.place(
        asked,
        at={site: list(streams) for site, streams in round_.at.items()},
        latency=0.005,
        rate=128_000,
        results=round_.results,
        tuning=round_.tuning,
    )


class _Relay(Mailbox):
    """What comes out of the network."""

    def mail(self, application: str) -> Path:
        """What an application has sent, as far as it has come."""
        return self.folder / "relay" / application


@contextmanager
def _relayed(folder: Path) -> Iterator[None]:
    """Read mail from where the network delivers it."""
    stream = Mailbox.stream

    def relayed(
        self: Mailbox, session: SparkSession, application: str, *, lossy: bool = False
    ) -> DataFrame:
        del self
        relay = _Relay(folder)
        relay.prepare([application])
        return stream(relay, session, application, lossy=lossy)

    type.__setattr__(Mailbox, "stream", relayed)
    try:
        yield
    finally:
        type.__setattr__(Mailbox, "stream", stream)


class Killer(threading.Thread):
    """Kills the driver at the points that the files of an application tell."""

    def __init__(self, round_: SiteRound) -> None:
        super().__init__(daemon=True)
        self._folder = round_.folder
        self._orders = Orders(round_.folder)
        self._waiting = [w for w in self._orders.waiting() if BY_NAME[w[1].point].place == "file"]
        self._end = threading.Event()

    def run(self) -> None:
        """Look again and again."""
        starter = os.getppid()
        while not self._end.wait(_LOOK):
            if os.getppid() != starter:  # whoever wanted to know is gone
                strike(-os.getpgrp())
            for path, order in self._waiting:
                batch = self._reached(order.point)
                if batch >= order.batch and self._orders.take(path, batch, -os.getpgrp()):
                    strike(-os.getpgrp())

    def stop(self) -> None:
        """The round is done."""
        self._end.set()
        self.join()

    def _reached(self, point: str) -> int:
        """The batch of some application that is at this point, -1 if none is."""
        for place in self._folder.glob("checkpoint-*"):
            application = place.name.removeprefix("checkpoint-")
            planned, committed = newest(place / "offsets"), newest(place / "commits")
            logged = newest(self._folder / "box" / "mail" / application / LOG)
            here = (
                "step-committed"
                if planned == committed
                else "mail-logged"
                if logged >= planned
                else "step-planned"
            )
            if here == point:
                return planned
        return -1


class Applications:
    """The applications of a round in this process."""

    def __init__(self, session: SparkSession, round_: SiteRound) -> None:
        self._folder = round_.folder
        placed = placed_join(session, round_)
        self.parts = [placed.site(name) for name in round_.at] if round_.divided else [placed]
        self._queries: dict[str, StreamingQuery] = {}
        self._failed = 0

    def keep_running(self) -> None:
        """Start those that are not running; note why one has ended."""
        for part in self.parts:
            query = self._queries.get(part.application)
            if query is not None and query.isActive:
                continue
            if query is not None:
                self._note(query.exception())
            where = self._folder / f"checkpoint-{part.application}"
            with _relayed(self._folder):
                self._queries[part.application] = part.start(
                    mailbox=self._folder / "box", checkpoint=where
                )

    def _note(self, error: PySparkException | None) -> None:
        with (self._folder / "failed").open("a") as log:
            log.write(f"{str(error)[:2000]}\n---\n")
        self._failed += 1
        if self._failed > _MOST_FAILURES:
            raise RuntimeError(f"applications failed {self._failed} times")

    def rest(self) -> None:
        """Wait until no application has run a batch for a while."""
        before, since = -1, time.monotonic()
        while time.monotonic() - since < _AT_REST or not (self._folder / "network-rests").exists():
            self.keep_running()
            for query in self._queries.values():
                with suppress(PySparkException):  # it has failed, and is started again
                    query.processAllAvailable()
            now = sum(1 for _ in self._folder.glob("checkpoint-*/[oc]*/*"))
            if now != before:
                before, since = now, time.monotonic()
            time.sleep(0.1)

    def stop(self) -> None:
        for query in self._queries.values():
            query.stop()


def run(session: SparkSession, round_: SiteRound) -> None:
    """Let one file after the other come, then write what came out."""
    folder = round_.folder
    mortal = Mortal(str(folder), os.getpgrp(), None)
    arm(mortal)
    sites_module.__dict__["SiteOperator"] = functools.partial(MortalSiteOperator, mortal=mortal)
    with (folder / "starts").open("a") as log:
        log.write(f"{os.getpid()}\n")
    killer = Killer(round_)
    killer.start()
    applications = Applications(session, round_)
    while (step := round_.step()) < round_.steps:
        round_.release(step)
        applications.rest()
        write_whole(folder / "step", str(step + 1))
    applications.stop()
    killer.stop()
    for part in applications.parts:
        where = folder / f"found-{part.application}"
        writer: Any = part.to_df(folder / "box").writeStream.format("parquet")
        writer = writer.option("checkpointLocation", str(where / "checkpoint"))
        writer.trigger(availableNow=True).start(str(where / "out")).awaitTermination()
    (folder / "done").touch()


def main(master: str, home: Path) -> None:
    """Run the rounds that are named on standard input."""
    session = session_for(master, home)
    # The network writes its own log, which is never compacted.
    session.conf.set("spark.sql.streaming.fileSink.log.compactInterval", "1000000")
    for line in sys.stdin:
        run(session, read_site_round(Path(line.strip())))
    session.stop()


if __name__ == "__main__":
    # Under its own name, so that workers import what they are sent and do not get a copy of it.
    from plait_lab.torture.spark import site_driver  # noqa: PLW0406  # see above

    try:
        site_driver.main(sys.argv[1], Path(sys.argv[2]))
    except BaseException:
        traceback.print_exc()
        os._exit(1)  # its JVM may be dead, and then there is nobody to say goodbye to
