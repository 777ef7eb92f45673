"""One batch of a node whose state is durable: take its engine, step, write, keep the engine.

*Correct output.* That of the node, each result exactly once, if the store commits what a batch
wrote together with what it returned, and a batch that is repeated begins from the store as it was
before it.

*Invariants.* The store holds the truth: the rows of the live windows, one segment per batch and
stream, and the header. The engine in memory is a cache of it and is used only when its token is the
header's; otherwise it is rebuilt from the segments. A batch that fails half-way leaves no engine
behind, or one whose token no header has.

*Cost.* A batch writes its own rows and a header of constant size, and removes the segments that
have expired. Rebuilding costs the live windows.
"""

from __future__ import annotations

import json
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from plait.engine.times import BEFORE_ALL_TIMES, event_times
from plait.engine.watermarks import watermarks_of
from plait.errors import CheckpointDamaged
from plait.node.batch import Aside, Batch
from plait.node.contract import Contract, check_contract, delays_before
from plait.node.epochs import Epoch
from plait.node.header import Header
from plait.node.node import Clock, Node, Setup
from plait.node.report import Report, added, plus
from plait.node.store import Engines, Live, Store
from plait.query.durations import show_micros
from plait.query.query import NEVER_LATE
from plait.route.rows import decode_rows, encode_rows, gathered
from plait.tuning import Tuning

_AFTER_ALL_TIMES = 2**63 - 1
_RESTORE = (
    "put the files of the state back from a copy of the checkpoint, or begin with a new "
    "checkpoint location"
)


def portioned(tuning: Tuning) -> Tuning:
    """A tuning for tasks: the engine finds results in portions of the size in which they leave."""
    return replace(tuning, portion_rows=tuning.result_rows)


@dataclass(frozen=True, slots=True)
class Told:
    """What the host of a node tells it for one batch."""

    token: str
    """The name of the state after the batch; no two states of a query have the same."""
    clock: Clock
    epoch: Epoch | None = None
    """The newest decision of the driver."""
    notes: Sequence[str] = ()
    """What the report is to tell, too."""


@dataclass(frozen=True, slots=True)
class Processor:
    """What every processor of a query runs: a value that travels to where the tasks are."""

    setup: Setup
    contract: Contract
    aside: bool = False
    """Whether rows that are set aside are handed out."""

    def task(self, number: int, store: Store, engines: Engines) -> Task:
        """The batches of one of them."""
        return Task(self.setup, self.contract, self.aside, number, store, engines)


@dataclass(frozen=True, slots=True)
class Task:
    """The batches of one node, wherever they are run."""

    setup: Setup
    contract: Contract
    aside: bool
    number: int
    store: Store
    engines: Engines

    def run(self, batch: Batch, told: Told) -> Iterator[pa.RecordBatch | Aside | Report]:
        """Join one batch; yields results, rows set aside, and at the end the report."""
        wall = told.clock.wall
        began = wall()
        header, live, rebuilt = self._open()
        try:
            node = Node(
                self.setup,
                header,
                live.engine,
                clock=told.clock,
                number=self.number,
                every_batch=True,
            )
            ready = wall()
            yield from self._found(node.step(batch, told.epoch))
            joined = wall()
            live.engine, live.token = node.engine, told.token
            report = node.report
            report.rebuilt = rebuilt
            report.unwritten = dict(header.unwritten)
            report.notes = [*header.notes, *told.notes]
            report.written_bytes = self._write_segments(node, live, batch)
            report.segments = len(live.segments)
            report.state_rows = sum(s.rows for s in node.engine.sizes())
            report.state_bytes = node.engine.nbytes
            report.seconds = {
                "prepare": ready - began,
                "join": joined - ready,
                "write": wall() - joined,
            }
            report.total = added(header.total, report)
            checksum = _checksum(self.contract.to_json(), live.segments)
            self.store.write_header(node.header(told.token, checksum).to_json())
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
            return header, self._new(header), False
        header = self._asked(Header.from_json(text, query))
        cached = self.engines.take(self.number, header.token, query)
        if cached is not None:
            return header, cached, False
        stored, asked = self.store.read_contract(), self.contract.to_json()
        if stored != asked:
            check_contract(stored, self.contract)
            assert stored is not None, "without a contract it is refused"
            self.store.write_contract(asked)
            header = self._delayed(header, stored)
        return header, self._rebuilt(header, stored), True

    def _new(self, header: Header) -> Live:
        """An empty engine that runs the plan to go on with."""
        plan = header.running(self.setup.query, self.setup.plan)
        return Live(header.token, self.setup.engine(plan, self.engines.memory(self.number)))

    def _asked(self, header: Header) -> Header:
        """A plan that is asked for at a restart is newer than every decision of the driver's."""
        if header.goes_on(self.setup.plan):
            return header
        return replace(header, followed=replace(header.followed, held=False))

    def _delayed(self, header: Header, stored: str) -> Header:
        """Let no watermark go back because a delay has grown."""
        notes, newest = list(header.notes), list(header.newest)
        for s, before in enumerate(delays_before(stored, self.contract)):
            stream = self.setup.query.streams[s]
            if before == stream.delay:
                continue
            was = "unlimited" if before >= NEVER_LATE else show_micros(before)
            now = show_micros(stream.delay)
            notes.append(f"the delay of {stream.name!r} was {was} and is {now} from this batch on")
            if newest[s] > BEFORE_ALL_TIMES:
                more = max(0, stream.delay - before)
                newest[s] = min(newest[s] + more, _AFTER_ALL_TIMES)
        return replace(header, newest=tuple(newest), notes=tuple(notes))

    def _rebuilt(self, header: Header, written_for: str) -> Live:
        """The engine of this state, made from its segments."""
        live = self._new(header)
        stored = sorted(self.store.segments())
        live.segments = deque((segment, stream, newest) for segment, stream, newest, _ in stored)
        if header.checksum not in (None, _checksum(written_for, live.segments)):
            raise CheckpointDamaged(
                f"the state of processor {self.number} has {len(stored)} segments, but they are "
                f"not those that batch {header.batch} left there for this question",
                remedy=_RESTORE,
            )
        arrivals = {
            stream: live.engine.admit(stream, rows, BEFORE_ALL_TIMES).arrivals
            for stream, rows in self._rows(stored).items()
        }
        live.engine.restore(arrivals, watermarks_of(self.setup.query, header.newest))
        return live

    def _rows(self, stored: Iterable[tuple[int, int, int, bytes]]) -> Mapping[int, pa.RecordBatch]:
        """The rows of the segments, by stream."""
        rows: dict[int, list[pa.RecordBatch]] = {}
        for segment, stream, _, body in stored:
            try:
                rows.setdefault(stream, []).extend(decode_rows(body))
            except (pa.ArrowException, OSError) as error:
                name = self.setup.query.names[stream]
                raise CheckpointDamaged(
                    f"segment {segment} of stream {name!r} in the state of processor "
                    f"{self.number} cannot be read: {error}",
                    remedy=_RESTORE,
                ) from error
        return {stream: pa.concat_batches(parts) for stream, parts in rows.items()}

    # -- to the store

    def _write_segments(self, node: Node, live: Live, batch: Batch) -> int:
        """Write the rows of this batch and remove what has expired; the bytes written."""
        written, watermarks = 0, node.watermarks
        for stream in sorted(batch.rows):
            rows, bodies = batch.rows[stream], batch.bodies.get(stream)
            is_late = node.is_late[stream]
            if is_late is not None:
                rows, bodies = rows.filter(pa.array(~is_late)), None
            if rows.num_rows:
                body = encode_rows(rows) if bodies is None else b"".join(bodies)
                times = event_times(rows.column(self.setup.query.streams[stream].time))
                newest = int(times.max())
                self.store.write_segment(node.batch, stream, newest, body)
                live.segments.append((node.batch, stream, newest))
                written += len(body)
        cutoffs = [live.engine.cutoff(s, watermarks) for s in range(len(watermarks))]
        left: deque[tuple[int, int, int]] = deque()
        for segment, stream, newest in live.segments:
            if newest < cutoffs[stream]:
                self.store.remove_segment(segment, stream)
            else:
                left.append((segment, stream, newest))
        live.segments = left
        return written


def _checksum(contract: str, segments: Iterable[tuple[int, int, int]]) -> int:
    """A checksum of which segments there are, and of the question they are there for.

    Each file of a state store may be whole and yet be that of another batch or query.
    """
    return zlib.crc32(json.dumps([contract, sorted(segments)]).encode())
