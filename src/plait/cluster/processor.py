"""One processor: an engine whose base windows are durable in a store.

*Correct output.* Over all batches, the results whose tuples were routed to this processor, each
exactly once, if the store commits what a batch wrote together with what it returned, and a batch
that is repeated begins from the store as it was before it.

*Invariants.* The store holds the truth: the rows of the live windows, one segment per batch and
stream, and a header with the newest event time of every stream, when each was last heard of, sums
of what was counted, what the adaptive loop knows, and a token that names this very state. The
engine in memory is a cache of it and is used only when its token is the header's; otherwise it is
rebuilt from the segments. A batch that fails half-way leaves no engine behind, or one whose token
no header has.

*Cost.* A batch writes its own rows and a header of constant size, and removes the segments that
have expired. Rebuilding costs the live windows.

*Ties and time.* Rows are late against the watermarks at the beginning of the batch, which follow
from the header, so all processors agree: every pack task tells every processor how far it has come.
"""

from __future__ import annotations

import json
import time
import uuid
import zlib
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from plait.adapt.adapter import Adapter
from plait.adapt.decide import Decision
from plait.adapt.loop import Setting
from plait.cluster.contract import Contract, check_contract, delays_before
from plait.cluster.epochs import Epoch, Followed
from plait.cluster.idle import followed
from plait.cluster.packets import LATE, Packet
from plait.cluster.report import Report, added, plus
from plait.cluster.rows import decode_rows, encode_rows, gathered
from plait.engine.engines import Engine, make_engine
from plait.engine.ingest import Arrivals
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.migrate.record import Migration
from plait.engine.migrate.strategy import migrate, plan_of, settled
from plait.engine.times import BEFORE_ALL_TIMES, event_times
from plait.engine.watermarks import watermarks_of
from plait.engine.windows import Windows
from plait.errors import CheckpointDamaged, MigrationError, PlaitError
from plait.kernels.memory import HEAP, Memory
from plait.plan.jtree import Join, Leaf
from plait.plan.routed import Plan
from plait.plan.serde import from_dict, to_dict
from plait.query.durations import show_micros
from plait.query.query import Query
from plait.tuning import USUAL, Tuning

_AFTER_ALL_TIMES = 2**63 - 1
_RESTORE = (
    "put the files of the state back from a copy of the checkpoint, or begin with a new "
    "checkpoint location"
)


class Store(Protocol):
    """Where a processor's durable state is; whoever owns it commits batch by batch."""

    def read_header(self) -> str | None:
        """The header, None before the first batch."""

    def write_header(self, text: str) -> None:
        """Replace the header."""

    def read_contract(self) -> str | None:
        """What the state was written for."""

    def write_contract(self, text: str) -> None:
        """Say what the state is written for, once."""

    def segments(self) -> Iterable[tuple[int, int, int, bytes]]:
        """All segments: number, stream, newest event time, rows."""

    def write_segment(self, segment: int, stream: int, newest: int, body: bytes) -> None:
        """Add a segment."""

    def remove_segment(self, segment: int, stream: int) -> None:
        """Remove a segment that has expired."""


@dataclass(slots=True)
class Live:
    """An engine in memory, and what is durable of it."""

    token: str
    engine: Engine
    newest: list[int]
    segments: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(segment, stream, newest event time) of everything in the store, oldest first."""


class Engines(Protocol):
    """The engines of earlier batches, a cache: the store is the truth."""

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine of a processor if it is that of the state with this token."""

    def memory(self, number: int) -> Memory:
        """Where the arrays of a new engine live."""

    def put(self, number: int, live: Live) -> None:
        """Keep an engine that `take` gave or that lives in `memory`."""

    def drop(self, number: int, live: Live) -> None:
        """Forget an engine that was left half-way."""


class OwnEngines:
    """Engines in the memory of this process."""

    def __init__(self) -> None:
        self._engines: dict[int, Live] = {}

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine, if it is here and of this state."""
        del query
        live = self._engines.pop(number, None)
        return live if live is not None and live.token == token else None

    def memory(self, number: int) -> Memory:
        """The heap."""
        del number
        return HEAP

    def put(self, number: int, live: Live) -> None:
        """Keep it."""
        self._engines[number] = live

    def drop(self, number: int, live: Live) -> None:
        """Nothing was kept while it was in use."""


@dataclass(frozen=True, slots=True)
class Aside:
    """Rows of a stream that were not joined, and why."""

    stream: int
    reason: str
    rows: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Processor:
    """What a processor runs; a value that travels to where the tasks are."""

    query: Query
    plan: Plan
    contract: Contract
    aside: bool = False
    """Whether rows that are set aside are handed out."""
    adapt: Setting | None = None
    """By what to change the plan while it runs; None leaves it as it is."""
    tuning: Tuning = USUAL
    seed: int = 0
    """What the hashes inside an engine follow from; any will do, and it need not be durable."""

    def run(
        self,
        number: int,
        packets: Iterable[Packet],
        store: Store,
        engines: Engines,
        epoch: Epoch | None = None,
        notes: Sequence[str] = (),
    ) -> Iterator[pa.RecordBatch | Aside | Report]:
        """Join one batch of packets; yields results, rows set aside, and at the end the report.

        If the `epoch` is new, the engine goes on with its plan; an engine that is still in the
        middle of a migration does so in a later batch. The report has the `notes` too.
        """
        began = time.perf_counter()
        header = self._header(store)
        live, rebuilt = self._live(number, header, store, engines)
        report = Report(number, header["batch"] + 1, rebuilt=rebuilt)
        report.unwritten = header.get("unwritten", {})
        report.notes = [*header.get("notes", ()), *notes]
        try:
            followed = yield from self._migrate(live, self._followed(header), epoch, report)
            report.epoch = followed.last
            header |= followed.to_dict()
            adapter = None if followed.holds(epoch) else self._adapter(number, header)
            yield from self._join(packets, store, live, header, report, began, adapter)
        except BaseException:
            engines.drop(number, live)
            raise
        engines.put(number, live)
        yield report

    def _followed(self, header: dict[str, Any]) -> Followed:
        """The epochs that were followed; a plan that is asked for at a restart is newer than all.

        Then the plan of the last epoch is gone, and nobody holds the processor to it.
        """
        found = Followed.of(header)
        return found if self._goes_on(header) else replace(found, held=False)

    def _migrate(
        self, live: Live, followed: Followed, epoch: Epoch | None, report: Report
    ) -> Generator[pa.RecordBatch, None, Followed]:
        """Go over to the plan of a new epoch; yields results that had waited in the old engine."""
        live.engine = settled(live.engine)
        if epoch is None or not followed.is_new(epoch) or live.engine.migrating:
            return followed
        if epoch.plan is None or plan_of(live.engine) == epoch.plan:
            return followed.after(epoch)
        start = report.batch - 1
        try:
            done = migrate(live.engine, epoch.plan, epoch.strategy, start=start)
        except MigrationError as error:  # the query runs on as it was
            refused = Migration(epoch.strategy, plan_of(live.engine), epoch.plan, start=start)
            report.migrations.append(replace(refused, refused=str(error)).to_dict())
            return followed.after(epoch, obeyed=False)
        live.engine = done.engine
        if not live.engine.migrating:
            report.migrations.append(done.record.to_dict())
        for found in done.waited:
            report.results += found.num_rows
            yield found
        return followed.after(epoch)

    def _join(
        self,
        packets: Iterable[Packet],
        store: Store,
        live: Live,
        header: dict[str, Any],
        report: Report,
        began: float,
        adapter: Adapter | None,
    ) -> Iterator[pa.RecordBatch | Aside]:
        names = self.query.names
        came = _gather(packets, names, report)
        ready = time.perf_counter()
        watermarks = self._watermarks(live.newest)
        arrivals: dict[int, Arrivals] = {}
        kept: dict[int, pa.RecordBatch] = {}
        for stream, parts in sorted(came.rows.items()):
            batch = pa.concat_batches(parts)
            admitted = live.engine.admit(stream, batch, watermarks[stream])
            arrivals[stream] = admitted.arrivals
            kept[stream] = batch
            if admitted.late is not None:
                late = self._times(stream, batch) < watermarks[stream]
                kept[stream] = batch.filter(pa.array(~late))
                del came.bodies[stream]
                mine = batch.filter(
                    pa.array(late & (np.arange(len(late)) < came.originals[stream]))
                )
                _add(report.late, names[stream], mine.num_rows)
                came.aside.append(Aside(stream, LATE, mine))
        if self.aside:
            yield from (found for found in came.aside if found.rows.num_rows)
        heard = [
            came.clock if s in came.newest else since
            for s, since in enumerate(header.get("heard", [came.clock] * len(names)))
        ]
        newest = [max(n, came.newest.get(s, n)) for s, n in enumerate(live.newest)]
        live.newest = followed(self.query.streams, newest, heard, came.clock)
        watermarks = self._watermarks(live.newest)
        if adapter is None:
            results = live.engine.push(arrivals, watermarks)
        else:
            results = self._adapting(adapter, live, arrivals, watermarks, report)
        # Results are found slice by slice, often a few at a time; they leave together.
        for found in gathered(results, self.tuning.result_rows, self.tuning.gathered_bytes):
            report.results += found.num_rows
            yield found
        joined = time.perf_counter()
        if isinstance(live.engine, ParallelTrack):
            report.migrations.append(live.engine.record.to_dict())
        plan = plan_of(live.engine)
        report.plan = str(plan)
        report.written_bytes = self._write_segments(
            store, live, report.batch, kept, came.bodies, watermarks
        )
        live.token = uuid.uuid4().hex
        report.segments = len(live.segments)
        report.state_rows = sum(s.rows for s in live.engine.sizes())
        report.state_bytes = live.engine.nbytes
        report.watermarks = {
            name: w for name, w in zip(names, watermarks, strict=True) if w > BEFORE_ALL_TIMES
        }
        report.seconds = {
            "prepare": ready - began,
            "join": joined - ready,
            "write": time.perf_counter() - joined,
        }
        report.total = added(header.get("total", {}), report)
        written = {
            "batch": report.batch,
            "token": live.token,
            "newest": live.newest,
            "heard": heard,
            "total": report.total,
            **{name: header[name] for name in ("epoch", "followed", "held")},
            "plan": _stored(plan),
            "asked": _stored(self.plan),
            "adapt": header.get("adapt") if adapter is None else adapter.to_dict(),
            "state": _sum(self.contract.to_json(), live.segments),
        }
        store.write_header(json.dumps(written))

    def not_written(self, store: Store, what: str, note: str) -> None:
        """Count a report or an event log that could not be written; the next report tells it.

        The count is kept in the header, which is committed with the batch.
        """
        header = self._header(store)
        header["unwritten"] = plus(header.get("unwritten", {}), {what: 1})
        header["notes"] = [*header.get("notes", ()), note]
        store.write_header(json.dumps(header))

    # -- the adaptive loop

    def _adapter(self, number: int, header: dict[str, Any]) -> Adapter | None:
        """The loop as it was after the last batch, if there is one."""
        if self.adapt is None:
            return None
        state = header.get("adapt")
        return Adapter(self.adapt, state=state, processor=number, every_batch=True)

    def _adapting(
        self,
        adapter: Adapter,
        live: Live,
        arrivals: dict[int, Arrivals],
        watermarks: list[int],
        report: Report,
    ) -> Iterator[pa.RecordBatch]:
        """Join a batch, let the loop look at it, and do what it says."""
        newest = max(live.newest)
        for piece in adapter.pieces(live.engine, report.batch, arrivals, watermarks, newest):
            self._carry_out(adapter, adapter.foresee(live.engine, piece), live, report)
            adapter.begin(live.engine)
            yield from adapter.timed(live.engine.push(piece.arrivals, piece.watermarks))
            self._carry_out(adapter, adapter.end(live.engine, piece), live, report)
        report.events = adapter.events()

    def _carry_out(
        self, adapter: Adapter, decision: Decision | None, live: Live, report: Report
    ) -> None:
        if decision is None or decision.plan is None:
            return
        try:
            done = migrate(
                settled(live.engine),
                decision.plan,
                "auto",
                start=report.batch,
                choose=adapter.chooser(live.engine),
            )
            live.engine, record = done.engine, done.record
        except PlaitError as error:  # the query runs on as it was
            asked = Migration("auto", plan_of(live.engine), decision.plan, start=report.batch)
            record = replace(asked, refused=str(error))
        adapter.carried_out(record)
        if not live.engine.migrating:
            report.migrations.append(record.to_dict())

    def _times(self, stream: int, rows: pa.RecordBatch) -> Any:
        return event_times(rows.column(self.query.streams[stream].time))

    def _watermarks(self, newest: list[int]) -> list[int]:
        return watermarks_of(self.query, newest)

    def _header(self, store: Store) -> dict[str, Any]:
        text = store.read_header()
        if text is None:
            store.write_contract(self.contract.to_json())
            return {"batch": 0, "token": "", "newest": [BEFORE_ALL_TIMES] * len(self.query.names)}
        header: dict[str, Any] = json.loads(text)
        return header

    def _live(
        self, number: int, header: dict[str, Any], store: Store, engines: Engines
    ) -> tuple[Live, bool]:
        """The engine of this state: the cached one if there is one, else rebuilt."""
        token = header["token"]
        cached = engines.take(number, token, self.query) if token else None
        if cached is not None:
            return cached, False
        written_for = self._go_on_from(store, header) if token else ""
        tuning = replace(self.tuning, portion_rows=self.tuning.result_rows)
        memory = engines.memory(number)
        windows = Windows(self.query, {}, memory=memory, tuning=tuning, seed=self.seed)
        engine = make_engine(self.query, self._plan(header), windows=windows)
        live = Live(token, engine, list(header["newest"]))
        stored = sorted(store.segments()) if token else []
        live.segments = deque((segment, stream, newest) for segment, stream, newest, _ in stored)
        found = _sum(written_for, live.segments)
        if header.get("state", found) != found:
            raise CheckpointDamaged(
                f"the state of processor {number} has {len(stored)} segments, but they are not "
                f"those that batch {header['batch']} left there for this question",
                remedy=_RESTORE,
            )
        rows: dict[int, list[pa.RecordBatch]] = {}
        for segment, stream, _, body in stored:
            try:
                rows.setdefault(stream, []).extend(decode_rows(body))
            except (pa.ArrowException, OSError) as error:
                raise CheckpointDamaged(
                    f"segment {segment} of stream {self.query.names[stream]!r} in the state of "
                    f"processor {number} cannot be read: {error}",
                    remedy=_RESTORE,
                ) from error
        arrivals = {
            stream: live.engine.admit(stream, pa.concat_batches(parts), BEFORE_ALL_TIMES).arrivals
            for stream, parts in rows.items()
        }
        live.engine.restore(arrivals, self._watermarks(live.newest))
        return live, bool(token)

    def _plan(self, header: dict[str, Any]) -> Plan:
        """The plan to go on with: the one in the header, unless another one is asked for now."""
        stored = header.get("plan")
        if stored is None or not self._goes_on(header):
            return self.plan
        return from_dict(stored, self.query)

    def _goes_on(self, header: dict[str, Any]) -> bool:
        """Whether the query was started with the plan that it was started with before."""
        return "asked" not in header or bool(header["asked"] == _stored(self.plan))

    def _go_on_from(self, store: Store, header: dict[str, Any]) -> str:
        """Check what the state was written for, and let no watermark go back; the contract."""
        stored = store.read_contract()
        check_contract(stored, self.contract)
        assert stored is not None, "without a contract it is refused"
        if stored == self.contract.to_json():
            return stored
        store.write_contract(self.contract.to_json())
        notes, newest = header.setdefault("notes", []), header["newest"]
        for s, before in enumerate(delays_before(stored, self.contract)):
            stream = self.query.streams[s]
            if before == stream.delay:
                continue
            was, now = show_micros(before), show_micros(stream.delay)
            notes.append(f"the delay of {stream.name!r} was {was} and is {now} from this batch on")
            if newest[s] > BEFORE_ALL_TIMES:
                more = max(0, stream.delay - before)
                newest[s] = min(newest[s] + more, _AFTER_ALL_TIMES)
        return stored

    def _write_segments(
        self,
        store: Store,
        live: Live,
        batch: int,
        kept: dict[int, pa.RecordBatch],
        bodies: dict[int, list[bytes]],
        watermarks: list[int],
    ) -> int:
        """Write the rows of this batch and remove what has expired; the bytes written."""
        written = 0
        for stream, rows in kept.items():
            if rows.num_rows:
                body = b"".join(bodies[stream]) if stream in bodies else encode_rows(rows)
                newest = int(self._times(stream, rows).max())
                store.write_segment(batch, stream, newest, body)
                live.segments.append((batch, stream, newest))
                written += len(body)
        cutoffs = [live.engine.cutoff(s, watermarks) for s in range(len(watermarks))]
        left: deque[tuple[int, int, int]] = deque()
        for segment, stream, newest in live.segments:
            if newest < cutoffs[stream]:
                store.remove_segment(segment, stream)
            else:
                left.append((segment, stream, newest))
        live.segments = left
        return written


@dataclass(slots=True)
class _Came:
    """What the packets of a batch brought, by stream."""

    originals: list[int]
    """How many of the rows are originals; those come first."""
    rows: dict[int, list[pa.RecordBatch]] = field(default_factory=dict)
    bodies: dict[int, list[bytes]] = field(default_factory=dict)
    """The same rows as they came."""
    newest: dict[int, int] = field(default_factory=dict)
    aside: list[Aside] = field(default_factory=list)
    clock: int = 0


def _gather(packets: Iterable[Packet], names: tuple[str, ...], report: Report) -> _Came:
    """Sort out the packets of a batch and count what their beats say."""
    came = _Came([0] * len(names))
    copies: dict[int, list[pa.RecordBatch]] = {}
    for packet in packets:
        stream, name = packet.stream, names[packet.stream]
        came.clock = max(came.clock, packet.clock)
        if packet.body is None:
            if packet.newest > BEFORE_ALL_TIMES:
                came.newest[stream] = max(came.newest.get(stream, packet.newest), packet.newest)
            _add(report.rows, name, packet.rows)
            _add(report.null_times, name, packet.null_times)
            _add(report.null_keys, name, packet.null_keys)
            _add(report.filtered, name, packet.filtered)
            continue
        (rows,) = decode_rows(packet.body)
        if packet.reason:
            came.aside.append(Aside(stream, packet.reason, rows))
            continue
        (came.rows if packet.original else copies).setdefault(stream, []).append(rows)
        came.bodies.setdefault(stream, []).append(packet.body)
        came.originals[stream] += packet.rows if packet.original else 0
        _add(report.routed, name, packet.rows)
    for stream, parts in copies.items():
        came.rows.setdefault(stream, []).extend(parts)
    return came


def _sum(contract: str, segments: Iterable[tuple[int, int, int]]) -> int:
    """A checksum of which segments there are, and of the question they are there for.

    Each file of a state store may be whole and yet be that of another batch or query.
    """
    return zlib.crc32(json.dumps([contract, sorted(segments)]).encode())


def _stored(plan: Plan) -> dict[str, object] | None:
    """A tree of joins in the types of JSON; a router follows from the query."""
    return to_dict(plan) if isinstance(plan, Join | Leaf) else None


def _add(counts: dict[str, int], name: str, n: int) -> None:
    if n:
        counts[name] = counts.get(name, 0) + n
