"""One batch of a node whose state is durable: take its engine, step, write, keep the engine.

*Correct output.* That of the node, each result exactly once, if the store commits what a batch
wrote together with what it returned, and a batch that is repeated begins from the store as it was
before it.

*Invariants.* The store holds the truth: the rows of the live windows, one segment per batch, stream
and kind, and the header. The engine in memory is a cache of it and is used only when its token is
the header's; otherwise it is rebuilt from the segments. A batch that fails half-way leaves no
engine behind, or one whose token no header has. Partition groups come and go between two batches
(`plait.groups.moves.moving`): rows that arrive are stored before the batch is joined.

*Cost.* A batch writes its own rows and a header of constant size, and removes the segments that
have expired. Rebuilding costs the live windows.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.engine.intake.watermarks import watermarks_of
from plait.errors import CheckpointDamaged
from plait.groups.moves.carrier import RESTORE, Carrier, StoredRows, looked_through
from plait.groups.moves.lanes import FLAGGED, PLAIN, TAKEN_IN, kind_of, lane_of, stream_of
from plait.groups.moves.moving import MoveActions, enter
from plait.groups.moves.transfer import NOWHERE, Transfers
from plait.groups.routing.routing import Routing
from plait.groups.routing.rows import encode_rows, gathered
from plait.groups.routing.table import Table
from plait.machine.clock import Clock
from plait.node.batch import Aside, Batch, check_table
from plait.node.durable.contract import Contract
from plait.node.durable.header import Header
from plait.node.durable.store import Engines, Live, Store
from plait.node.durable.upgrade import changes, check_contract, cutoffs_before, watermarks_before
from plait.node.epochs import Epoch
from plait.node.node import Node, Setup
from plait.node.reports.report import Report, added, plus
from plait.tuning import Tuning


def portioned(tuning: Tuning) -> Tuning:
    """A tuning for tasks: the engine finds results in portions of the size in which they leave."""
    return replace(tuning, portion_rows=tuning.result_rows)


def _no_table(_number: int) -> None:
    return None


@dataclass(frozen=True, slots=True)
class StepInputs:
    """What the host of a node tells it for one batch."""

    token: str
    """The name of the state after the batch; no two states of a query have the same."""
    clock: Clock
    epoch: Epoch | None = None
    """The newest decision of the driver."""
    table: Table | None = None
    """The routing table of this batch; None is the one that the checkpoint began with."""
    earlier_table: Callable[[int], Table | None] = _no_table
    """An earlier routing table, by its number: no batch may have gone by it yet."""
    transfers: Transfers = NOWHERE
    """Where partition groups are put on their way to other processors."""
    notes: Sequence[str] = ()
    """What the report is to tell, too."""
    delivery: int | None = None
    """The number of the batch, if rows go to files of a table from here; None: elsewhere."""


class InheritedState(NamedTuple):
    """What a processor begins with that joins in where others are already."""

    header: Header
    contract: str
    """The contract of the others so far."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What every processor of a query runs: a value that travels to where the tasks are."""

    setup: Setup
    contract: Contract
    routing: Routing
    aside: bool = False
    """Whether rows that are set aside are handed out."""
    beginning: InheritedState | None = None
    """What one begins with that joins in later; None: there was no batch before."""
    upgraded: str | None = None
    """The contract in the state, if it was agreed to go on with another question."""

    def task(self, number: int, store: Store, engines: Engines) -> Task:
        """The batches of one of them."""
        return Task(
            setup=self.setup,
            contract=self.contract,
            routing=self.routing,
            aside=self.aside,
            number=number,
            store=store,
            engines=engines,
            beginning=self.beginning,
            upgraded=self.upgraded,
        )


@dataclass(frozen=True, slots=True)
class Task:
    """The batches of one node, wherever they are run."""

    setup: Setup
    contract: Contract
    routing: Routing
    aside: bool
    number: int
    store: Store
    engines: Engines
    beginning: InheritedState | None = None
    upgraded: str | None = None

    def run(self, batch: Batch, told: StepInputs) -> Iterator[pa.RecordBatch | Aside | Report]:
        """Join one batch; yields results, rows set aside, and at the end the report."""
        laps = [_now(told.clock)]
        header, live, rebuilt = self._open()
        table = self._table(told)
        check_table(batch, table)
        missed = map(told.earlier_table, range(header.moving.table + 1, table.number))
        entered = enter(
            header.moving, table, self.number, header.batch + 1, list(filter(None, missed))
        )
        try:
            if entered.clean:
                live, rebuilt = self._cleaned(header, live, entered), True
            taken_in, answers = self._take_in(header, live, entered, told)
            node = Node(
                self.setup,
                header,
                live.engine,
                clock=told.clock,
                number=self.number,
                every_batch=True,
            )
            node.moving = entered.moving
            laps.append(_now(told.clock))
            delivered = header.delivered
            for found in self._found(node.step(batch, told.epoch)):
                rows = found.rows if isinstance(found, Aside) else found
                if told.delivery is not None and rows.num_rows:
                    delivered = told.delivery
                yield found
            laps.append(_now(told.clock))
            live.engine, live.token = node.engine, told.token
            report = node.report
            report.rebuilt = rebuilt
            report.unwritten = dict(header.unwritten)
            report.notes = [*header.notes, *told.notes]
            report.written_bytes = taken_in + self._write_segments(node, live, batch)
            report.segments = len(live.segments)
            report.table, report.table_before = table.number, header.moving.table
            report.moves, report.delivered = answers, header.delivered
            self._answer(node, live, batch, entered, told)
            report.state_rows = sum(s.rows for s in node.engine.sizes())
            report.state_bytes = node.engine.nbytes
            laps.append(_now(told.clock))
            report.seconds, report.cpu = (_stages(times) for times in zip(*laps, strict=True))
            report.total = added(header.total, report)
            checksum = _checksum(self.contract.to_json(), live.segments)
            after = replace(node.header(told.token, checksum), delivered=delivered)
            # Assumption: state-and-output-together
            self.store.write_header(after.to_json())
        except BaseException:
            self.engines.drop(self.number, live)
            raise
        self.engines.put(self.number, live)
        yield report

    def _found(self, found: Iterator[pa.RecordBatch | Aside]) -> Iterator[pa.RecordBatch | Aside]:
        """The same. Results are found a few at a time; they leave together."""
        aside: deque[Aside] = deque()

        def results() -> Iterator[pa.RecordBatch]:
            for item in found:
                if not isinstance(item, Aside):
                    yield item
                elif self.aside:
                    aside.append(item)

        tuning = self.setup.tuning
        for rows in gathered(results(), tuning.result_rows, tuning.gathered_bytes):
            while aside:
                yield aside.popleft()
            yield rows
        yield from aside

    def not_written(self, what: str, note: str) -> None:
        """Count a report or an event log that could not be written; the next report tells it.

        The count is kept in the header, which is committed with the batch.
        """
        text = self.store.read_header()
        assert text is not None, "a batch was written before"
        header = Header.from_json(text, self.setup.query)
        unwritten = plus(header.unwritten, {what: 1})
        header = replace(header, unwritten=unwritten, notes=(*header.notes, note))
        self.store.write_header(header.to_json())

    # -- from the store

    def _open(self) -> tuple[Header, Live, bool]:
        """Header and engine before the batch, and whether the engine had to be rebuilt."""
        text, query = self.store.read_header(), self.setup.query
        if text is None:
            self.store.write_contract(self.contract.to_json())
            header = Header.new(query)
            if self.beginning is not None:
                header = self._noted(*self.beginning)
            return header, self._new(header), False
        header = self._asked(Header.from_json(text, query))
        cached = self.engines.take(self.number, header.token, query)
        if cached is not None:
            return header, cached, False
        stored, asked = self.store.read_contract(), self.contract.to_json()
        if stored is not None and stored == self.upgraded:
            self._upgrade(header, stored)
            # What the loop knew is about the old question.
            header = replace(header, loop=None, checksum=None)
        elif stored != asked:
            check_contract(stored, self.contract)
        assert stored is not None, "without a contract it is refused"
        if stored != asked:
            self.store.write_contract(asked)
            header = self._noted(header, stored)
        return header, self._rebuilt(header, stored), True

    def _upgrade(self, header: Header, stored: str) -> None:
        """Make the segments those of another question: rows that the old one still needed.

        So what is found from now on does not depend on how rows came or where they were.
        """
        cutoffs = cutoffs_before(stored, header)
        for segment in self._segments(header, stored):
            number, lane, _, _ = segment
            stream = stream_of(lane)
            parts = [part.rows for part in self._carrier.stored([segment], header.moving)]
            rows = pa.concat_batches(parts)
            times = event_times(rows.column(self.setup.query.streams[stream].time))
            rows = rows.filter(pa.array(times >= cutoffs[stream]))
            if rows.num_rows:
                newest = int(times.max())
                self.store.write_segment(number, lane, newest, encode_rows(rows))
            else:
                self.store.remove_segment(number, lane)

    def _new(self, header: Header) -> Live:
        """An empty engine that runs the plan to go on with."""
        plan = header.running(self.setup.query, self.setup.plan)
        return Live(header.token, self.setup.engine(plan, self.engines.memory(self.number)))

    def _asked(self, header: Header) -> Header:
        """A plan that is asked for at a restart is newer than every decision of the driver's."""
        if header.goes_on(self.setup.plan):
            return header
        return replace(header, followed=replace(header.followed, held=False))

    def _noted(self, header: Header, stored: str) -> Header:
        """Tell what is asked otherwise, and let no watermark go back because a delay has grown."""
        notes = [f"{change} from this batch on" for change in changes(stored, self.contract)]
        floors = tuple(watermarks_before(stored, header))
        return replace(header, floors=floors, notes=(*header.notes, *notes))

    def _rebuilt(self, header: Header, written_for: str) -> Live:
        """The engine of this state, made from its segments."""
        live = self._new(header)
        stored = self._segments(header, written_for)
        live.segments = deque((segment, lane, newest) for segment, lane, newest, _ in stored)
        self._fill(live, header, list(self._carrier.stored(stored, header.moving)))
        return live

    def _segments(self, header: Header, written_for: str) -> list[tuple[int, int, int, bytes]]:
        """All segments, oldest first, or CheckpointDamaged if they are not those of this state."""
        stored = sorted(self.store.segments())
        found = _checksum(
            written_for, ((segment, lane, newest) for segment, lane, newest, _ in stored)
        )
        if header.checksum not in (None, found):
            raise CheckpointDamaged(
                f"the state of processor {self.number} has {len(stored)} segments, but they are "
                f"not those that batch {header.batch} left there for this question",
                remedy=RESTORE,
            )
        return stored

    def _fill(self, live: Live, header: Header, given: Sequence[StoredRows]) -> None:
        """Take rows into the engine whose results were found before."""
        watermarks = watermarks_of(self.setup.query, header.newest, header.floors)
        arrivals = {}
        for stream in sorted({part.stream for part in given}):
            parts = [part for part in given if part.stream == stream]
            rows = pa.concat_batches([part.rows for part in parts])
            flags = None
            if any(part.flag for part in parts):
                lengths = [part.rows.num_rows for part in parts]
                flags = np.repeat(np.array([part.flag for part in parts], np.int64), lengths)
            admitted = live.engine.admit(stream, rows, BEFORE_ALL_TIMES, flags)
            arrivals[stream] = admitted.arrivals
        live.engine.restore(arrivals, watermarks)

    # -- moves of partition groups

    @property
    def _carrier(self) -> Carrier:
        return Carrier(self.setup.query, self.routing, self.number)

    def _cleaned(self, header: Header, live: Live, entered: MoveActions) -> Live:
        """An engine without the rows that groups which come back have left behind."""
        self.engines.drop(self.number, live)
        header = replace(header, moving=entered.moving, checksum=None)
        return self._rebuilt(header, "")

    def _take_in(
        self, header: Header, live: Live, entered: MoveActions, told: StepInputs
    ) -> tuple[int, list[dict[str, Any]]]:
        """Take in the groups that arrive, and make their rows durable; bytes written, answers."""
        written, answers, parts = 0, [], list[StoredRows]()
        for move in entered.take_in:
            began = told.clock.wall()
            exported = header.batch + 1 - header.moving.begun[move.number]
            given = self._carrier.arrived(move, told.transfers, exported)
            self._fill(live, header, given)
            parts += given
            took = {
                "rows": sum(part.rows.num_rows for part in given),
                "seconds": told.clock.wall() - began,
            }
            answers.append({"move": move.number, "what": "taken in"} | took)
        # Several moves may arrive with one batch; a stream has one segment of what was taken in.
        for stream in sorted({part.stream for part in parts}):
            rows = pa.concat_batches([part.rows for part in parts if part.stream == stream])
            lane = lane_of(stream, TAKEN_IN)
            written += self._write(live, header.batch + 1, lane, rows, encode_rows(rows))
        return written, answers

    def _answer(
        self, node: Node, live: Live, batch: Batch, entered: MoveActions, told: StepInputs
    ) -> None:
        """Export what is asked for, and tell the manager how moves stand."""
        carrier, table = self._carrier, self._table(told)
        for move in entered.export:
            number = node.batch - entered.moving.begun[move.number]
            parts = [StoredRows(stream, 0, rows) for stream, rows, _ in self._admitted(node, batch)]
            if not number:
                stored = self.store.segments()
                earlier = sorted(s for s in stored if _was_there(node.batch, s[0], s[1]))
                parts = [*carrier.stored(earlier, entered.moving), *parts]
            transfer = carrier.transfer(move, table, number, parts)
            raw = transfer.to_bytes()
            told.transfers.write(move.number, self.number, number, raw)
            count = sum(rows.num_rows for rows in transfer.rows.values())
            sent = {"rows": count, "bytes": len(raw)}
            node.report.moves.append({"move": move.number, "what": "sent"} | sent)
        checked, answers = looked_through(entered, told.transfers)
        node.report.moves += answers
        segments = [segment for segment, _, _ in live.segments]
        for move in entered.watch:
            begun = entered.moving.begun[move.number]
            if not any(_was_there(begun, segment, lane) for segment, lane, _ in live.segments):
                node.report.moves.append({"move": move.number, "what": "all old purged"})
        node.moving = replace(entered.moving, checked=checked).purged(segments)

    def _table(self, told: StepInputs) -> Table:
        return self.routing.table if told.table is None else told.table

    # -- to the store

    def _admitted(
        self, node: Node, batch: Batch
    ) -> Iterator[tuple[int, pa.RecordBatch, npt.NDArray[np.int64] | None]]:
        """The rows of this batch that were not late, by stream, and their flags."""
        for stream in sorted(batch.rows):
            rows, flags, is_late = batch.rows[stream], batch.flags.get(stream), node.is_late[stream]
            if is_late is not None:
                rows = rows.filter(pa.array(~is_late))
                flags = None if flags is None else flags[~is_late]
            if rows.num_rows:
                yield stream, rows, flags

    def _write_segments(self, node: Node, live: Live, batch: Batch) -> int:
        """Write the rows of this batch and remove what has expired; the bytes written."""
        written, watermarks = 0, node.watermarks
        for stream, rows, flags in self._admitted(node, batch):
            as_it_came = batch.bodies.get(stream) if node.is_late[stream] is None else None
            for flag in [0] if flags is None else np.unique(flags).tolist():
                part = rows if flags is None else rows.filter(pa.array(flags == flag))
                body = encode_rows(part) if as_it_came is None else b"".join(as_it_came[flag])
                lane = lane_of(stream, FLAGGED + flag if flag else PLAIN)
                written += self._write(live, node.batch, lane, part, body)
        cutoffs = [live.engine.cutoff(s, watermarks) for s in range(len(watermarks))]
        left: deque[tuple[int, int, int]] = deque()
        for segment, lane, newest in live.segments:
            if newest < cutoffs[stream_of(lane)]:
                self.store.remove_segment(segment, lane)
            else:
                left.append((segment, lane, newest))
        live.segments = left
        return written

    def _write(self, live: Live, segment: int, lane: int, rows: pa.RecordBatch, body: bytes) -> int:
        """Write a segment, if there are rows; the bytes written."""
        if not rows.num_rows:
            return 0
        times = event_times(rows.column(self.setup.query.streams[stream_of(lane)].time))
        newest = int(times.max())
        self.store.write_segment(segment, lane, newest, body)
        live.segments.append((segment, lane, newest))
        return len(body)


def _was_there(batch: int, segment: int, lane: int) -> bool:
    """Whether a segment was there before the rows of a batch came.

    What was taken in with the batch was: its rows had come to another processor.
    """
    return segment < batch or (segment == batch and kind_of(lane) == TAKEN_IN)


def _now(clock: Clock) -> tuple[float, float]:
    return clock.wall(), clock.cpu()


def _stages(times: Sequence[float]) -> dict[str, float]:
    """How long each stage of a batch was, by when it began and when the last one ended."""
    stages = ("prepare", "join", "write")
    return {stage: b - a for stage, a, b in zip(stages, times, times[1:], strict=False)}


def _checksum(contract: str, segments: Iterable[tuple[int, int, int]]) -> int:
    """A checksum of which segments there are, and of the question they are there for.

    Each file of a state store may be whole and yet be that of another batch or query.
    """
    return zlib.crc32(json.dumps([contract, sorted(segments)]).encode())
