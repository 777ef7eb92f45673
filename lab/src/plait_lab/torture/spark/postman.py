"""A network between applications that run sites on Spark, which does what networks do.

The mail that an application writes (`plait.sites.spark.mail`) is copied into a second folder, which
the others read instead, with a log like that of Spark's file sink. On the way files are lost for
good, repeated, delayed, overtaken by others, damaged for a moment, and dated by clocks that are
wrong by a month.

    box/mail/APPLICATION/         what an application has sent
    relay/APPLICATION/            what comes out of the network
"""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Literal, NamedTuple
from urllib.parse import urlparse
from urllib.request import url2pathname

from plait.sites.spark.mailboxes import LOG

Fault = Literal["lost", "repeated", "delayed", "damaged", "wrong clock"]
FAULTS: tuple[Fault, ...] = ("lost", "repeated", "delayed", "damaged", "wrong clock")

_LOOK = 0.05
_LATEST = 3.0
"""Seconds that a file is delayed at most."""
_DAMAGED = 1.0
"""Seconds after which a damaged file is mended."""
_MONTH = 30 * 86_400
_TAIL = 12
"""Bytes at the end of a Parquet file that tell where its footer is."""


class Letter(NamedTuple):
    """A file that is on its way."""

    due: float
    application: str
    path: Path
    name: str
    """What it is called where it arrives."""
    clock: float
    """Seconds by which the clock of the sender is wrong."""


class Postman(threading.Thread):
    """Delivers mail from one folder to the other until it is told to stop."""

    def __init__(self, folder: Path, seed: str, often: float, faults: tuple[Fault, ...]) -> None:
        super().__init__(daemon=True)
        self._mail, self._relay = folder / "box" / "mail", folder / "relay"
        self._rests = folder / "network-rests"
        self._chance = Random(seed)
        self._often, self._faults = often, faults
        self._seen: set[Path] = set()
        self._waiting: list[Letter] = []
        self._mending: list[tuple[float, Path, Path]] = []
        self._sent: Counter[str] = Counter()
        self._end = threading.Event()
        self.faults: Counter[Fault] = Counter()

    def run(self) -> None:
        """Look for mail, and deliver what is due."""
        while not self._end.wait(_LOOK):
            self.look(time.monotonic())

    def stop(self) -> None:
        """Deliver no more."""
        self._end.set()
        self.join()

    def look(self, now: float) -> None:
        """Take in what was sent, deliver what is due, mend what was damaged.

        While nothing is on its way, there is a file that says so.
        """
        for log in sorted(self._mail.glob(f"*/{LOG}/[0-9]*")):
            if log not in self._seen:
                self._seen.add(log)
                self._take_in(log, now)
        due = [letter for letter in self._waiting if letter.due <= now]
        self._waiting = [letter for letter in self._waiting if letter.due > now]
        self._chance.shuffle(due)
        for letter in due:
            self._deliver(letter)
        for when, origin, target in list(self._mending):
            if when <= now:
                _copy(origin, target)
                self._mending.remove((when, origin, target))
        if self._waiting or self._mending:
            self._rests.unlink(missing_ok=True)
        else:
            self._rests.touch()

    def _take_in(self, log: Path, now: float) -> None:
        """Decide what becomes of each file of a batch."""
        application = log.parent.parent.name
        for line in log.read_text().splitlines()[1:]:
            named = Path(url2pathname(urlparse(json.loads(line)["path"]).path))
            path = log.parent.parent / named.parent.name / named.name
            if not path.parent.name.startswith("box=to-"):
                continue
            fault = None
            if self._faults and self._chance.random() < self._often:
                fault = self._chance.choice(self._faults)
                self.faults[fault] += 1
            clock = self._chance.choice((-_MONTH, _MONTH)) if fault == "wrong clock" else 0
            delay = self._chance.uniform(0.5, _LATEST) if fault == "delayed" else 0.0
            letter = Letter(now + delay, application, path, path.name, clock)
            if fault != "lost":
                self._waiting.append(letter)
            if fault == "repeated":
                again = self._chance.uniform(0.0, _LATEST)
                self._waiting.append(letter._replace(due=now + again, name=f"again-{path.name}"))
            if fault == "damaged":
                target = self._relay / application / path.parent.name / path.name
                self._mending.append((now + _DAMAGED, path, target))

    def _deliver(self, letter: Letter) -> None:
        """Put a file where others read it, and name it in the log."""
        root = self._relay / letter.application
        target = root / letter.path.parent.name / letter.name
        target.parent.mkdir(parents=True, exist_ok=True)
        damaged = any(target == other for _, _, other in self._mending)
        _copy(letter.path, target, damaged=damaged)
        when = time.time() + letter.clock
        os.utime(target, (when, when))
        entry = {
            "path": target.as_uri(),
            "size": target.stat().st_size,
            "isDir": False,
            "modificationTime": round(1000 * when),
            "blockReplication": 1,
            "blockSize": 33_554_432,
            "action": "add",
        }
        number = self._sent[letter.application]
        self._sent[letter.application] += 1
        (root / LOG).mkdir(exist_ok=True)
        draft = root / LOG / f".{number}"
        draft.write_text("v1\n" + json.dumps(entry))
        draft.rename(root / LOG / str(number))


def _copy(origin: Path, target: Path, *, damaged: bool = False) -> None:
    """Copy a file in one step, as it is or with zeros instead of its footer."""
    draft = target.with_name(f".{target.name}")
    shutil.copyfile(origin, draft)
    if damaged:
        with draft.open("r+b") as file:
            file.seek(-_TAIL, os.SEEK_END)
            file.write(bytes(_TAIL))
    os.replace(draft, target)
