"""The host's side of the adaptive loop: measure, draw samples, and change the plan.

The loop itself is `plait.adapt.loop`, a function on values. Here its requests meet an engine. A
batch is cut into pieces. Before each piece, the loop may ask for a plan that fits into memory. The
piece is joined and timed by the host's clock. The loop gets the counters, and may ask for
samples and for another plan.

*Correct output.* The results of the batch, whatever the loop asks for: the plan changes between
two pieces only, and what waits in an engine that is replaced comes out.

*Cost.* Counters are read when pieces have taken the time that the policy says (`look`), or one took
far longer than usual: looking has its price. Where a batch may be the last one that this process
sees, they are read after it in any case (`every_batch`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from plait.adapt.events import Event
from plait.adapt.loop import advance, beginning
from plait.adapt.observations import (
    ChangePlan,
    Compared,
    Draw,
    IncomingRows,
    Joined,
    Observation,
    PlanChanged,
    Request,
    Sampled,
)
from plait.adapt.setting import Setting
from plait.adapt.state import Loop
from plait.adapt.when import slow, usually
from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.monitor import Watch
from plait.engine.sampling import sample
from plait.node.sub_batches import SubBatch, sub_batches
from plait.plan.jtree import Join, Leaf
from plait.plan.migration import Migration


class EngineHost(Protocol):
    """An engine, and whoever changes its plan."""

    @property
    def engine(self) -> Engine:
        """The engine as it is now."""

    def change(self, wanted: Migration) -> Migration:
        """Change the plan, if that is possible; the record says what was done, or why not."""

    def waited(self) -> Iterator[pa.RecordBatch]:
        """The results that had not left the engine when its plan was changed."""


def unwatched(milestone: str) -> None:
    """Nobody wants to know how far a decision has come."""
    del milestone


class Adapting:
    """The loop of one engine, at work.

    `cpu` is a clock that counts the seconds of work of this thread. `state` is what `to_dict` gave
    earlier, perhaps in another process; with it the loop goes on.
    `milestone` is called with "plan-decided" before the plan changes and with "plan-changed"
    afterwards: tests end the process there.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        cpu: Callable[[], float],
        state: Mapping[str, Any] | None = None,
        processor: int = 0,
        every_batch: bool = False,
        milestone: Callable[[str], None] = unwatched,
    ) -> None:
        self.setting = setting
        self._cpu = cpu
        self.loop = Loop.of(setting) if state is None else Loop.from_dict(state, setting)
        self._started = state is not None
        self._processor = processor
        self._every_batch = every_batch
        self._milestone = milestone
        self._events: list[Event] = []
        self._watch: Watch | None = None
        self._seconds = 0.0
        """What joining took since the counters were last read."""
        self._usual = 0.0
        """What a piece takes, on average."""
        self._batch = 0
        self._oldest: int | None = None
        """The oldest event time of the first piece."""

    def to_dict(self) -> dict[str, Any]:
        """What the loop remembers, as plain data."""
        return self.loop.to_dict()

    def events(self) -> list[Event]:
        """What happened since the last call."""
        found, self._events = self._events, []
        return found

    def join(
        self,
        hosted: EngineHost,
        batch: int,
        arrivals: dict[int, Arrivals],
        watermarks: list[int],
        newest: int,
    ) -> Iterator[pa.RecordBatch]:
        """Join a batch, let the loop look at it, and do what it asks; must be exhausted.

        `watermarks` and `newest`, the newest event time of all streams, are those after the batch.
        """
        self._batch = batch
        self._start(hosted.engine)
        for piece in sub_batches(self.setting, hosted.engine, arrivals, watermarks, newest):
            if self.setting.limited:
                yield from self._obey(hosted, self._coming(hosted.engine, piece))
            before = self._begin(hosted.engine)
            yield from self._timed(hosted.engine.push(piece.arrivals, piece.watermarks))
            if piece.newest > BEFORE_ALL_TIMES:
                yield from self._obey(hosted, self._joined(hosted.engine, piece, before))

    # -- telling

    def _start(self, engine: Engine) -> None:
        """Begin the log, with the plan that the first batch is joined by."""
        if not self._started and isinstance(plan := engine.plan, Join | Leaf):
            self._started = True
            self._note(beginning(self.setting, plan))

    def _begin(self, engine: Engine) -> float:
        """Before a piece: watch the counters; the seconds that they tell about already."""
        if self._watch is None or not self._watch.sees(engine):
            self._watch = Watch(engine)
            self._seconds = 0.0
        return self._seconds

    def _timed(self, found: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The same, while the time that it takes to find it is counted."""
        while True:
            began = self._cpu()
            item = next(found, None)
            self._seconds += self._cpu() - began
            if item is None:
                return
            yield item

    def _coming(self, engine: Engine, piece: SubBatch) -> ChangePlan | None:
        plan = engine.plan
        if engine.migrating or not isinstance(plan, Join | Leaf):
            return None
        streams = range(len(self.setting.query.streams))
        rows = [len(piece.arrivals.get(s, ())) for s in streams]
        return self._tell(engine, IncomingRows(plan, rows, piece.newest))

    def _joined(self, engine: Engine, piece: SubBatch, before: float) -> ChangePlan | None:
        if self._oldest is None:
            times = [int(a.times[0]) for a in piece.arrivals.values() if len(a)]
            self._oldest = min(times, default=piece.newest)
        if not self._due(engine, piece, self._seconds - before):
            return None
        plan = engine.plan
        if not isinstance(plan, Join | Leaf):
            return None
        assert self._watch is not None, "the counters were watched"
        watch, self._watch = self._watch, None
        observed = Joined(
            plan=plan,
            newest=piece.newest,
            oldest=self._oldest,
            stored=watch.stored(),
            looked=watch.looked(),
            seconds=self._seconds,
            nbytes=engine.nbytes,
            waiting=piece.waiting,
            migrating=engine.migrating,
            ended=engine.last_ended,
        )
        return self._tell(engine, observed)

    def _due(self, engine: Engine, piece: SubBatch, took: float) -> bool:
        """Whether to read the counters after a piece that took so long."""
        unusual, self._usual = slow(took, self._usual), usually(took, self._usual)
        return (
            unusual
            or self._seconds >= self.setting.policy.look
            or (self._every_batch and not piece.waiting)
            or (self.setting.limited and self.setting.crowded(engine.nbytes))
        )

    def _tell(self, engine: Engine, observed: Observation) -> ChangePlan | None:
        """Tell the loop, and draw the samples that it asks for, until it knows what to do."""
        request = self._advance(observed)
        while isinstance(request, Draw):
            request = self._advance(draw_sample(engine, request, self._cpu))
        return request

    def _advance(self, observed: Observation) -> Request | None:
        began = self._cpu()
        step = advance(self.setting, self.loop, observed)
        self.loop = step.loop
        for event in step.events:
            self._note(event)
        if step.compared:
            return self._advance(Compared(self._cpu() - began))
        return step.request

    def _note(self, event: Event) -> None:
        self._events.append(replace(event, batch=self._batch, processor=self._processor))

    # -- obeying

    def _obey(self, hosted: EngineHost, move: ChangePlan | None) -> Iterator[pa.RecordBatch]:
        """Change the plan; yields the results that waited in the old engine."""
        if move is None:
            return
        self._milestone("plan-decided")
        wanted = Migration(move.way.strategy, move.old, move.plan, reason=move.way.reason)
        self._advance(PlanChanged(hosted.change(wanted)))
        self._milestone("plan-changed")
        yield from hosted.waited()


def draw_sample(engine: Engine, draw: Draw, cpu: Callable[[], float]) -> Sampled:
    """Draw a sample; the engine stays as it is."""
    began = cpu()
    found = sample(engine.windows, draw.order, draw.rows, draw.seed, draw.newest, draw.least)
    if any(not step.pairs for step in found[: 1 + sum(step.matches > 0 for step in found)]):
        # Bounds may keep apart what came last.
        found = sample(engine.windows, draw.order, draw.rows, draw.seed)
    steps = [(step, len(engine.bases[min(step.target)])) for step in found]
    return Sampled(steps, cpu() - began)
