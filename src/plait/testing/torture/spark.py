"""A campaign of kills on Spark: random queries whose parts die on order, again and again.

A *round* is a random query over random data, in batches of Parquet files, with a plan that changes
while it runs, and orders to kill Python workers, executors and drivers at named points (see
`killpoints`, `spark_rounds`). A driver process (`spark_driver`) runs it and is started again
whenever it dies, until all input is used up. What the sink then has must be what the definition
says: each result and each row set aside, once. Only files that the sink's own log names count, as
for any reader of it.

The same seed repeats the same rounds. Which task reaches a point first is up to the machine, and
must not matter. A round that fails keeps its folder.

There is one driver for each kind of master, and both run at the same time: a local one, in which
tasks die and are repeated within one JVM, and a cluster on this machine with two executors.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pyarrow.parquet as pq

from plait.errors import MissingRequirement
from plait.testing.fates import LATE, NO_TIME, NULL_KEY, set_aside
from plait.testing.oracle import Result, multiset, oracle, split_late
from plait.testing.torture.killpoints import MASTERS, POINTS, Kill, Orders
from plait.testing.torture.spark_rounds import Story, random_story, write_story

_MOST_IDLE = 4
"""Drivers in a row that may end without a kill or a batch, before a round is given up."""

_LONGEST_SECONDS = 900.0
"""How long a driver may go without any progress before the round is given up."""

_LOOK = 0.05
_TOURS = 3
"""Rounds at the beginning that visit the points that were not reached so far."""

# --- what came out --------------------------------------------------------------------------------


def sink_files(out: Path) -> list[Path]:
    """The files that the sink's log names; what else is in the folder was left by tasks that died.

    The log has a file per batch, and now and then one with everything so far.
    """
    names = [p.name for p in (out / "_spark_metadata").glob("[0-9]*")]
    compact = [int(n.removesuffix(".compact")) for n in names if n.endswith(".compact")]
    last = max(compact, default=-1)
    later = sorted(int(n) for n in names if n.isdigit() and int(n) > last)
    found = []
    for name in [*([f"{last}.compact"] if compact else []), *map(str, later)]:
        version, *lines = (out / "_spark_metadata" / name).read_text().splitlines()
        assert version == "v1", f"a log of version {version}"
        found += [Path(url2pathname(urlparse(json.loads(line)["path"]).path)) for line in lines]
    return found


def check(story: Story) -> tuple[int, list[str]]:
    """How many results there are, and in what they differ from the definition."""
    query, out = story.round.query, story.round.folder / "out"
    tables = [pq.read_table(path) for path in sink_files(out)]
    on_time, _ = split_late(query, story.batches)
    wanted = oracle(query, on_time)
    results: Counter[Result] = Counter()
    aside: Counter[tuple[object, object]] = Counter()
    reasons: dict[tuple[object, object], str] = {}
    for table in tables:
        is_result = table.column("late").is_null()
        results += multiset(table.filter(is_result).drop_columns(["late"]).cast(query.schema))
        for row in table.column("late").drop_null().to_pylist():
            which = row["stream"], row[row["stream"]]["id"]
            aside[which] += 1
            reasons[which] = row["reason"]
    found = []
    if results != wanted:
        missing, surplus = wanted - results, results - wanted
        found.append(
            f"{missing.total()} results lost: {missing.most_common(3)}; "
            f"{surplus.total()} repeated or wrong: {surplus.most_common(3)}"
        )
    expected = {
        (name, row["id"]): reason
        for name, rows in set_aside(query, story.batches).items()
        for reason in (NO_TIME, NULL_KEY, LATE)
        for row in rows[reason]
    }
    if aside != Counter(dict.fromkeys(expected, 1)):
        lost = [which for which in expected if which not in aside]
        extra = [which for which, n in aside.items() if n > 1 or which not in expected]
        found.append(f"rows set aside: {len(lost)} lost {lost[:3]}, {len(extra)} extra {extra[:3]}")
    found += [
        f"row {which} is set aside as {reason!r} instead of {expected[which]!r}"
        for which, reason in reasons.items()
        if which in expected and reason != expected[which]
    ]
    return results.total(), found


def migrations(folder: Path) -> int:
    """How many changes of plan the processors reported, refused ones aside."""
    seen = set()
    for path in folder.glob("checkpoint/plait/*/reports/*/*-*.json"):
        report = json.loads(path.read_text())
        for m in report["migrations"]:
            if not m.get("refused"):
                seen.add((report["processor"], m["start"], json.dumps(m["new"], sort_keys=True)))
    return len(seen)


# --- drivers --------------------------------------------------------------------------------------


class Driver:
    """Runs rounds in a process of its own, which is started again whenever it dies."""

    def __init__(self, master: str, home: Path) -> None:
        self.master = master
        self.home = home
        self.starts = 0
        self._process: subprocess.Popen[bytes] | None = None
        self.closed = False
        (home / "tmp").mkdir(parents=True, exist_ok=True)

    def run(self, folder: Path) -> str:
        """Run a round until it is done; what went wrong, or nothing."""
        idle = 0
        while not self.closed:
            process = self._process or self._start()
            assert process.stdin is not None
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(f"{folder}\n".encode())
                process.stdin.flush()
            before = seen = _progress(folder)
            since = time.monotonic()
            while process.poll() is None and not (folder / "done").exists():
                time.sleep(_LOOK)
                if (now := _progress(folder)) != seen:
                    seen, since = now, time.monotonic()
                if time.monotonic() - since > _LONGEST_SECONDS:
                    self.end()
                    return f"nothing happened for {_LONGEST_SECONDS:.0f} s"
            if (folder / "done").exists():
                return ""
            self.end()
            idle = 0 if _progress(folder) != before else idle + 1
            if idle >= _MOST_IDLE:
                log = (self.home / "log").read_text(errors="replace")
                return f"{idle} drivers ended without getting anywhere: {log[-1000:]}"
        return "the campaign was ended"

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with (self.home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "plait.testing.torture.spark_driver",
                    self.master,
                    str(self.home),
                ],
                cwd=self.home,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ
                | {
                    "PYSPARK_PYTHON": sys.executable,
                    "SPARK_LOCAL_IP": "127.0.0.1",
                    "SPARK_HOME": str(_spark_home(self.home)),
                    "TMPDIR": str(self.home / "tmp"),
                },
            )
        return self._process

    def close(self) -> None:
        """Kill the process for good, also if it is running a round."""
        self.closed = True
        self.end()

    def end(self) -> None:
        """Kill the process and all that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.close()


def _progress(folder: Path) -> int:
    """A number that grows while a round gets on."""
    return sum(1 for part in ("kills", "checkpoint/commits") for _ in folder.glob(f"{part}/*"))


def _spark_home(home: Path) -> Path:
    """An installation of Spark that is the one of this environment, by links.

    A cluster on this machine writes the files of its executors below the installation.
    """
    found = home / "spark"
    package = find_spec("pyspark")
    if package is None or not package.submodule_search_locations:
        raise MissingRequirement(
            "pyspark is not installed", remedy="install it: pip install 'plait[spark]'"
        )
    if not found.exists():
        found.mkdir()
        for entry in Path(package.submodule_search_locations[0]).iterdir():
            if entry.name != "work":
                (found / entry.name).symlink_to(entry)
    return found


# --- the campaign ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Tally:
    """What a campaign did and found."""

    queries: int = 0
    rows: int = 0
    results: int = 0
    migrations: int = 0
    kills: dict[str, int] = field(default_factory=dict)
    """By point."""
    starts: int = 0
    """Of queries; more than there are queries, because they are started again."""
    failures: list[str] = field(default_factory=list)
    targets: dict[str, int] = field(default_factory=dict)
    """Kills by what was killed."""

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.queries + other.queries,
            self.rows + other.rows,
            self.results + other.results,
            self.migrations + other.migrations,
            dict(Counter(self.kills) + Counter(other.kills)),
            self.starts + other.starts,
            self.failures + other.failures,
            dict(Counter(self.targets) + Counter(other.targets)),
        )


def run_story(story: Story, driver: Driver) -> Tally:
    """Run a round to its end and compare; a failure says why and names the folder."""
    folder = story.round.folder
    write_story(story)
    trouble = driver.run(folder)
    results, found = (0, [trouble]) if trouble else check(story)
    found += _suspicious(folder)
    kills = [k for k in Orders(folder).kills() if k.target != "query"]
    return Tally(
        1,
        sum(len(rows) for batch in story.batches for rows in batch.values()),
        results,
        migrations(folder),
        dict(Counter(k.point for k in kills)),
        len((folder / "starts").read_text().split()) if (folder / "starts").exists() else 0,
        [f"{what} (see {folder})" for what in found],
        dict(Counter(_label(driver.master, k) for k in kills)),
    )


def _label(master: str, kill: Kill) -> str:
    return f"{kill.target} of {master.partition('[')[0]}"


def _suspicious(folder: Path) -> list[str]:
    """Failures of tasks and of the query that deaths around them do not explain."""
    found = []
    for name, expected in (("errors", _IN_TASKS), ("failed", _OF_QUERIES)):
        text = (folder / name).read_text() if (folder / name).exists() else ""
        for entry in filter(None, text.split("\n---\n")):
            if not any(word in entry for word in expected):
                found.append(f"not by a kill ({name}): {entry[-1000:]}")
    return found


_IN_TASKS = ("EOFError", "ConnectionResetError", "BrokenPipeError", "ConnectionRefusedError")
"""What a worker says whose JVM has died."""

_OF_QUERIES = ("failed to connect back", "SparkContext", "Connection re")
"""What a query says whose JVM is about to go, or whose machine is too busy to start a process."""


def campaign(seconds: float, seed: int, say: Callable[[str], None]) -> Tally:
    """Run rounds for so long, those that have begun to their ends."""
    home = Path(tempfile.mkdtemp(prefix="plait-torture-"))
    until = time.monotonic() + seconds
    lock = threading.Lock()
    total = Tally()
    good: list[Path] = []

    def add(tally: Tally, what: str) -> None:
        nonlocal total
        with lock:
            total += tally
            for failure in tally.failures:
                say(f"FAILED {what}: {failure}")
            kills, here = sum(total.kills.values()), sum(tally.kills.values())
            say(
                f"{what}: {tally.rows} rows, {tally.results} results, {here} kills; in all "
                f"{total.queries} queries, {kills} kills, {len(total.failures)} failures"
            )

    def lane(number: int, driver: Driver) -> None:
        missing = [point.name for point in POINTS]
        for n in count():
            if driver.closed or (time.monotonic() > until and (not missing or n >= _TOURS)):
                break
            name, folder = f"{seed}/{number}/{n}", driver.home / f"round{n}"
            tour = missing if n < _TOURS else ()
            tally = run_story(random_story(folder, driver.master, name, tour=tour), driver)
            missing = [point for point in missing if point not in tally.kills]
            add(tally, f"round {name} on {driver.master}")
            if not tally.failures:
                good.append(folder)
        if missing:
            never = f"never reached on {driver.master}: {', '.join(missing)}"
            add(Tally(failures=[never]), f"lane {number}")

    drivers = [Driver(master, home / f"lane{n}") for n, master in enumerate(MASTERS)]
    try:
        with ThreadPoolExecutor(len(drivers)) as pool:
            try:
                for done in as_completed([pool.submit(lane, *x) for x in enumerate(drivers)]):
                    done.result()
            finally:
                for driver in drivers:
                    driver.close()
    finally:
        for folder in good:  # not before: Spark still knows the state of queries that ended
            shutil.rmtree(folder, ignore_errors=True)
    if total.failures:
        say(f"the same seed, {seed}, repeats the rounds; what is left of them is in {home}")
    else:
        shutil.rmtree(home, ignore_errors=True)
    return replace(total, kills={p.name: total.kills.get(p.name, 0) for p in POINTS})
