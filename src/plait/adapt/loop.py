"""The loop of one processor: notice, decide, migrate, check that it paid.

A state machine without I/O, clock or engine. It is told what each batch brought (`see`) and what
samples showed, says when plans should be compared (`due`), compares them (`compare`), judges the
last migration (`verdict`), and is told what was done (`moved`). Between two batches all it knows is
plain data (`to_dict`), so it can be kept beside the state of a processor and go on elsewhere.

*Invariants.* Plans are compared at most for the share of the time that the policy allows. The
reference that drift is measured against moves only when plans are compared. While a trial or a
parallel track is under way, only a lack of memory or CPU changes the plan.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from plait.adapt.decide import Decision, Standing, decide_by
from plait.adapt.guard import Trial, Verdict, judge
from plait.adapt.knowledge import Knowledge, Seen, geometry
from plait.adapt.policy import Policy
from plait.optimize.budget import Budget
from plait.optimize.costs import Costs
from plait.optimize.model import Model, bits
from plait.optimize.statistics import ROWS_PER_SECOND, Estimate, Statistics
from plait.plan.jtree import Node
from plait.plan.labels import plan_label
from plait.query.query import Query

_ALLOWANCE = 0.02
"""Seconds that comparing and sampling may take before there is any time to take a share of."""

_LEAST_BATCHES = 3
"""Batches before plans are first compared, and in a trial."""

_FASTER = 1.25
"""How much faster than expected rows must come for a look ahead."""

_PRICES = (0.1, 20.0)
"""What may be true of a price; beyond that something else went wrong."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a loop is for."""

    query: Query
    policy: Policy
    budget: Budget
    costs: Costs

    @property
    def window(self) -> float:
        """The widest bound in seconds."""
        return self.query.bounds.widest / 1e6

    @property
    def half_life(self) -> float:
        """After how many seconds an observation counts half."""
        return self.policy.half_life or max(self.window / 2, 1e-6)

    @property
    def trial(self) -> float:
        """How long a new plan runs before it is judged."""
        return self.window if self.policy.trial is None else self.policy.trial


@dataclass(slots=True)
class Loop:
    """What a processor's loop remembers."""

    setting: Setting
    knowledge: Knowledge
    batches: int = 0
    began: float | None = None
    """The event time at which it all began."""
    joining: float = 0.0
    """Seconds spent on joining, in all."""
    comparing: float = 0.0
    sampling: float = 0.0
    migrated: float | None = None
    compared: int = -1
    """The batch after which plans were last compared."""
    confirmed: int = 0
    """Batches in a row after which a comparison found a better plan."""
    gain: float = 0.0
    """CPU seconds per second that the better plan would save."""
    regret: float = 0.0
    pursued: float = 0.0
    """Seconds that went into making sure since then."""
    usual: float = 0.0
    """Seconds per second of event time that joining took when plans were last compared, or that
    were predicted when the plan changed; 0 if that is not known."""
    excess: float = 0.0
    """Seconds that it has taken beyond that since."""
    step: float = 0.0
    """What the last comparison or sample took."""
    price: float = 1.0
    priced: bool = False
    """Whether that was measured."""
    overhead: float = 0.0
    """What the last migration took beside the states that had to be computed."""
    tracked: bool = False
    """Whether two plans ran at the end of the last batch."""
    banned: dict[str, float] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    trial: Trial | None = None
    reference: dict[str, float] | None = None
    """The estimates when plans were last compared."""
    learn: tuple[int, ...] = ()
    """Sets of streams that the last comparison wants to know more about."""
    tries: int = 0
    """Samples that were drawn to learn it."""
    learned: bool = False
    """Whether there was one since the last comparison."""
    short: str = ""
    """The resource that no plan has enough of, if it was found so."""
    foreseen: list[float] = field(default_factory=list)
    """The rates for which it was last looked ahead."""
    known: Statistics = field(default_factory=Statistics)
    """What the last decision was made from."""

    @classmethod
    def of(cls, setting: Setting) -> Loop:
        """One that knows nothing yet."""
        streams = len(setting.query.streams)
        return cls(setting, Knowledge(streams, setting.half_life, setting.window))

    @property
    def time(self) -> float:
        """Event time in seconds."""
        return self.knowledge.time / 1e6

    @property
    def waiting(self) -> float:
        """How many seconds of event time the rows that wait are worth."""
        rows, span = sum(self.knowledge.rows), self.knowledge.span
        return self.knowledge.waiting * span / rows if rows else 0.0

    # -- what is told

    def see(self, seen: Seen, *, migrating: bool) -> None:
        """One more batch."""
        self.batches += 1
        self.joining += seen.seconds
        self.knowledge.learn(seen, geometry(self.setting.query))
        self.regret += self.gain * seen.span
        if self.began is None:
            self.began = self.time - seen.span
        two, self.tracked = migrating or self.tracked, migrating
        if two:
            # What two plans take together says nothing about either.
            self.knowledge.restart_clock()
        elif self.usual:
            self.excess = max(0.0, self.excess + seen.seconds - self.usual * seen.span)
        # A first migration is slow for reasons that do not come again.
        self.overhead *= 0.5 ** (seen.span / self.setting.window) if self.setting.window else 0.0
        if self.trial is not None and not two:
            self.trial.add(seen.seconds, seen.span)

    def sampled(self, gathered: int, target: int, pairs: float, matches: float, rows: int) -> None:
        """What a step of a sample showed."""
        self.knowledge.sampled(gathered, target, pairs, matches, rows)

    def moved(
        self, decision: Decision, old: Node, *, pause: float = 0.0, returned: bool = False
    ) -> None:
        """The decision was carried out: another plan runs, after so many seconds."""
        assert decision.plan is not None
        self.overhead = max(0.0, pause - max(0.0, decision.pause - self.overhead))
        forced = returned or decision.resource is not None
        self.trial = None
        if not forced and decision.cost is not None and decision.current.cpu:
            predicted = decision.cost.cpu / decision.current.cpu
            joint = {name: estimate.value for name, estimate in self.known.joint.items()}
            self.trial = Trial(old, decision.plan, self.time, predicted, self.price, joint=joint)
        self.migrated = self.time
        self.usual = 0.0 if decision.cost is None else decision.cost.cpu
        self.excess = 0.0
        self._content()
        self.reference = None
        self.knowledge.restart_clock()

    def spend(self, comparing: float = 0.0, sampling: float = 0.0) -> None:
        """So many seconds went into comparing plans or into samples."""
        self.comparing += comparing
        self.sampling += sampling
        self.step = comparing + sampling
        if self.confirmed:
            self.pursued += comparing + sampling
        if sampling and self.learn:
            self.tries += 1
            self.learned = True

    # -- what should be done

    def due(self) -> bool:
        """Whether plans should be compared now."""
        if not self.knowledge.heard or self.batches < _LEAST_BATCHES:
            return False
        allowed = self.setting.policy.effort * self.joining + _ALLOWANCE
        if self.comparing > allowed and not self._worth_it():
            return False
        if self.confirmed:
            return self.learned or not self.learn
        memory = self.setting.budget.memory
        if memory is not None and self.knowledge.nbytes > memory and not self.short:
            return True
        if self.reference is None or (not self.priced and self._settled()):
            return True
        return self._drifted(self.reference)

    def may_sample(self) -> bool:
        """Whether there is time for another sample."""
        share = self.setting.policy.sampling
        if not share or (self.learn and self.learned):
            return False
        allowed = self.sampling <= share * (self.joining + _ALLOWANCE)
        urgent = self.learn or self.knowledge.doubtful()
        return allowed or (bool(urgent) and self._worth_it())

    def _worth_it(self) -> bool:
        """Whether staying costs so much that some of it should go into making sure.

        Before a better plan is known, what joining takes beyond the usual is taken for that.
        """
        share = self.setting.policy.pursuit
        ahead = self.gain * self.setting.window
        return self.pursued < share * max(self.regret, ahead) or self.step < share * self.excess

    def wanted(self) -> tuple[int, ...] | None:
        """Which streams to join in the next sample, in this order; None if nothing is wanted."""
        graph = self.setting.query.graph
        if doubtful := self.knowledge.doubtful():
            left, right = doubtful[0]
            return _order(graph.neighbours, left | right)
        if self.learn:
            ways = list(_ways(self.learn))
            return _order(graph.neighbours, *ways[self.tries % len(ways)])
        pairs = [
            (self.knowledge.confidence((1 << i, 1 << j)), i, j)
            for i in range(self.knowledge.streams)
            for j in graph.neighbours(i)
            if i < j
        ]
        sure, *pair = min(pairs)
        return tuple(pair) if sure < self.setting.policy.confidence else None

    def compare(self, plan: Node) -> Decision:
        """Compare plans under what is known now."""
        known = self.statistics()
        model = Model(self.setting.query, known, self.setting.costs)
        self._set_price(model, plan)
        if self.compared == self.batches and self.confirmed:
            # There was a sample since, but no batch.
            self.confirmed -= 1
        self.compared = self.batches
        decision = self._decide(model, known, plan)
        self.reference = self._estimates()
        self.excess = 0.0
        if self.knowledge.timed:
            self.usual = self.knowledge.seconds / self.knowledge.timed
        self.foreseen = []
        self.learn, self.learned = decision.learn, False
        if decision.better:
            self.confirmed += 1
            self.gain = decision.gain
        else:
            self._content()
        self.knowledge.forget()
        return decision

    def foresee(self, plan: Node, rates: Sequence[float]) -> Decision | None:
        """Whether the plan fits the memory if rows come at these rates; a decision if not."""
        memory = self.setting.budget.memory
        if memory is None or not self.knowledge.heard:
            return None
        usual = [n / self.knowledge.span for n in self.knowledge.rows]
        expected = self.foreseen or usual
        crowded = self.knowledge.nbytes > (1 - self.setting.policy.headroom) * memory
        if not crowded and all(r <= _FASTER * e for r, e in zip(rates, expected, strict=True)):
            return None
        if crowded and self.short:
            return None
        self.foreseen = [max(pair) for pair in zip(rates, usual, strict=True)]
        known = self.statistics()
        faster = {
            name: Estimate(max(rate, known.rates[name].value), ROWS_PER_SECOND)
            for name, rate in zip(self.setting.query.names, rates, strict=True)
        }
        known = replace(known, rates=faster)
        model = Model(self.setting.query, known, self.setting.costs)
        decision = self._decide(model, known, plan)
        return decision if decision.resource == "memory" else None

    def verdict(self) -> Verdict | None:
        """Whether the last migration paid, once that can be said."""
        trial = self.trial
        if trial is None or trial.batches < _LEAST_BATCHES or trial.span < self.setting.trial:
            return None
        known = trial.filled_up(self.statistics(), self.setting.policy.confidence)
        model = Model(self.setting.query, known, self.setting.costs)
        verdict = judge(trial, model.cost(trial.old).cpu, self.setting.policy.tolerance)
        self.trial = None
        if not verdict.paid:
            label = plan_label(trial.new)
            times = self.failures[label] = self.failures.get(label, 0) + 1
            wait = self.setting.policy.backoff * self.setting.trial * 2 ** (times - 1)
            self.banned[label] = self.time + wait
        return verdict

    def statistics(self) -> Statistics:
        """What is known well enough to plan with."""
        return self.knowledge.statistics(self.setting.query, self.setting.policy.confidence)

    # -- inside

    def _decide(self, model: Model, known: Statistics, plan: Node) -> Decision:
        self.known = known
        standing = Standing(
            plan,
            self.time,
            self.migrated,
            self.banned,
            self.regret,
            self.confirmed,
            self.knowledge.nbytes,
            self.price,
            self.overhead,
            self.tries,
            self.waiting,
        )
        return decide_by(model, known, standing, self.setting.policy, self.setting.budget)

    def _set_price(self, model: Model, plan: Node) -> None:
        if self.knowledge.timed > 0 and self._settled():
            foreseen = model.cost(plan).cpu
            if foreseen > 0:
                least, most = _PRICES
                taken = self.knowledge.seconds / self.knowledge.timed
                self.price = min(most, max(least, taken / foreseen))
                self.priced = True

    def _settled(self) -> bool:
        """Whether a plan takes what it will take if nothing changes.

        At first windows fill and code is loaded; after a leap windows hold rows from before it.
        """
        assert self.began is not None
        return self.time - self.began > 2 * self.setting.window and self.knowledge.settled

    def _content(self) -> None:
        """There is no better plan."""
        self.confirmed, self.gain, self.regret, self.pursued = 0, 0.0, 0.0, 0.0
        self.learn, self.learned, self.tries = (), False, 0

    def _estimates(self) -> dict[str, float]:
        """The estimates that are sure enough, by name."""
        least = self.setting.policy.confidence
        knowledge = self.knowledge
        rates = {
            f"rate {i}": n / knowledge.span
            for i, n in enumerate(knowledge.rows)
            if 1 - 1 / math.sqrt(1 + n) >= least
        }
        joint = {f"joint {u}": j.value for u, j in knowledge.joint().items() if j.sure >= least}
        return rates | joint

    def _drifted(self, reference: Mapping[str, float]) -> bool:
        """Whether an estimate is new or has moved since plans were last compared."""
        limit = math.log1p(self.setting.policy.drift)
        for name, value in self._estimates().items():
            before = reference.get(name)
            if before is None or (value > 0) != (before > 0):
                return True
            if value > 0 and abs(math.log(value / before)) > limit:
                return True
        return False

    # -- as plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {name: getattr(self, name) for name in _PLAIN} | {
            "knowledge": self.knowledge.to_dict(),
            "trial": None if self.trial is None else self.trial.to_dict(),
            "learn": list(self.learn),
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], setting: Setting) -> Loop:
        """The inverse of `to_dict`; what an older version did not write is as at the beginning."""
        trial = given["trial"]
        return cls(
            setting,
            Knowledge.from_dict({"window": setting.window} | given["knowledge"]),
            trial=None if trial is None else Trial.from_dict(trial, setting.query),
            learn=tuple(given["learn"]),
            **{name: given[name] for name in _PLAIN if name in given},
        )


_PLAIN = (
    "batches", "joining", "comparing", "sampling", "migrated", "confirmed", "gain", "regret",
    "pursued", "price", "overhead", "banned", "failures", "reference", "learned", "tries", "short",
    "foreseen", "compared", "usual", "excess", "step",
    "began", "priced", "tracked",
)  # fmt: skip


def _ways(learn: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The largest of these sets, each with one of the pairs in it, if any, to begin with.

    >>> list(_ways((0b011, 0b110, 0b111)))
    [(7, 3), (7, 6)]
    """
    for streams in learn:
        if not any(streams != other and streams & other == streams for other in learn):
            pairs = [p for p in learn if p.bit_count() == 2 and p & streams == p]
            yield from ((streams, first) for first in pairs or [0])


def _order(
    neighbours: Callable[[int], frozenset[int]], streams: int, first: int = 0
) -> tuple[int, ...]:
    """The streams of a connected set, each after a neighbour; some of them first."""
    left = sorted(bits(streams), key=lambda s: not first >> s & 1)
    order = [left.pop(0)]
    while left:
        near = next((s for s in left if any(s in neighbours(o) for o in order)), left[0])
        left.remove(near)
        order.append(near)
    return tuple(order)
