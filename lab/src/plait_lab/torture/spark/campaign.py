"""A campaign of kills on Spark: random queries whose parts die on order, again and again.

A *round* is a random query over random data, in batches of Parquet files, with a plan that changes
while it runs, and orders to kill Python workers, executors and drivers at named points (see
`killpoints`, `rounds`). A driver process (`driver`) runs it and is started again
whenever it dies, until all input is used up. What the sink then has must be what the definition
says: each result and each row set aside, once. Only files that the sink's own log names count, as
for any reader of it.

The same name repeats the same round. Which task reaches a point first is up to the machine, and
must not matter. A round that fails keeps its folder.

There is one driver for each kind of master, and both run at the same time: a local one, in which
tasks die and are repeated within one JVM, and a cluster on this machine with two executors.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from urllib.parse import urlparse
from urllib.request import url2pathname

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from plait.errors import MissingRequirement, PlaitError
from plait.query.query import Query
from plait.testing.oracle.answer import Result, multiset
from plait.testing.oracle.fates import LATE, NO_TIME, NULL_KEY
from plait_lab.laws.upgrades import Answer, Asked, full_answers, phases_of
from plait_lab.torture.campaign import Failure
from plait_lab.torture.spark.as_read import batches_as_read
from plait_lab.torture.spark.killpoints import APART, MASTERS, POINTS, PROCESSES, Kill, Orders
from plait_lab.torture.spark.rounds import (
    Round,
    Story,
    random_story,
    tour_group,
    write_story,
)
from plait_lab.torture.tally import Tally

Fate = tuple[object, object, object]
"""Stream, row and reason of a row that was set aside."""

MODULE = "plait_lab.torture.spark.driver"
"""What a driver's process runs, unless it is told otherwise."""

_MOST_IDLE = 4
"""Drivers in a row that may end without a kill or a batch, before a round is given up."""

_LONGEST_SECONDS = 900.0
"""How long a driver may go without any progress before the round is given up."""

_MOST_ERRORS = 100_000
"""How many bytes tasks may say about failures without any progress: some dozens of failures."""

_LOOK = 0.05
_TOURS = 6
"""Rounds at the beginning that visit points; each is left out if it has none to add."""

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


def table_files(out: Path) -> list[Path]:
    """The files that the log of a Delta table names."""
    from deltalake import DeltaTable

    return [Path(url2pathname(urlparse(uri).path)) for uri in DeltaTable(out).file_uris()]


def check(story: Story) -> tuple[int, list[str]]:
    """How many results there are, and in what they differ from the definition."""
    round_, out = story.round, story.round.folder / "out"
    tables = [pq.read_table(p) for p in (table_files(out) if round_.delta else sink_files(out))]
    found: list[str] = []
    if round_.delta:
        tables, found = without_neighbours(tables)
    total, aside = 0, Counter[Fate]()
    wanted_aside = Counter[Fate]()
    for number, (query, wanted) in enumerate(_wanted(story)):
        mine = _of_phase(tables, number) if round_.labelled else tables
        results: Counter[Result] = Counter()
        for table in mine:
            rows = table.filter(table.column("late").is_null()).drop_columns(["late"])
            results += multiset(rows.select(query.schema.names).cast(query.schema))
            for row in table.column("late").drop_null().to_pylist():
                aside[row["stream"], _identity(row[row["stream"]]), row["reason"]] += 1
        if results != wanted.results:
            missing, surplus = wanted.results - results, results - wanted.results
            found.append(
                f"phase {number}: {missing.total()} results lost: {missing.most_common(3)}; "
                f"{surplus.total()} repeated or wrong: {surplus.most_common(3)}"
            )
        total += results.total()
        for name, by_reason in wanted.aside.items():
            for reason in (NO_TIME, NULL_KEY, LATE):
                wanted_aside.update((name, _identity(row), reason) for row in by_reason[reason])
    if aside != wanted_aside:
        lost, extra = wanted_aside - aside, aside - wanted_aside
        found.append(
            f"rows set aside: {lost.total()} lost {lost.most_common(3)}, "
            f"{extra.total()} extra {extra.most_common(3)}"
        )
    return total, found


def _wanted(story: Story) -> list[tuple[Query, Answer]]:
    """The question of each phase and its answer; of one, if rows do not say of which they are."""
    round_ = story.round
    batches, places = batches_as_read(
        round_.folder / "checkpoint", round_.query.names, story.batches, story.seen
    )
    if round_.labelled:
        asked = [Asked(places[phase.since], phase.query) for phase in round_.phases]
    else:
        asked = [Asked(story.seen, round_.query)]
    before = [Asked(0, round_.query)] if story.seen else []
    found = full_answers(phases_of([*before, *asked], batches))[len(before) :]
    return [(one.query, answer) for one, answer in zip(asked, found, strict=True)]


def _of_phase(tables: Sequence[pa.Table], number: int) -> list[pa.Table]:
    """The tables of a phase: a file has the columns of the question that it was written for."""
    found = [table.filter(pc.equal(table.column("phase"), number)) for table in tables]
    return [table for table in found if table.num_rows]


def without_neighbours(tables: Sequence[pa.Table]) -> tuple[list[pa.Table], list[str]]:
    """The rows of the query, and whether those that somebody else wrote are all there, once."""
    kept, numbers = [], []
    for table in tables:
        first = table.column(0)
        foreign = pc.fill_null(pc.less(first, 0), False)
        numbers += table.filter(foreign).column(0).to_pylist()
        kept.append(table.filter(pc.invert(foreign)))
    right = sorted(numbers) == list(range(-len(numbers), 0))
    return kept, [] if right else [f"rows of others are lost or repeated: {sorted(numbers)}"]


def _identity(row: Mapping[str, object]) -> object:
    """What tells a row from the others of its stream; golden rows are told by their price."""
    return row["id"] if "id" in row else row["price"]


def changes_told(folder: Path) -> tuple[int, int]:
    """How many changes of plan, refused ones aside, and how many moves the processors reported."""
    migrations, moves = set(), set()
    for path in folder.glob("checkpoint/plait/*/reports/*/*-*.json"):
        report = json.loads(path.read_text())
        for m in report["migrations"]:
            if not m.get("refused"):
                new = json.dumps(m["new"], sort_keys=True)
                migrations.add((report["processor"], m["start"], new))
        moves |= {answer["move"] for answer in report.get("moves", ())}
    return len(migrations), len(moves)


# --- drivers --------------------------------------------------------------------------------------


class Driver:
    """Runs rounds in a process of its own, which is started again whenever it dies."""

    def __init__(self, master: str, home: Path, module: str = MODULE) -> None:
        self.master = master
        self._module = module
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
            since, told = time.monotonic(), _errors(folder)
            while process.poll() is None and not (folder / "done").exists():
                time.sleep(_LOOK)
                if (now := _progress(folder)) != seen:
                    seen, since, told = now, time.monotonic(), _errors(folder)
                if _errors(folder) - told > _MOST_ERRORS:
                    self.end()
                    return "tasks fail again and again, and nothing else happens"
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
                    self._module,
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
    return sum(1 for part in ("kills", "checkpoint*/commits") for _ in folder.glob(f"{part}/*"))


def _errors(folder: Path) -> int:
    """How much tasks have said about their failures, in bytes."""
    path = folder / "errors"
    return path.stat().st_size if path.exists() else 0


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


def run_story(story: Story, driver: Driver) -> tuple[Tally, list[str]]:
    """Run a round to its end and compare; a failure says why and names the folder."""
    folder = story.round.folder
    empty = write_story(story)
    trouble = driver.run(folder)
    results, found = (0, [trouble]) if trouble else check(story)
    found += _suspicious(folder)
    obeyed = Orders(folder).kills()
    kills = [kill for kill in obeyed if kill.target in PROCESSES]
    migrations, moves = changes_told(folder)
    tally = Tally(
        queries=1,
        rows=sum(len(rows) for batch in story.batches for rows in batch.values()),
        results=results,
        migrations=migrations,
        moves=moves,
        full_disks=sum(kill.target == "disk" for kill in obeyed),
        upgrades=story.upgrades,
        rebalances=sum(1 for path in folder.glob("divided-*") if not path.read_text()),
        empty_batches=empty,
        foreign_writes=_foreign(story.round),
        starts=len((folder / "starts").read_text().split()) if (folder / "starts").exists() else 0,
        kills=dict(Counter(kill.point for kill in kills)),
        victims=dict(Counter(_label(driver.master, kill) for kill in kills)),
    )
    return tally, [f"{what} (see {folder})" for what in found]


def _foreign(round_: Round) -> int:
    """How many rows somebody else wrote to the table of a round."""
    if not round_.neighbours or not (round_.folder / "out").exists():
        return 0
    columns = [pq.read_table(path).column(0) for path in table_files(round_.folder / "out")]
    return sum(pc.sum(pc.less(column, 0)).as_py() or 0 for column in columns)


def _label(master: str, kill: Kill) -> str:
    return f"{kill.target} of {master.partition('[')[0]}"


def _suspicious(folder: Path) -> list[str]:
    """Failures of tasks and of the query that deaths around them do not explain."""
    found = []
    for name, expected in (("errors", _IN_TASKS), ("failed", _OF_QUERIES)):
        text = (folder / name).read_text() if (folder / name).exists() else ""
        entries = Counter(map(_same, filter(None, text.split("\n---\n"))))
        for entry, times in entries.items():
            if not any(word in entry for word in expected):
                found.append(f"not by a kill ({name}, {times} times): {entry[-1000:]}")
    return found


def _same(entry: str) -> str:
    """What is the same in each report of one failure: no ids, and nothing about offsets."""
    return re.sub(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", entry.partition(_AFTER)[0])


_AFTER = "=== Streaming Query ==="
"""Where Spark begins to tell of offsets and plans."""

_FULL = ("File too large", "IO error", "IOException", "CANNOT_WRITE_STATE_STORE")
"""What Spark and RocksDB say when a file cannot grow."""

_IN_TASKS = ("EOFError", "ConnectionResetError", "BrokenPipeError", "ConnectionRefusedError")
"""What a worker says whose JVM has died."""

_OF_QUERIES = ("failed to connect back", "SparkContext", "Connection re", *_FULL)
"""What a query says whose JVM is about to go, whose machine is too busy to start a process, or
whose disk is full."""


def campaign(
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    masters: Sequence[str] = MASTERS,
) -> tuple[Tally, list[Failure]]:
    """Run rounds for so long, those that have begun to their ends."""
    until = time.monotonic() + seconds
    shared = _Shared(say)

    def lane(number: int, driver: Driver) -> None:
        missing = [point.name for point in POINTS]
        for n in count():
            if driver.closed or (time.monotonic() > until and (not missing or n >= _TOURS)):
                break
            if n < _TOURS and not set(missing) & set(_tour(n)):
                continue
            story = _round(driver, f"{seed}/{number}/{n}")
            tally = shared.run(story, driver, f"{seed}/{number}/{n}")
            missing = [point for point in missing if point not in tally.kills]
        if missing:
            shared.fail(f"{seed}/{number}/0", f"never reached: {', '.join(missing)}")

    with _drivers(shared) as every, ThreadPoolExecutor(len(every)) as pool:
        drivers = [driver for driver in every if driver.master in masters]
        try:
            lanes = [pool.submit(lane, MASTERS.index(d.master), d) for d in drivers]
            for done in as_completed(lanes):
                done.result()
        except KeyboardInterrupt:
            say(f"stopped after {shared.tally.text() or 'nothing'}")
            raise
        finally:
            for driver in drivers:
                driver.close()
    tally = shared.tally
    tally.kills = {p.name: tally.kills.get(p.name, 0) for p in POINTS}
    return tally, shared.failures


def repeat(case: str, say: Callable[[str], None]) -> tuple[Tally, list[Failure]]:
    """Run one round again, by the name that a campaign printed: SEED/LANE/NUMBER."""
    parts = case.split("/")
    if len(parts) != 3 or not all(map(str.isdecimal, parts)) or int(parts[1]) >= len(MASTERS):
        raise PlaitError(
            f"{case!r} names no round on Spark", remedy="give SEED/LANE/NUMBER, as it was printed"
        )
    shared = _Shared(say)
    with _drivers(shared) as drivers:
        driver = drivers[int(parts[1])]
        shared.run(_round(driver, case), driver, case)
    return shared.tally, shared.failures


def _round(driver: Driver, name: str) -> Story:
    """The round of this name; the first ones of a lane are tours."""
    number = int(name.rpartition("/")[2])
    return random_story(driver.home / f"round{number}", driver.master, name, tour=_tour(number))


def _tour(number: int) -> list[str]:
    """The points that a round at the beginning visits: those that one query can reach."""
    groups = ("", *APART)
    group = groups[number % len(groups)] if number < _TOURS else None
    return [point.name for point in POINTS if tour_group([point.name]) == group]


class _Shared:
    """What the lanes of a campaign add up."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._lock = threading.Lock()
        self.tally = Tally()
        self.failures: list[Failure] = []
        self.good: list[Path] = []

    def run(self, story: Story, driver: Driver, name: str) -> Tally:
        """Run a round and add it."""
        tally, found = run_story(story, driver)
        if driver.closed:
            return tally  # it was cut off: nothing is known of it
        with self._lock:
            self.tally.add(tally)
            for text in found:
                self._failed(name, text)
            if not found:
                self.good.append(story.round.folder)
            self._say(
                f"round {name} on {driver.master}: {tally.text()}; in all "
                f"{self.tally.queries} queries, {sum(self.tally.kills.values())} kills, "
                f"{len(self.failures)} failures"
            )
        return tally

    def fail(self, name: str, text: str) -> None:
        """Something is wrong that no single round shows."""
        with self._lock:
            self._failed(name, text)

    def _failed(self, name: str, text: str) -> None:
        self.failures.append(Failure(name, text))
        self._say(f"FAILED round {name}: {text}")


@contextlib.contextmanager
def _drivers(shared: _Shared) -> Iterator[list[Driver]]:
    """A driver for each kind of master; what failed is left in their folders."""
    home = Path(tempfile.mkdtemp(prefix="plait-torture-"))
    drivers = [Driver(master, home / f"lane{n}") for n, master in enumerate(MASTERS)]
    try:
        yield drivers
    finally:
        for driver in drivers:
            driver.close()
        for folder in shared.good:  # not before: Spark still knows the state of queries that ended
            shutil.rmtree(folder, ignore_errors=True)
        if not shared.failures:
            shutil.rmtree(home, ignore_errors=True)
