"""The manager beside a query: what it makes of reports, what it leaves alone, and who may manage.

Processors without Spark stand for the tasks. Files in a checkpoint stand for Spark's logs, and the
seconds in the reports are computed, so that every run decides the same.
"""

from __future__ import annotations

import logging
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from plait.adapt.balance_policy import BalancePolicy
from plait.errors import MoveError
from plait.hosts.spark.balance import Balancer, BalanceThread
from plait.hosts.spark.control import Control, Made
from plait.hosts.spark.locks import Lock
from plait.hosts.spark.moves import Moves
from plait.node.placement import balance_line
from plait.plan.jtree import mjoin
from plait.workshop.laws.hosts import definition
from plait.workshop.laws.processors import Cluster
from plait.workshop.oracle.answer import multiset
from plait.workshop.workloads.keyed import keyed_query

pytestmark = pytest.mark.slow

SECOND, ID = 1_000_000, "some query"
QUERY = keyed_query([["k"]] * 3, 20 * SECOND, 0)


class Story:
    """A query of ten seconds a batch, with the logs that Spark would write."""

    def __init__(
        self,
        where: Path,
        policy: BalancePolicy,
        key: Callable[[Random], int],
        rows: tuple[int, ...] = (12, 12, 12),
    ) -> None:
        self.control = Control(str(where / "checkpoint" / "plait" / "join"), True)
        self.cluster = Cluster(QUERY, mjoin(QUERY), 2, seed=3)
        self.join = Made(QUERY, None, self.control, self.cluster.routing, policy)
        self._key, self._rows, self._chance = key, rows, Random(5)
        self.batches: list[dict[str, list[dict[str, int]]]] = []
        self.found: Counter[tuple[object, ...]] = Counter()
        self.batch()
        self.balancer = Balancer(self.join, ID, policy)

    def log(self, name: str) -> None:
        folder = Path(self.control.folder).parents[1] / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(self.cluster.batch)).touch()

    def batch(self) -> None:
        number, chance = self.cluster.batch, self._chance
        rows = {
            name: [
                {"ts": 10 * (number * SECOND + i * SECOND // n), "k": self._key(chance), "v": i}
                for i in range(n)
            ]
            for name, n in zip(QUERY.names, self._rows, strict=True)
        }
        self.batches.append(rows)
        self.log("offsets")
        self.cluster.table = self.control.tables.at(number) or self.cluster.routing.table
        schemas = {s.name: s.schema for s in QUERY.streams}
        tables = {name: _table(rows[name], schemas[name]) for name in rows}
        self.found += multiset(self.cluster.run(tables))
        self.log_commit(number)

    def log_commit(self, number: int) -> None:
        for report in self.cluster.reports:
            # What takes time are rows, and nothing else.
            report.seconds = {"join": 0.05 * sum(report.routed.values())}
            self.control.write_report(ID, number, report)
            path = Path(self.control.folder, "reports", ID, f"{number}-{report.processor}.json")
            os.utime(path, (1_700_000_000 + 2 * number,) * 2)  # two seconds a batch
        folder = Path(self.control.folder).parents[1] / "commits"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / str(number)).touch()

    def run(self, batches: int) -> None:
        for _ in range(batches):
            self.batch()
            self.balancer.catch_up()

    def exact(self) -> bool:
        return self.found == definition(QUERY, tuple(self.batches)).results

    def said(self) -> str:
        return "\n".join(map(balance_line, self.control.balance(100)))

    def rows_of_last_batch(self) -> dict[int, int]:
        return {r.processor: sum(r.routed.values()) for r in self.cluster.reports}


def _table(rows: list[dict[str, int]], schema: pa.Schema) -> pa.Table:
    columns = {f.name: pa.array([r.get(f.name) for r in rows]).cast(f.type) for f in schema}
    return pa.table(columns, schema)


def any_key(chance: Random) -> int:
    return chance.randrange(40)


def test_oracle_a_skewed_query_is_balanced_while_it_runs(tmp_path: Path) -> None:
    story = Story(tmp_path, BalancePolicy(), any_key)
    moves = Moves(story.join.routing, story.control, ID)
    moves.begin([g for g in range(128) if story.cluster.table.places[g] == (1,)][:56], [0])
    story.run(36)
    rows = story.rows_of_last_batch()
    assert max(rows.values()) < 0.65 * sum(rows.values())
    assert "go to processor 1" in story.said() and "it paid" in story.said()
    assert story.exact()


def test_oracle_a_key_too_hot_for_one_processor_is_spread(tmp_path: Path) -> None:
    def hot(chance: Random) -> int:
        return 7 if chance.random() < 0.8 else chance.randrange(40)

    story = Story(tmp_path, BalancePolicy(), hot, (30, 3, 3))
    story.run(25)
    table = story.control.tables.newest()
    assert table is not None and table.spread, story.said()
    assert story.exact()


def test_what_is_even_stays_where_it_is(tmp_path: Path) -> None:
    story = Story(tmp_path, BalancePolicy(margin=0.6), any_key)
    story.run(20)
    assert story.control.tables.newest() is None and story.exact()


def test_processors_leave_and_come_back(tmp_path: Path) -> None:
    story = Story(tmp_path, BalancePolicy(active=1, confirm=1), any_key)
    story.run(14)
    assert len(set(Moves(story.join.routing, story.control, ID).table.places)) == 1
    story.balancer = Balancer(story.join, ID, BalancePolicy(active=2, confirm=1))
    story.run(14)
    assert len(set(Moves(story.join.routing, story.control, ID).table.places)) == 2
    assert story.exact()


def test_a_successor_ends_the_move_that_its_predecessor_began(tmp_path: Path) -> None:
    story = Story(tmp_path, BalancePolicy(), any_key)
    Moves(story.join.routing, story.control, ID).begin(range(30), [1])
    story.run(4)
    story.balancer = Balancer(story.join, ID, BalancePolicy(margin=0.9))
    story.run(12)
    table = story.control.tables.newest()
    assert table is not None and not table.under_way and table.places[0] == (1,)
    assert story.exact()


def test_a_transfer_that_is_damaged_is_given_up(tmp_path: Path) -> None:
    story = Story(tmp_path, BalancePolicy(margin=0.9), any_key)
    moves = Moves(story.join.routing, story.control, ID)
    moves.begin(range(30), [1])
    while not story.cluster.transfers.written:
        story.run(1)
    written = story.cluster.transfers.written
    first = min(written)
    written[first] = written[first][:-7]
    story.run(8)
    table = moves.table
    assert not table.under_way and table.places[0] == (0,)
    assert story.exact()


def test_a_second_manager_is_refused(tmp_path: Path) -> None:
    control = Control(str(tmp_path), True)
    first, second = Lock(control), Lock(control)
    first.take()
    first.take()
    with pytest.raises(MoveError, match="another process moves the partition groups"):
        second.take()
    first.release()
    second.take()


def test_the_thread_balances_and_says_why_it_cannot(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    story = Story(tmp_path, BalancePolicy(margin=0.9), any_key)
    Moves(story.join.routing, story.control, ID).begin(range(30), [1])
    lock = Lock(story.control)
    lock.take()
    beside = BalanceThread()
    with caplog.at_level(logging.WARNING, "plait"):
        beside.watch(story.join, BalancePolicy(margin=0.9))
        _until(lambda: "another process moves" in caplog.text)
    lock.release()

    def ended() -> bool:
        story.batch()
        return not Moves(story.join.routing, story.control, ID).table.under_way

    _until(ended)
    beside.leave(story.control)
    assert story.exact()


def _until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < end, "it never happened"
        time.sleep(0.05)
