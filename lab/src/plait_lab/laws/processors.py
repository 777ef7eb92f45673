"""Processors without Spark: routed packets, stores that commit or lose, workers that forget.

`Cluster` runs a query the way the Spark runtime does, batch by batch, and lets a test say what goes
wrong: which attempts die and where, and which cached engines a task finds. What it returns are the
results of committed attempts only, as a transactional sink would see them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import count

import pyarrow as pa

from plait.adapt.knowledge import Knowledge
from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Believe, Setting
from plait.groups.routing.packets import CLOCK, Packer, Packet, lean
from plait.groups.routing.routing import route
from plait.groups.routing.table import Table
from plait.machine.clock import REAL
from plait.node.batch import Aside, batch_of_packets
from plait.node.durable.contract import contract
from plait.node.durable.header import Header
from plait.node.durable.store import Engines, OwnEngines
from plait.node.epochs import Epoch
from plait.node.node import Setup
from plait.node.reports.report import Report
from plait.node.task import InheritedState, Processor, StepInputs, portioned
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

MOST_DEATHS = 5
"""Attempts at a batch that may die."""


class Died(Exception):
    """A task was killed."""


def _nobody(_processor: int, _step: int) -> bool:
    return False


@dataclass
class MemoryStore:
    """A store whose writes become durable together, when the batch is committed."""

    contract: str | None = None
    header: str | None = None
    rows: dict[tuple[int, int], tuple[int, bytes]] = field(default_factory=dict)
    written: int = 0
    """Bytes written to segments so far."""

    def read_header(self) -> str | None:
        return self.header

    def write_header(self, text: str) -> None:
        self.header = text

    def read_contract(self) -> str | None:
        return self.contract

    def write_contract(self, text: str) -> None:
        self.contract = text

    def segments(self) -> Iterable[tuple[int, int, int, bytes]]:
        return [(segment, lane, *value) for (segment, lane), value in self.rows.items()]

    def write_segment(self, segment: int, lane: int, newest: int, body: bytes) -> None:
        self.rows[segment, lane] = (newest, body)
        self.written += len(body)

    def remove_segment(self, segment: int, lane: int) -> None:
        del self.rows[segment, lane]


@dataclass
class MemoryTransfers:
    """Partition groups on their way, in memory. What is written stays, also if its task dies."""

    written: dict[tuple[int, int, int], bytes] = field(default_factory=dict)

    def write(self, move: int, sender: int, number: int, raw: bytes) -> None:
        self.written[move, sender, number] = raw

    def numbers(self, move: int, sender: int) -> list[int]:
        return [n for m, s, n in self.written if (m, s) == (move, sender)]

    def read(self, move: int, sender: int, number: int) -> bytes:
        return self.written[move, sender, number]

    def keep_only(self, moves: Collection[int]) -> None:
        self.written = {key: raw for key, raw in self.written.items() if key[0] in moves}


class Cluster:
    """A query on several processors with durable stores."""

    def __init__(
        self,
        query: Query,
        plan: Plan,
        processors: int,
        workers: Sequence[Engines] | None = None,
        *,
        aside: bool = False,
        adapt: PlanPolicy | None = None,
        believe: Believe = Knowledge.statistics,
        tuning: Tuning = USUAL,
        seed: int | None = None,
    ) -> None:
        self.query = query
        self.routing = route(query.graph, processors, groups=tuning.groups, seed=seed)
        narrow = lean(query)
        setting = None if adapt is None else Setting(narrow, adapt, Budget(), DEFAULT, believe)
        self._tuning, self._asked_for = tuning, processors
        setup = Setup(narrow, plan, setting, portioned(tuning), seed or 0)
        self.processor = Processor(setup, contract(query, self.routing), self.routing, aside)
        self._tables = {0: self.routing.table}
        self.transfers = MemoryTransfers()
        self.batch = 0
        self.stores = [MemoryStore() for _ in range(self.routing.processors)]
        self.workers: Sequence[Engines] = workers or (OwnEngines(), OwnEngines())
        self._tokens = count()
        self.reports: list[Report] = []
        self.last_reports: list[Report] = []
        """Those of the last batch in which processors ran."""
        self.aside: list[Aside] = []
        """The rows that the last batch set aside, if that was asked for."""

    @property
    def table(self) -> Table:
        """The routing table of the next batch; the ones before it stay until they are forgotten."""
        return self._tables[max(self._tables)]

    @table.setter
    def table(self, table: Table) -> None:
        self._tables[table.number] = table

    def forget(self) -> None:
        """Remove the tables before the newest, and what was exported for moves that are over."""
        table = self.table
        self._tables = {table.number: table}
        self.transfers.keep_only({move.number for move in table.under_way})

    def add_processor(self) -> None:
        """One more, which joins in with the next batch, not the first, and holds no group yet."""
        known = [Header.from_json(store.header) for store in self.stores if store.header]
        self.stores.append(MemoryStore())
        self.routing = replace(self.routing, processors=len(self.stores))
        beginning = None
        if known:
            beginning = InheritedState(Header.joining(known), self.processor.contract.to_json())
        self.processor = replace(self.processor, routing=self.routing, beginning=beginning)

    def asked(self, query: Query, plan: Plan) -> Cluster:
        """The same state in new processes, with another question that was agreed to."""
        seed = self.routing.seed
        aside = self.processor.aside
        found = Cluster(query, plan, self._asked_for, aside=aside, tuning=self._tuning, seed=seed)
        found.routing = replace(found.routing, processors=self.routing.processors)
        found.processor = replace(
            found.processor,
            routing=found.routing,
            beginning=self.processor.beginning,
            upgraded=self.stores[0].contract,
        )
        found._tables, found.transfers = dict(self._tables), self.transfers
        found.batch, found.stores = self.batch, deepcopy(self.stores)
        found._tokens = self._tokens  # no two states of a query have the same name
        return found

    def packets(
        self, batch: Mapping[str, pa.Table], tasks: int = 1, clock: int = 0
    ) -> list[Packet]:
        """What the pack tasks of all streams send; the clock is in milliseconds."""
        packets: list[Packet] = []
        for name, given in batch.items():
            aside, stream = self.processor.aside, self.query.index(name)
            routing = self.routing.at(self.table)
            clocked = self.query.streams[stream].ahead is not None
            packer = Packer(self.query, stream, routing, aside, self._tuning, clocked=clocked)
            times = pa.array([1_000 * clock] * len(given), pa.int64())
            table = given.append_column(CLOCK, times) if clocked else given
            size = -(-len(table) // tasks) or 1
            for task in range(tasks):
                packets += packer.pack(table.slice(task * size, size).to_batches())
        return packets

    def run(
        self,
        batch: Mapping[str, pa.Table],
        *,
        tasks: int = 1,
        clock: int = 0,
        worker_of: Callable[[int], int] = lambda _: 0,
        die: Callable[[int, int], bool] = _nobody,
        epoch: Epoch | None = None,
    ) -> pa.Table:
        """One batch, repeated until it is committed; the results of the committed attempt.

        A stream that the batch does not name has no partition, and so no pack task. Where no stream
        has one, no processor runs.

        `die(processor, step)` is asked after every result batch and once at the end; all
        processors of an attempt commit together or not at all, as in a micro-batch. After
        `MOST_DEATHS` it is not asked any more: a batch of many results would never end.
        """
        packets = [p._replace(clock=clock) for p in self.packets(batch, tasks, clock)]
        deaths = 0
        while True:
            attempt = deepcopy(self.stores)
            killer = die if deaths < MOST_DEATHS else _nobody
            try:
                found = [
                    self._task(p, packets, attempt[p], self.workers[worker_of(p)], killer, epoch)
                    for p in sorted({packet.processor for packet in packets})
                ]
            except Died:
                deaths += 1
                continue
            self.stores = attempt
            self.batch += 1
            self.reports = [report for _, _, report in found]
            self.last_reports = self.reports or self.last_reports
            self.aside = [rows for _, aside, _ in found for rows in aside]
            results = [rows for batches, _, _ in found for rows in batches]
            return pa.Table.from_batches(results, self.query.schema)

    def _task(
        self,
        number: int,
        packets: list[Packet],
        store: MemoryStore,
        engines: Engines,
        die: Callable[[int, int], bool],
        epoch: Epoch | None,
    ) -> tuple[list[pa.RecordBatch], list[Aside], Report]:
        mine = [p for p in packets if p.processor == number]
        results: list[pa.RecordBatch] = []
        aside: list[Aside] = []
        batch = batch_of_packets(mine, self.processor.setup.query)
        token = f"state {next(self._tokens)}"
        told = StepInputs(token, REAL, epoch, self.table, self._tables.get, self.transfers)
        task = self.processor.task(number, store, engines)
        for step, found in enumerate(task.run(batch, told)):
            if die(number, step):
                raise Died
            if isinstance(found, Report):
                return results, aside, found
            if isinstance(found, Aside):
                aside.append(found)
            else:
                results.append(found)
        raise AssertionError("a processor ended without a report")
