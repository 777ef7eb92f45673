"""A cluster in virtual time: machines with engines, gates that split the streams, and a manager.

*Correct output.* The union of what the machines find is the answer of one engine over the same
rows, whatever the plans, moves and migrations; only when it comes is computed.

*Time.* Batch n of the streams arrives in tick n and is sent when the tick is over. A machine does
one thing at a time: a packet of each stream, a message, a change of plan. What it costs is counted
(`accounting.py`) and divided by its speed; the machine is busy for so long, and what it has to send
leaves then. A machine that is slower than the streams falls behind. Messages come before packets:
they do not wait in the queue of rows, as flags do.

*Who decides.* `distribution.py` hosts the distribution manager, `local_plans.py` what each machine
does about its own plan. Either can be left out, and moves and plans can be asked for from outside.

*Invariants.* Nothing depends on anything but the rows, the setting and what is asked for: the same
run twice is the same, to the last bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa

from plait.engine.intake.admission import LATE, NO_TIME, NULL_KEY, Admission, are_late
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.engine.intake.watermarks import watermarks_of
from plait.engine.purging import PurgeByWatermarks
from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.places import Place
from plait.node.batch import Aside, Rows, batch_of_rows
from plait.node.node import Setup
from plait.optimize.costs import DEFAULT, Costs
from plait.plan.migration import Strategy
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.tuning import USUAL, Tuning
from plait_lab.protocol.actions import MoveFinished, Reaction
from plait_lab.protocol.deliver import to_split
from plait_lab.protocol.messages import MANAGER, Flag, Message, processor_name
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.virtual.accounting import Account, Meter
from plait_lab.virtual.gates import Gate, GroupsOf, TickRows
from plait_lab.virtual.machines import Link, Machine
from plait_lab.virtual.processor import Done, VirtualProcessor
from plait_lab.virtual.stored_groups import Moved, StoredGroups
from plait_lab.virtual.timeline import Network, Timeline
from plait_lab.virtual.trace import Slice, Stage, Trace

_GENERATOR = "generator"
Batches = Sequence[Mapping[str, Rows]]
"""The rows of each tick, by stream."""


@dataclass(frozen=True, slots=True)
class ClusterSetting:
    """What a cluster is made of."""

    query: Query
    plans: tuple[Plan, ...]
    """One for each machine."""
    homes: tuple[int, ...]
    """The machine of each partition group at first."""
    groups_of: GroupsOf
    quantum: float = 1.0
    """Seconds of a tick."""
    machine: Machine = field(default_factory=Machine)
    link: Link = field(default_factory=Link)
    account: Account = "hash"
    costs: Costs = DEFAULT
    purge: type[PurgeByWatermarks] = PurgeByWatermarks
    tuning: Tuning = USUAL
    tuple_bytes: int = 64
    """What a tuple counts in memory."""
    keep: bool = False
    """Whether the results are kept."""


@dataclass(slots=True)
class MoveRecord:
    """What became of a move."""

    move: Move
    begun: float
    ended: float | None = None
    done: bool = False
    moved: Moved = field(default_factory=Moved)
    """What the receivers have taken in."""

    @property
    def length(self) -> float | None:
        """In seconds of virtual time; None if it is under way."""
        return None if self.ended is None else self.ended - self.begun


class VirtualCluster:
    """Machines, gates and the parties of the protocols, with rows to come."""

    def __init__(self, setting: ClusterSetting, batches: Batches) -> None:
        query = setting.query
        self.setting = setting
        self.query = query
        self.line = Timeline()
        self.network = Network(self.line, setting.link)
        places = tuple(Place((home,)) for home in setting.homes)
        splits = len(query.streams)
        self.manager = MoveManager.of(len(setting.plans), splits, places)
        self.gates = [Gate(query, Split(s, places), setting.groups_of) for s in range(splits)]
        meter = Meter(query, setting.account, setting.costs)
        self.processors = [
            VirtualProcessor(
                ProcessorParty.of(p, splits, places),
                StoredGroups(
                    Setup(query, plan, purge=setting.purge, tuning=setting.tuning),
                    meter,
                    setting.groups_of,
                    len(places),
                    setting.tuple_bytes,
                ),
            )
            for p, plan in enumerate(setting.plans)
        ]
        self.traces = [Trace() for _ in setting.plans]
        self.busy = [0.0] * len(setting.plans)
        """Seconds that each machine has worked."""
        self.kept: list[pa.RecordBatch] = []
        self.aside: list[Aside] = []
        self.filtered: Counter[str] = Counter()
        self.moves: dict[int, MoveRecord] = {}
        self.on_end: list[Callable[[MoveRecord], None]] = []
        """Who is told of a move that has ended."""
        self.arrived = np.zeros((len(setting.homes), splits), np.int64)
        """Rows of each group and stream that have come, each counted once."""
        self._batches = batches
        self._admissions = [Admission(query, s) for s in range(splits)]
        self._newest = [BEFORE_ALL_TIMES] * splits
        self._idle = [True] * len(setting.plans)
        self._ticks = 0
        for _ in batches:
            self._ticks += 1
            self.line.plan(self._ticks * setting.quantum, self._send)
        self._sent = 0

    # -- what may be asked

    @property
    def end(self) -> float:
        """When all rows have been sent."""
        return len(self._batches) * self.setting.quantum

    @property
    def done(self) -> bool:
        """Whether all rows were joined and no move is open."""
        if self.line.now < self.end or not self.manager.idle:
            return False
        return not any(p.queued for p in self.processors) and not any(
            gate.buffered for gate in self.gates
        )

    @property
    def tuples(self) -> int:
        """Tuples of all states, queues and buffers."""
        waiting = sum(gate.buffered for gate in self.gates)
        return waiting + sum(p.tuples for p in self.processors)

    def run(self, until: float) -> None:
        """Go on until a time."""
        self.line.run(until)

    def results_by(self, times: Sequence[float]) -> list[float]:
        """Results of all machines up to each time."""
        found = np.sum([trace.results_by(times) for trace in self.traces], axis=0)
        return [float(n) for n in found]

    def migrate(self, processor: int, plan: Plan, strategy: Strategy = "moving-state") -> None:
        """Let a machine go on with another plan as soon as it can."""
        self.processors[processor].wanted.append((plan, strategy))
        self._wake(processor)

    def begin(
        self,
        protocol: Protocol,
        groups: Iterable[int],
        receivers: Iterable[int],
        spread: int | None = None,
    ) -> int:
        """Begin a move of these groups; its number."""
        self._managed(self.manager.begin(protocol, groups, receivers, spread))
        return self.manager.last

    def ask(self, protocol: Protocol, sender: int, receiver: int, amount: float) -> int:
        """Begin a move of groups of so much memory, which the sender chooses; its number."""
        self._managed(self.manager.ask(protocol, sender, receiver, amount))
        return self.manager.last

    def give_up(self, move: int) -> None:
        """Give a move up, if it still can be."""
        self._managed(self.manager.give_up(move))

    # -- rows

    def _send(self, now: float) -> None:
        """Sort out the rows of a tick, and send every machine its packets.

        After the last batch there are ticks for what was buffered.
        """
        del now
        tick = self._sent
        self._sent += 1
        given = self._batches[tick] if tick < len(self._batches) else {}
        batch = batch_of_rows(self.query, given)
        before = watermarks_of(self.query, self._newest)
        ready = {s: self._sorted_out(s, rows, before[s]) for s, rows in batch.rows.items()}
        after = watermarks_of(self.query, self._newest)
        for stream, gate in enumerate(self.gates):
            rows = ready.get(stream)
            if rows is None:
                rows = pa.RecordBatch.from_pylist([], self.query.streams[stream].schema)
            if rows.num_rows:
                groups = self.setting.groups_of(stream, rows)
                self.arrived[:, stream] += np.bincount(groups, minlength=len(self.setting.homes))
            packets = gate.packets(tick, rows, after[stream], len(self.processors))
            for machine, packet in enumerate(packets):
                self._carry(stream, machine, packet)

    def _sorted_out(self, stream: int, rows: pa.RecordBatch, watermark: int) -> pa.RecordBatch:
        """The rows that are to be joined."""
        found = self._admissions[stream].sort_out(rows)
        self._newest[stream] = max(self._newest[stream], found.newest)
        self.filtered[self.query.names[stream]] += found.filtered
        for reason, some in ((NO_TIME, found.no_time), (NULL_KEY, found.no_key)):
            if some is not None and some.num_rows:
                self.aside.append(Aside(stream, reason, some))
        times = event_times(found.rows.column(self.query.streams[stream].time))
        late = are_late(times, watermark)
        if late is None:
            return found.rows
        self.aside.append(Aside(stream, LATE, found.rows.filter(pa.array(late))))
        return found.rows.filter(pa.array(~late))

    def _carry(self, stream: int, machine: int, item: TickRows | Flag) -> None:
        """Put a packet or a flag into the channel of a gate to a machine."""

        def deliver(now: float) -> None:
            del now
            self.processors[machine].channels[stream].append(item)
            self._wake(machine)

        size = len(item) * self.setting.tuple_bytes if isinstance(item, TickRows) else 0
        if not isinstance(item, TickRows):
            self.network.send(f"split-{stream}", processor_name(machine), item, deliver)
            return
        self.network.carry(f"split-{stream}", processor_name(machine), size, deliver)

    # -- machines

    def _wake(self, machine: int) -> None:
        if self._idle[machine]:
            self._idle[machine] = False
            self.line.plan(self.line.now, lambda _: self._work(machine))

    def _work(self, machine: int) -> None:
        """Let a free machine do what is next, and come back when that is done."""
        processor, begin = self.processors[machine], self.line.now
        while processor.ready:
            done = processor.act()
            end = begin + self.setting.machine.seconds(done.work)
            self._note(machine, done, begin, end)
            if end > begin:
                self.line.plan(end, partial(self._finished, machine, done))
                return
            self._post(machine, done)
        self._idle[machine] = True

    def _finished(self, machine: int, done: Done, now: float) -> None:
        del now
        self._post(machine, done)
        self._work(machine)

    def _post(self, machine: int, done: Done) -> None:
        self._deliver(processor_name(machine), done.messages)

    def _note(self, machine: int, done: Done, begin: float, end: float) -> None:
        """Write down what a machine did."""
        processor, trace = self.processors[machine], self.traces[machine]
        self.busy[machine] += end - begin
        if self.setting.keep:
            self.kept += done.results
        if done.migrated is not None:
            trace.stages.append(Stage("move", begin, end))
        if done.tick is None and not done.results:
            return
        reached = 0.0 if done.tick is None else (done.tick + 1) * self.setting.quantum
        trace.slices.append(
            Slice(
                begin,
                end,
                reached,
                done.rows,
                done.found,
                len(processor.store.kept),
                processor.store.combined,
                processor.queued,
            )
        )

    # -- messages

    def _deliver(self, sender: str, messages: Iterable[tuple[str, Message]]) -> None:
        for to, message in messages:
            self.network.send(sender, to, message, partial(self._arrived, to, message))

    def _arrived(self, to: str, message: Message, now: float) -> None:
        del now
        if to == MANAGER:
            self._managed(self.manager.on(message))
            return
        kind, _, number = to.partition("-")
        if kind == "processor":
            self.processors[int(number)].inbox.append(message)
            self._wake(int(number))
            return
        gate = self.gates[int(number)]
        reaction = to_split(gate.split, message)
        gate.became(reaction.party, reaction.actions)
        for machine, flag in reaction.flags:
            self._carry(gate.stream, machine, flag)
        self._deliver(to, reaction.messages)
        if gate.released and self._sent == self._ticks:
            self._ticks += 1
            self.line.plan(self.line.now + self.setting.quantum, self._send)

    def _managed(self, reaction: Reaction[MoveManager]) -> None:
        """The manager has reacted."""
        self.manager = reaction.party
        for moving in self.manager.moving:
            record = self.moves.setdefault(
                moving.move.number, MoveRecord(moving.move, self.line.now)
            )
            record.move = moving.move
        for action in reaction.actions:
            if isinstance(action, MoveFinished):
                self._ended(action)
        self._deliver(MANAGER, reaction.messages)

    def _ended(self, finished: MoveFinished) -> None:
        record = self.moves[finished.move.number]
        record.ended, record.done = self.line.now, finished.done
        for processor in self.processors:
            processor.settled(finished.move.number)
            moved = processor.taken_in.pop(finished.move.number, None)
            if moved is not None:
                record.moved.add(moved)
        for told in self.on_end:
            told(record)


def cut_by_time(query: Query, tables: Mapping[str, pa.Table], quantum: float) -> Batches:
    """Rows that arrive at their event time, by tick; they are in order of time, from second 0."""
    cuts: dict[str, list[pa.Table]] = {}
    for stream in query.streams:
        table = tables[stream.name].combine_chunks()
        seconds = event_times(_one(table, stream.time)) / 1_000_000
        ticks = int(seconds[-1] / quantum) + 1 if len(seconds) else 0
        edges = np.searchsorted(seconds, np.arange(ticks + 1) * quantum)
        cuts[stream.name] = [
            table.slice(start, stop - start)
            for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]
    longest = max(map(len, cuts.values()))
    return [{n: parts[t] for n, parts in cuts.items() if t < len(parts)} for t in range(longest)]


def _one(table: pa.Table, column: str) -> pa.Array:
    chunks: Iterator[pa.Array] = iter(table.column(column).chunks)
    return next(chunks, pa.array([], table.schema.field(column).type))
