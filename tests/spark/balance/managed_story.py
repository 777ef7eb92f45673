"""A query beside which partition groups are managed, without Spark.

Processors without Spark stand for the tasks. Files in a checkpoint stand for Spark's logs, and the
seconds in the reports are computed, so that every run decides the same.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pyarrow as pa

from plait.groups.balance.policy import BalancePolicy
from plait.groups.routing.table import Table
from plait.machine.stores import store_at
from plait.node.reports.placement import balance_line
from plait.plan.jtree import mjoin
from plait.spark.balance.balancer import Balancer, BalanceTask
from plait.spark.control.background import THREAD
from plait.spark.control.directory import Control
from plait.spark.control.joins import RegisteredJoin
from plait.testing.oracle.answer import multiset
from plait_lab.laws.hosts import definition
from plait_lab.laws.processors import Cluster
from plait_lab.workloads.keyed import keyed_query

SECOND, ID = 1_000_000, "some query"
QUERY = keyed_query([["k"]] * 3, 20 * SECOND, 0)


class Story:
    """A query of ten seconds a batch, with the logs that Spark would write."""

    def __init__(
        self,
        control: Control,
        policy: BalancePolicy,
        key: Callable[[Random], int],
        rows: tuple[int, ...] = (12, 12, 12),
    ) -> None:
        self.control = control
        self.cluster = Cluster(QUERY, mjoin(QUERY), 2, seed=3)
        self.join = RegisteredJoin(QUERY, None, self.control, self.cluster.routing, policy)
        self._key, self._rows, self._chance = key, rows, Random(5)
        self.batches: list[dict[str, list[dict[str, int]]]] = []
        self.found: Counter[tuple[object, ...]] = Counter()
        self.batch()
        self.balancer = Balancer(self.join, ID, policy)

    def log(self, name: str) -> None:
        store_at(self.control.checkpoint).write(f"{name}/{self.cluster.batch}", b"")

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
        table = self.table(number) or self.cluster.routing.table
        for missed in range(self.cluster.table.number + 1, table.number):
            self.cluster.table = self.control.tables.numbered(missed)
        self.cluster.table = table
        schemas = {s.name: s.schema for s in QUERY.streams}
        tables = {name: _table(rows[name], schemas[name]) for name in rows}
        self.found += multiset(self.cluster.run(tables))
        self.report(number)

    def pause(self) -> None:
        """A batch in which no input has a partition."""
        number = self.cluster.batch
        self.log("offsets")
        assert not len(self.cluster.run({}))
        self.report(number)
        self.balancer.catch_up()

    def table(self, batch: int) -> Table | None:
        """The one that rows of a batch are packed by."""
        return self.control.tables.at(batch)

    def report(self, number: int) -> None:
        for report in self.cluster.reports:
            # What takes time are rows, and nothing else.
            report.cpu = {"join": 0.05 * sum(report.routed.values())}
            self.control.reports(ID).write(number, report)
            self.written(number, report.processor)
        store_at(self.control.checkpoint).write(f"commits/{number}", b"")

    def written(self, number: int, processor: int) -> None:
        """A report: its file says that a batch takes two seconds."""
        path = Path(self.control.folder, "reports", ID, f"{number}-{processor}.json")
        os.utime(path, (1_700_000_000 + 2 * number,) * 2)

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


def control_in(where: Path) -> Control:
    """A control directory in a folder."""
    return Control(str(where / "checkpoint" / "plait" / "join"), True)


def last_balanced(control: Control) -> int:
    """The last batch that the balancer of this process has processed; -1 before the first."""
    task = THREAD.task(control.folder, BalanceTask)
    return -1 if task is None else task.done


def _table(rows: list[dict[str, int]], schema: pa.Schema) -> pa.Table:
    columns = {f.name: pa.array([r.get(f.name) for r in rows]).cast(f.type) for f in schema}
    return pa.table(columns, schema)


def any_key(chance: Random) -> int:
    """One of forty."""
    return chance.randrange(40)
