"""Sites on Spark: the answer is that of the definition, whatever is killed, in both deployments."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark import cloudpickle
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.sites.spark.test_orders import litter
from tests.spark import mortal_site
from tests.spark.feeds import AT, SAID, SLOW, TURNED, Feeds, found_in, placed_at

from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.spark import join as sites_module
from plait.sites.spark.join import PlacedJoin
from plait.sites.spark.mail import Mailbox

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_BUSY = 20


class Running:
    """The applications of a join, all in one session."""

    def __init__(self, placed: PlacedJoin, folder: Path, *, divided: bool) -> None:
        self.box, self.folder = folder / "box", folder
        self.parts = [placed.site(name) for name in AT] if divided else [placed]
        self.queries: dict[str, StreamingQuery] = {}

    def start(self, *names: str) -> None:
        """Start some of the applications, or all, one after the other: each start is costly."""
        for part in self.parts:
            if not names or part.application in names:
                self._start(part.application)
                self._rest(part.application)

    def _start(self, name: str) -> None:
        (part,) = (part for part in self.parts if part.application == name)
        where = self.folder / f"checkpoint-{name}"
        self.queries[name] = part.start(mailbox=self.box, checkpoint=where)

    def rest(self) -> None:
        """Wait until nothing is left to do."""
        before: list[set[str]] = []
        while (now := self._logs()) != before:
            before = now
            for name in self.queries:
                self._rest(name)

    def _rest(self, name: str) -> None:
        """Wait until an application has nothing to do.

        Where a machine is so busy that Python workers do not connect in time, it goes on from its
        checkpoint.
        """
        for _ in range(_BUSY):
            try:
                self.queries[name].processAllAvailable()
                return
            except StreamingQueryException as error:
                if "connect back" not in str(error):
                    raise
                self._start(name)

    def _logs(self) -> list[set[str]]:
        box = Mailbox(self.box)
        logs = [box.mail(part.application) / "_spark_metadata" for part in self.parts]
        return [{n for n in os.listdir(log) if n.isdigit()} for log in logs]

    def start_failed(self) -> None:
        """Start the applications again whose query has ended by itself."""
        for name, query in list(self.queries.items()):
            if not query.isActive:
                self._start(name)

    def stop(self) -> None:
        for query in self.queries.values():
            query.stop()

    def found(self, spark: SparkSession) -> Counter[Any]:
        """All results of all applications."""
        results: Counter[Any] = Counter()
        for part in self.parts:
            where = self.folder / f"found-{part.application}"
            results += found_in(spark, part.to_df(self.box), where)
        return results


DIVIDED = [
    pytest.param(False, id="one application"),
    pytest.param(True, id="one per site", marks=pytest.mark.campaign),
]


@pytest.mark.parametrize("divided", DIVIDED)
def test_oracle_the_plan_moves_away_from_a_slow_link(
    spark: SparkSession, tmp_path: Path, divided: bool
) -> None:
    sizes = {"a": 4, "b": 8, "c": 10, "d": 16}
    feeds = Feeds(tmp_path / "feeds", sizes=sizes)
    # A file has the rows of ten seconds, with four keys.
    known = {stream: {"rate": size / 10, "factor": 0.25} for stream, size in sizes.items()}
    placed = placed_at(spark, feeds.folder, statistics=known, adapt=False)
    running = Running(placed, tmp_path, divided=divided)
    for number in range(2):
        feeds.write(number)
    orders = Mailbox(running.box).orders
    orders.mkdir(parents=True)
    left = litter(orders)
    try:
        running.start()
        running.rest()
        part = running.parts[0]
        first = part.progress(running.box)
        change = part.replan(running.box, links=SLOW, timeout=300)
        running.rest()
        second = part.progress(running.box)
        for number in range(2, 4):
            feeds.write(number)
        running.rest()
        last = part.progress(running.box)
    finally:
        running.stop()
    assert change.change == 1, "the slow link is worth another plan"
    assert len(first.strays) == len(left), "what lies among the orders stops nobody, and is named"
    assert any("000007-0.json is not followed" in decision.text for decision in first.decisions)
    found = running.found(spark)
    assert found == feeds.wanted(placed)
    assert sum(found.values()) == last.results > 100
    assert {site.last["follows"] for site in last.sites.values()} == {1}
    before = _over_the_slow_link(first.link_bytes)
    after = _over_the_slow_link(last.link_bytes) - _over_the_slow_link(second.link_bytes)
    print(f"\n{placed.explain()}\n{change}: {change.new}\nslow link: {before} bytes, then {after}")
    print(last)
    assert before > 1000
    assert after <= before / 2


@pytest.mark.parametrize("divided", DIVIDED)
@pytest.mark.parametrize(
    "update", ["central", pytest.param("distributed", marks=pytest.mark.campaign)]
)
def test_oracle_sites_move_away_from_a_slow_link_by_themselves(
    spark: SparkSession, tmp_path: Path, divided: bool, update: UpdateWay
) -> None:
    # What is said of the rates is wrong: for these, much would go over the slow link.
    feeds = Feeds(tmp_path / "feeds", sizes=TURNED)
    policy = PlacementPolicy(update=update, patience=600_000_000)
    placed = placed_at(spark, feeds.folder, statistics=SAID, links=SLOW, adapt=policy)
    running = Running(placed, tmp_path, divided=divided)
    taken, turns, part = [], [-1], running.parts[0]
    try:
        feeds.write(0)
        running.start()
        running.rest()
        for number in range(1, 9):
            last = part.progress(running.box)
            taken.append(_over_the_slow_link(last.link_bytes))
            turns.append(max(site.last["turn"] for site in last.sites.values()))
            if number > 3 and turns[-1] == turns[-2]:
                break  # a file has come without any change of the plan
            feeds.write(number)
            running.rest()
    finally:
        running.stop()
    assert running.found(spark) == feeds.wanted(placed)
    number, plan = last.plan or (0, None)
    assert number >= 1
    assert plan not in (None, placed.plan)
    assert {site.last["follows"] for site in last.sites.values()} == {number}
    after = taken[-1] - taken[-2]
    print(f"\n{placed.explain()}\nslow link: {taken[0]} bytes for a file, then {after:g}\n{last}")
    assert taken[0] > 500
    assert after <= taken[0] / 2
    assert any("exceeds the threshold" in decision.text for decision in last.decisions)
    told = [told["notice"] for site in last.sites.values() for told in site.measured.values()]
    assert any("does not exceed" in notice for notice in told), "also reasons to stay"


def _over_the_slow_link(link_bytes: dict[tuple[str, str], int]) -> int:
    return sum(link_bytes.get((origin, target), 0) for origin, target, *_ in SLOW)


@pytest.mark.campaign
def test_oracle_workers_are_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feeds = Feeds(tmp_path / "feeds", seed=1)
    placed = placed_at(spark, feeds.folder, results="kyiv")
    orders = tmp_path / "orders"
    orders.mkdir()
    # cloudpickle has no types.
    cloudpickle.register_pickle_by_value(mortal_site)  # type: ignore[no-untyped-call]
    monkeypatch.setattr(sites_module, "SiteOperator", partial(mortal_site.made, str(orders)))
    running = Running(placed, tmp_path, divided=False)
    for number, point in enumerate(("header-unwritten", "mail-handed-over")):
        feeds.write(number)
        (orders / point).touch()
        with pytest.raises(StreamingQueryException):
            running.start()
    feeds.write(2)
    running.start()
    running.rest()
    running.stop()
    assert not list(orders.iterdir())
    assert running.found(spark) == feeds.wanted(placed)


PHASES = ("copying", "local-ready", "global-ready", "idle")


@pytest.mark.campaign
@pytest.mark.parametrize("divided", [False, True], ids=["one application", "one per site"])
@pytest.mark.parametrize("site", AT)
def test_oracle_the_worker_of_a_site_is_killed_while_the_plan_changes(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    divided: bool,
    site: str,
) -> None:
    feeds = Feeds(tmp_path / "feeds", seed=4, sizes=TURNED)
    policy = PlacementPolicy(patience=600_000_000)
    options: dict[str, Any] = {
        "statistics": SAID,
        "links": SLOW,
        "adapt": policy,
        "results": "kyiv",
    }
    placed = placed_at(spark, feeds.folder, **options)
    orders = tmp_path / "orders"
    orders.mkdir()
    # cloudpickle has no types.
    cloudpickle.register_pickle_by_value(mortal_site)  # type: ignore[no-untyped-call]
    monkeypatch.setattr(sites_module, "SiteOperator", partial(mortal_site.made, str(orders)))
    running = Running(placed, tmp_path, divided=divided)
    feeds.write(0)
    running.start()
    for phase in PHASES:
        (orders / f"{site}-{phase}").touch()
    deaths = 0
    for number in range(1, 4):
        feeds.write(number)
        while True:
            try:
                running.rest()
                break
            except StreamingQueryException:
                deaths += 1
                running.start_failed()
    running.stop()
    # A site that comes from one phase to another within a step is not seen in between.
    assert deaths == len(PHASES) - len(list(orders.iterdir())) >= 2
    assert running.found(spark) == feeds.wanted(placed)
    last = running.parts[0].progress(running.box)
    (number,) = {told.last["follows"] for told in last.sites.values()}
    assert number >= 1, "the plan has changed, everywhere to the same one"


@contextmanager
def _process(feeds: Path, folder: Path, site: str) -> Iterator[subprocess.Popen[bytes]]:
    """An application in a process of its own, with a session of its own."""
    script = Path(__file__).with_name("site_process.py")
    with (folder / f"{site}.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, str(script), str(feeds), str(folder), site],
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Signal 9 for the driver, its JVM and its workers."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _reached(process: subprocess.Popen[bytes], path: Path) -> None:
    """Wait until a process has written a file."""
    until = time.monotonic() + 600
    while not path.exists():
        assert process.poll() is None, "the application has ended by itself"
        assert time.monotonic() < until, f"{path} does not appear"
        time.sleep(0.005)


KILLED = [
    pytest.param("rome", (("mail-logged", 1),), id="one site", marks=pytest.mark.campaign),
    pytest.param("all", (("mail-logged", 1),), id="all sites"),
    *(
        pytest.param(
            site,
            # The plan changes after the second file has come, and that takes about eight batches.
            (("planned", 1), ("mail-logged", 1), ("committed", 2), ("planned", 2),
             ("mail-logged", 2), ("committed", 1)),
            id=f"{site}, every point",
            marks=pytest.mark.campaign,
        )
        for site in (*AT, "all")
    ),
]  # fmt: skip


@pytest.mark.integration
@pytest.mark.parametrize(("site", "points"), KILLED)
def test_oracle_applications_are_killed(
    spark: SparkSession, tmp_path: Path, site: str, points: tuple[tuple[str, int], ...]
) -> None:
    feeds = Feeds(tmp_path / "feeds", seed=2, sizes=TURNED)
    options: dict[str, Any] = {"statistics": SAID, "links": SLOW, "results": "bonn"}
    placed = placed_at(spark, feeds.folder, **options)
    running = Running(placed, tmp_path, divided=site != "all")
    victim = "all" if site == "all" else f"site-{site}"
    others = [part.application for part in running.parts if part.application != victim]
    if others:
        running.start(*others)
    checkpoint = tmp_path / f"checkpoint-{victim}"
    places = {
        "planned": checkpoint / "offsets",
        "mail-logged": Mailbox(running.box).mail(victim) / "_spark_metadata",
        "committed": checkpoint / "commits",
    }
    for number, (point, later) in enumerate(points):
        feeds.write(number)
        newest = max((int(n) for n in _listed(places[point]) if n.isdigit()), default=-1)
        with _process(feeds.folder, tmp_path, site) as process:
            _reached(process, places[point] / str(newest + later))
            _kill(process)
    feeds.write(len(points))
    running.start(victim)
    running.rest()
    running.stop()
    assert running.found(spark) == feeds.wanted(placed)


def _listed(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.exists() else []


@pytest.mark.campaign
def test_oracle_mail_is_damaged_lost_and_written_by_a_wrong_clock(
    spark: SparkSession, tmp_path: Path
) -> None:
    feeds = Feeds(tmp_path / "feeds", seed=3)
    placed = placed_at(spark, feeds.folder)
    running = Running(placed, tmp_path, divided=True)
    feeds.write(0)
    senders = [part.application for part in running.parts if part.application != "site-rome"]
    running.start(*senders)
    running.rest()
    box = Mailbox(running.box)
    (mail,) = box.mail("site-oslo").glob("box=to-rome/*.parquet")
    table = pq.ParquetFile(mail).read()
    bodies = [body[:-1] + bytes([body[-1] ^ 1]) for body in table["body"].to_pylist()]
    place = table.schema.get_field_index("body")
    _put(mail, table.set_column(place, "body", pa.array(bodies, pa.binary())))
    (lost,) = box.mail("site-bonn").glob("box=to-rome/*.parquet")
    lost.unlink()
    _set_clock(box.mail("site-kyiv") / "_spark_metadata", 30 * 86_400_000)
    running.start("site-rome")
    part = running.parts[0]
    waiting, until = _waited_for(part, running.box), time.monotonic() + 600
    while _waited_for(part, running.box):
        assert time.monotonic() < until, "it is not sent again"
        time.sleep(5)  # nothing comes but what is sent again
    feeds.write(1)
    running.rest()
    last = part.progress(running.box)
    running.stop()
    assert "rome" in waiting
    assert any("a damaged packet is left out" in decision.text for decision in last.decisions)
    assert running.found(spark) == feeds.wanted(placed)


def _waited_for(part: PlacedJoin, box: Path) -> set[str]:
    """The sites that have not acknowledged everything."""
    sites = part.progress(box).sites.values()
    return {one.site for site in sites for one in site.unanswered}


def _set_clock(log: Path, wrong: int) -> None:
    """Let the mail in a log look as if it had been written by a wrong clock, in milliseconds."""
    for path in log.glob("[0-9]*"):
        version, *entries = path.read_text().splitlines()
        changed = [json.loads(entry) for entry in entries]
        for entry in changed:
            entry["modificationTime"] += wrong
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        path.write_text("\n".join([version, *map(json.dumps, changed)]))


def _put(path: Path, content: pa.Table) -> None:
    """Replace a file, and the checksum that Hadoop keeps beside it."""
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    pq.write_table(content, path)


def test_the_example_of_the_page_runs(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    page = Path(__file__).parents[2] / "docs" / "sites.md"
    (text,) = re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    instant = pa.array([0, 1_000_000], pa.timestamp("us", "UTC"))
    rows = pa.table({"sym": ["x", "y"], "price": [1.0, 2.0], "ts": instant})
    for stream in ("trades", "quotes", "news"):
        folder = tmp_path / "feeds" / stream
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "0.parquet")
    monkeypatch.chdir(tmp_path)
    # The JVM of the session that tests share stays where it was started.
    for name in ("feeds/", "found-checkpoint", "found"):
        text = re.sub(rf'"{name}(?=["{{])', f'"{tmp_path}/{name}', text)
    exec(compile(text, "docs/sites.md", "exec"), {})
    found = spark.read.parquet(str(tmp_path / "found")).collect()
    assert sorted(row.sym for row in found) == ["x", "y"]
    assert "oslo → rome" in capsys.readouterr().out
