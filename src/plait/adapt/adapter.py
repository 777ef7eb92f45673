"""Between the loop and an engine: reads counters, draws samples, and hands decisions out.

Whoever runs an engine takes a batch in `pieces`, mostly one. Before a piece it may ask `foresee`,
then it calls `begin`, finds the results through `timed`, and calls `end`. A decision that comes
back is to be carried out, by `migrate(plan, "auto", choose=adapter.chooser(engine))`, and the
record of that goes to `carried_out`. The adapter itself never changes the engine.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, NamedTuple, TypeVar

from plait.adapt.decide import Decision
from plait.adapt.events import Event, EventKind
from plait.adapt.knowledge import Seen
from plait.adapt.loop import Loop, Setting
from plait.adapt.strategy import chooser
from plait.engine.engines import Engine
from plait.engine.ingest import Arrivals
from plait.engine.migrate.choose import Chooser
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.migrate.strategy import plan_of
from plait.engine.monitor import Watch
from plait.engine.sampling import sample
from plait.engine.slices import as_batches, cut, cut_rows
from plait.engine.times import BEFORE_ALL_TIMES
from plait.optimize.model import Cost
from plait.optimize.statistics import statistics_to_dict
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.labels import plan_label
from plait.plan.migration import Migration
from plait.plan.serde import to_dict
from plait.query.serde import query_to_dict

T = TypeVar("T")

_MATCHES = 200.0
"""Matches that a sample should find: then it is sure enough by itself."""

_GROWTH = 12.0
"""How many times faster than with the rows so far a state may grow with those of a piece, before
it takes what is left of the memory."""

_SLOW, _RECENT = 2.0, 0.1
"""A piece that takes so many times the usual time is looked at; and the weight of the last piece in
what is usual."""

_NEWEST = 0.25
"""The share of each window that a sample is drawn from: what came last tells most."""

_SAMPLES = 3
"""Samples in a row, at most, to learn what a decision hangs on."""

_LARGER = 8
"""How many times larger than usual a sample may be for that."""


class Piece(NamedTuple):
    """A batch, or a part of one along event time."""

    arrivals: dict[int, Arrivals]
    watermarks: list[int]
    """After it."""
    newest: int
    """The newest event time of all streams so far."""
    waiting: int = 0
    """Rows of the batch that come after it."""


class Adapter:
    """The loop of one engine.

    `state` is what `to_dict` gave earlier, perhaps in another process; with it the loop goes on.
    Batches, and pieces of one, are looked at together until they have taken the time that the
    policy says: looking has its price. Where a batch may be the last one that this process sees,
    there is always a look after it (`every_batch`).
    """

    def __init__(
        self,
        setting: Setting,
        *,
        state: Mapping[str, Any] | None = None,
        processor: int = 0,
        every_batch: bool = False,
    ) -> None:
        self._every_batch = every_batch
        self.loop = Loop.of(setting) if state is None else Loop.from_dict(state, setting)
        self.processor = processor
        self._events: list[Event] = []
        self._started = state is not None
        self._watch: Watch | None = None
        self._seconds = 0.0
        """What joining took since the last look."""
        self._before = 0.0
        """The same, before this piece."""
        self._usual = 0.0
        """What a piece takes, on average."""
        self._batch = 0
        self._oldest: int | None = None
        """The oldest event time of the first batch."""
        self._pending: tuple[Decision, Node, bool] | None = None
        self._following: str = "" if state is None else state["following"]

    def to_dict(self) -> dict[str, Any]:
        """What the loop knows, as plain data."""
        return self.loop.to_dict() | {"following": self._following}

    def timed(self, found: Iterator[T]) -> Iterator[T]:
        """The same, while the time that it takes to find it is counted."""
        while True:
            began = time.thread_time()
            item = next(found, None)
            self._seconds += time.thread_time() - began
            if item is None:
                return
            yield item

    def events(self) -> list[Event]:
        """What happened since the last call."""
        found, self._events = self._events, []
        return found

    @property
    def limited(self) -> bool:
        """Whether there is a limit to the memory."""
        return self.loop.setting.budget.memory is not None

    def _crowded(self, engine: Engine) -> bool:
        """Whether half of the memory is taken."""
        memory = self.loop.setting.budget.memory
        return memory is not None and 2 * engine.nbytes >= memory

    # -- around a batch

    def pieces(
        self,
        engine: Engine,
        batch: int,
        arrivals: dict[int, Arrivals],
        watermarks: list[int],
        newest: int,
    ) -> list[Piece]:
        """The batch in pieces, between which the plan may change.

        A large batch has several: a wrong plan need not join all of it. Where memory comes to an
        end, a smaller one too: then it matters how soon the loop notices. `newest` is the newest
        event time of all streams, this batch included.
        """
        self._batch = batch
        tuning = engine.windows.tuning
        rows = sum(map(len, arrivals.values()))
        slices = []
        if self._crowded(engine):
            memory = self.loop.setting.budget.memory or 0.0
            held = engine.nbytes
            growth = _GROWTH * held * rows / max(1, sum(map(len, engine.bases)))
            count = min(tuning.pieces, math.ceil(growth / max(1.0, memory - held)))
            slices = cut_rows(arrivals, max(tuning.piece_rows, -(-rows // max(1, count))))
        elif rows >= tuning.large_slices * tuning.slice_rows:
            step = self.loop.setting.query.bounds.widest // tuning.pieces_per_window
            larger = -(-rows // (tuning.pieces * tuning.slice_rows))
            slices = cut(arrivals, step, larger * tuning.slice_rows)
        if len(slices) < 2:
            return [Piece(arrivals, watermarks, newest)]
        found = list[Piece]()
        for part, marks in as_batches(slices, arrivals, watermarks):
            rows -= sum(map(len, part.values()))
            reached = max(int(a.times[-1]) for a in part.values())
            found.append(Piece(part, marks, reached if rows else newest, rows))
        return found

    def begin(self, engine: Engine) -> None:
        """Before a piece of a batch."""
        if not self._started:
            self._start(engine)
            self._started = True
        if self._watch is None or not self._watch.sees(engine):
            self._watch = Watch(engine)
            self._seconds = 0.0
        self._before = self._seconds

    def foresee(self, engine: Engine, piece: Piece) -> Decision | None:
        """What to do before these are joined, for lack of memory; nothing if there is no limit."""
        if not self.limited:
            return None
        before = self.loop.knowledge.time
        plan = plan_of(engine)
        if engine.migrating or not isinstance(plan, Join | Leaf) or piece.newest <= before:
            return None
        span = (piece.newest - before) / 1e6
        streams = range(len(self.loop.setting.query.streams))
        rates = [len(piece.arrivals.get(s, ())) / span for s in streams]
        decision = self.loop.foresee(plan, rates)
        return None if decision is None else self._act(decision, plan)

    def end(self, engine: Engine, piece: Piece) -> Decision | None:
        """After a piece: what to do now, if anything."""
        assert self._watch is not None, "begin() comes before end()"
        if piece.newest <= BEFORE_ALL_TIMES:
            return None
        if self._oldest is None:
            times = [int(a.times[0]) for a in piece.arrivals.values() if len(a)]
            self._oldest = min(times, default=piece.newest)
        loop = self.loop
        if not self._due(engine, piece):
            return None
        plan = plan_of(engine)
        if not isinstance(plan, Join | Leaf):
            return None
        since = loop.knowledge.time
        if not loop.batches:
            since = self._oldest
        seen = Seen(
            max(piece.newest, since),
            max(0.0, (piece.newest - since) / 1e6),
            self._watch.stored(),
            self._watch.looked(),
            self._seconds,
            engine.nbytes,
            piece.waiting,
        )
        self._watch = None
        loop.see(seen, migrating=engine.migrating)
        self._ended(engine)
        if engine.migrating:
            return None
        for _ in range(_SAMPLES):
            if not self._sample(engine) or not loop.knowledge.doubtful():
                break
        if (back := self._judge(plan)) is not None:
            return back
        decision = self._compare(plan)
        for _ in range(_SAMPLES):
            if decision is not None or not loop.learn or not self._sample(engine):
                break
            decision = self._compare(plan)
        return decision

    def _due(self, engine: Engine, piece: Piece) -> bool:
        """Whether to look now."""
        took = self._seconds - self._before
        slow = took > _SLOW * self._usual > 0
        self._usual += (took - self._usual) * (_RECENT if self._usual else 1.0)
        return (
            slow
            or self._seconds >= self.loop.setting.policy.look
            or (self._every_batch and not piece.waiting)
            or self._crowded(engine)
        )

    def chooser(self, engine: Engine) -> Chooser:
        """Chooses how to get to the plan that was decided on."""
        setting = self.loop.setting
        memory = setting.budget.memory
        room = None if memory is None else max(0.0, memory - engine.nbytes)
        size = len(setting.query.streams)
        current = self._pending[0].current.cpu if self._pending is not None else 0.0
        running_on = current * setting.window
        return chooser(setting.policy, setting.costs, self.loop.price, room, size, running_on)

    def carried_out(self, record: Migration) -> None:
        """The decision was carried out, or refused."""
        assert self._pending is not None, "there is a decision"
        decision, old, returned = self._pending
        self._pending = None
        if record.refused:
            self._tell("migrated", refused=record.refused, plan=plan_label(old))
            return
        self.loop.moved(decision, old, pause=record.pause, returned=returned)
        assert decision.plan is not None
        self._following = plan_label(decision.plan) if record.status == "under way" else ""
        told = record.to_dict() | {"old": plan_label(old), "plan": plan_label(decision.plan)}
        self._tell("migrated", returned=returned, **told)

    # -- inside

    def _start(self, engine: Engine) -> None:
        setting = self.loop.setting
        plan = plan_of(engine)
        self._tell(
            "started",
            query=query_to_dict(setting.query),
            plan=to_dict(plan) if isinstance(plan, Join | Leaf) else str(plan),
            policy=setting.policy.to_dict(),
            budget=asdict(setting.budget),
            costs=asdict(setting.costs),
        )

    def _ended(self, engine: Engine) -> None:
        """Note the end of a parallel track."""
        if self._following and not engine.migrating:
            if isinstance(engine, ParallelTrack):
                self._tell("ended", plan=self._following, **engine.record.to_dict())
            self._following = ""

    def _sample(self, engine: Engine) -> bool:
        """Draw a sample, if one is wanted and there is time for it."""
        loop = self.loop
        order = loop.wanted() if loop.may_sample() else None
        if order is None:
            return False
        began = time.thread_time()
        rows, seed = self._rows(order), loop.batches * (_SAMPLES + 1) + loop.tries
        # After a leap, rather few rows than old ones.
        least = rows if loop.knowledge.settled else 0
        found = sample(engine.windows, order, rows, seed, _NEWEST, least)
        if any(not step.pairs for step in found[: 1 + sum(step.matches > 0 for step in found)]):
            # Bounds may keep apart what came last.
            found = sample(engine.windows, order, rows, seed)
        for step in found:
            (stream,) = step.target
            gathered = sum(1 << s for s in step.gathered)
            rows = len(engine.bases[stream])
            loop.sampled(gathered, 1 << stream, step.pairs, step.matches, rows)
        loop.spend(sampling=time.thread_time() - began)
        return True

    def _rows(self, order: Sequence[int]) -> int:
        """How many rows to draw, so that there are matches enough if there are any."""
        usual = self.loop.setting.policy.sample_rows
        key = tuple(sorted((1 << order[0], 1 << order[1])))
        known = self.loop.knowledge.agreements.get((key[0], key[1]))
        if known is None:
            return usual
        return int(min(_LARGER * usual, max(usual, (_MATCHES / known.value) ** 0.5)))

    def _judge(self, plan: Node) -> Decision | None:
        trial = self.loop.trial
        verdict = self.loop.verdict()
        if trial is None or verdict is None:
            return None
        self._tell("judged", plan=plan_label(plan), old=plan_label(trial.old), **verdict.to_dict())
        if verdict.paid or plan != trial.new:
            return None
        back = Decision("move", (verdict.reason, "go back"), Cost(0, 0, 0), trial.old)
        self._pending = (back, plan, True)
        return back

    def _compare(self, plan: Node) -> Decision | None:
        loop = self.loop
        if not loop.due():
            return None
        began = time.thread_time()
        decision = loop.compare(plan)
        loop.spend(comparing=time.thread_time() - began)
        return self._act(decision, plan)

    def _act(self, decision: Decision, plan: Node) -> Decision | None:
        loop = self.loop
        self._tell(
            "compared",
            statistics=statistics_to_dict(loop.known),
            standing=self._standing(plan),
            decision=decision.to_dict(),
        )
        short = "" if decision.fits or decision.resource is None else decision.resource
        if short and short != loop.short:
            self._tell(
                "unqualified",
                plan=plan_label(plan),
                resource=decision.resource,
                reasons=list(decision.reasons),
            )
        loop.short = short
        if decision.kind != "move" or decision.plan is None:
            return None
        self._pending = (decision, plan, False)
        return decision

    def _standing(self, plan: Node) -> dict[str, Any]:
        loop = self.loop
        return {
            "plan": to_dict(plan),
            "migrated": loop.migrated,
            "banned": dict(loop.banned),
            "regret": loop.regret,
            "confirmed": loop.confirmed,
            "nbytes": loop.knowledge.nbytes,
            "price": loop.price,
            "overhead": loop.overhead,
            "tries": loop.tries,
            "waiting": loop.waiting,
        }

    def _tell(self, kind: EventKind, **data: Any) -> None:
        event = Event(kind, self._batch, self.loop.knowledge.time, data)
        self._events.append(replace(event, processor=self.processor))
