"""Checkpoints of queries that have run for long, made without running them.

What a console reads of a query on Spark is written here as Plait and Spark write it: reports, event
logs, history, routing tables and Spark's own logs. The streams are those of a market. Which of them
match often turns over every so often; what the processors make of it is decided by the adaptive
loop's own functions, so estimates, costs and reasons fit together.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa

from plait.adapt.decide import Decision, Situation, decide
from plait.adapt.events import Event
from plait.adapt.guard import Trial, judge
from plait.adapt.loop import beginning
from plait.adapt.policy import PlanPolicy
from plait.adapt.setting import Setting
from plait.api.join import join
from plait.groups.moves.move import Move
from plait.groups.routing.table import Table, initial
from plait.machine.stores import LocalStore
from plait.node.reports.history import HistoryEntry, history_entry
from plait.node.reports.question import Question
from plait.node.reports.report import Report
from plait.node.reports.work import streams_name
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.optimize.model import Model
from plait.optimize.statistics import Statistics, statistics_to_dict
from plait.plan.jtree import Join, Node, joins, mjoin
from plait.plan.labels import plan_label
from plait.plan.migration import Migration
from plait.plan.steps import stream_set
from plait.query.query import Query
from plait.spark.control.driver_files import HISTORY, QUESTION
from plait.spark.control.routing_tables import RoutingTables

ID = "0f7b7a3e-5d0e-4f8a-9d53-9a1f2f7c1a11"
BEGAN = 1_760_000_000
"""When the first batch began, in seconds since 1970."""
_MICROS = 1_000_000
_TRIAL = 10
"""Batches after which a change of plan is judged."""
_EAGER = PlanPolicy(confidence=0.0, margin=0.01, least=0.0, confirm=1)


def market() -> Query:
    """Four streams over one symbol, within ten seconds."""

    def row(*more: tuple[str, pa.DataType]) -> pa.Schema:
        return pa.schema([("sym", pa.string()), ("ts", pa.timestamp("us", "UTC")), *more])

    return (
        join(
            trades=row(("price", pa.float64())),
            quotes=row(("bid", pa.float64())),
            news=row(("headline", pa.string())),
            ratings=row(("stars", pa.int32())),
        )
        .on("trades.sym = quotes.sym", "quotes.sym = news.sym", "news.sym = ratings.sym")
        .watermark("2 seconds")
        .within("10 seconds")
        .select("trades.sym", "trades.price", "quotes.bid", "news.headline", "ratings.stars")
        .query
    )


@dataclass(frozen=True)
class LongRun:
    """A query that has run for so many batches on so many processors."""

    batches: int
    processors: int = 64
    turns: int = 10
    """How often the streams turn over."""
    compared: int = 20
    """Batches between two comparisons of plans in the event logs."""
    kept: int = 128
    """Batches of which there are reports."""
    seed: int = 1
    query: Query = field(default_factory=market)

    def write(self, where: Path) -> Path:
        """Write the checkpoint; the control directory in it."""
        control = where / "plait" / "join"
        (control / "events").mkdir(parents=True)
        (where / "metadata").write_text(json.dumps({"id": ID}))
        question = Question(
            self.query, str(self.plans[0]), self.processors, self.table, PlanPolicy(), self.budget
        )
        (control / QUESTION).write_text(question.to_json())
        with (control / HISTORY).open("w", encoding="utf-8") as log:
            for number in range(self.batches):
                log.write(json.dumps(self.past(number).to_dict(), separators=(",", ":")) + "\n")
        for processor in range(self.processors):
            with (control / "events" / f"{processor}.jsonl").open("w", encoding="utf-8") as log:
                log.writelines(json.dumps(e.to_dict()) + "\n" for e in self.events(processor))
        reports = control / "reports" / ID
        reports.mkdir(parents=True)
        for number in range(max(0, self.batches - self.kept), self.batches):
            for processor in range(self.processors):
                path = reports / f"{number}-{processor}.json"
                path.write_text(self.report(number, processor).to_json())
        self._spark_logs(where)
        self._groups(control)
        return control

    # -- what the streams are like

    @cached_property
    def plans(self) -> tuple[Node, Node]:
        """The best plans before and after the streams turn over."""
        found: list[Node] = []
        for phase in range(2):
            standing = Situation(mjoin(self.query), 0.0, regret=1e9)
            best = decide(self.query, self.known(phase), standing, _EAGER, costs=DEFAULT).plan
            found.append(standing.plan if best is None else best)
        first, second = found
        return first, second

    @property
    def hot(self) -> int:
        """The processor with the most rows."""
        return 5 % self.processors

    @property
    def budget(self) -> Budget:
        """Of one processor."""
        return Budget(memory=24e6)

    @property
    def table(self) -> Table:
        """Where the groups are at the beginning."""
        return initial([group % self.processors for group in range(max(128, self.processors))])

    def phase(self, number: int) -> int:
        """How often the streams have turned over before a batch."""
        return number * self.turns // max(self.batches, 1)

    def known(self, phase: int) -> Statistics:
        """What a processor believes in a phase."""
        chance = Random(f"{self.seed} {phase % 2}")
        seldom, often = (5e-5, 6e-3) if phase % 2 else (6e-3, 5e-5)
        rates = {n: r / 2 / self.processors for n, r in self.rows(0).items()}
        pairs = {
            "trades quotes": 1.2e-3, "trades news": 9e-4, "trades ratings": seldom,
            "quotes news": 1.1e-3, "quotes ratings": 8e-4, "news ratings": often,
        }  # fmt: skip
        found = Statistics.of(rates, joint=pairs, batch=2.0)
        sure = {
            name: replace(e, age=1.0, confidence=round(chance.uniform(0.55, 0.99), 2))
            for name, e in found.joint.items()
        }
        fast = {n: replace(e, age=0.0, confidence=0.98) for n, e in found.rates.items()}
        return replace(found, rates=fast, joint=sure)

    @cached_property
    def _decided(self) -> tuple[tuple[Statistics, Situation, Decision], ...]:
        """What was decided when the streams turned over: away from the second plan, and back."""
        found = []
        for phase in range(2):
            known = self.known(phase)
            standing = Situation(self.plans[1 - phase], 0.0, regret=12.0, nbytes=9e6)
            decision = decide(self.query, known, standing, _EAGER, costs=DEFAULT)
            found.append((known, standing, decision))
        return tuple(found)

    def plan(self, number: int, processor: int) -> Node:
        """The plan that runs after a batch: processors notice one after the other."""
        return self.plans[self.phase(max(0, number - 3 - processor % 4)) % 2]

    def changes(self, number: int, processor: int) -> bool:
        """Whether the plan changes in a batch."""
        return number > 0 and self.plan(number, processor) != self.plan(number - 1, processor)

    def judges(self, number: int, processor: int) -> bool:
        """Whether a change of plan is judged in a batch."""
        return number > _TRIAL and self.changes(number - _TRIAL, processor)

    def watermark(self, number: int) -> int:
        """In microseconds; it falls behind in the middle and catches up."""
        behind = 4 + 30 * max(0.0, math.sin(6 * number / max(self.batches, 1)) - 0.8)
        return round((BEGAN + 2 * number - behind) * _MICROS)

    # -- what is written of it

    def events(self, processor: int) -> Iterator[Event]:
        """The event log of a processor."""
        setting = Setting(self.query, PlanPolicy(), self.budget, DEFAULT)
        yield replace(beginning(setting, self.plans[0]), processor=processor)
        for number in range(self.batches):
            told = self.changes(number, processor) or self.judges(number, processor)
            if told or number % self.compared == 0:
                yield from self.told(number, processor)

    def told(self, number: int, processor: int) -> Iterator[Event]:
        """What the loop of a processor says after a batch."""
        now, batch = self.watermark(number), number + 1
        known, standing, decision = self._decided[self.phase(number) % 2]
        plan = self.plan(number, processor)
        if not self.changes(number, processor):
            standing = replace(standing, plan=plan)
            decision = Decision("stay", (f"{plan_label(plan)} is the best plan",), decision.current)
        data = {"statistics": statistics_to_dict(known), "standing": standing.to_dict()}
        data = data | {"decision": decision.to_dict()}
        yield Event("compared", batch, now, data, processor)
        if self.changes(number, processor):
            old = self.plan(number - 1, processor)
            record = Migration("moving-state", old, plan, start=number, end=number,
                               shared=1200 + processor, recomputed=5400, pause=0.031)  # fmt: skip
            labels = {"old": plan_label(old), "plan": plan_label(plan), "returned": False}
            yield Event("migrated", batch, now, record.to_dict() | labels, processor)
        if self.judges(number, processor):
            old = self.plan(number - _TRIAL - 1, processor)
            model = Model(self.query, known, DEFAULT)
            before, after = (model.cost(p).cpu for p in (old, plan))
            trial = Trial(old, plan, 0.0, after / before, 1.0, seconds=11 * after, span=10.0)
            verdict = judge(trial, before, 0.15)
            judged = {"plan": plan_label(plan), "old": plan_label(old)}
            yield Event("judged", batch, now, judged | verdict.to_dict(), processor)

    def report(self, number: int, processor: int) -> Report:
        """What a processor reports of a batch."""
        chance = Random(f"{self.seed} {number} {processor}")
        hot = 2.6 if processor == self.hot else 1.0
        share = hot * chance.uniform(0.95, 1.05) / (self.processors + 1.6)
        rows = self.rows(number)
        routed = {name: round(n * share) for name, n in rows.items()}
        plan = self.plan(number, processor)
        states, work = self._states(plan, share)
        mark = self.watermark(number)
        told = self.changes(number, processor) or self.judges(number, processor)
        events = list(self.told(number, processor)) if told else []
        held = [g for g, places in enumerate(self.table.places) if processor in places]
        return Report(
            processor,
            number + 1,
            rows=rows,
            late={"news": chance.randrange(4)} if number % 7 == 0 else {},
            routed=routed,
            groups={name: {g: n // max(len(held), 1) for g in held} for name, n in routed.items()},
            results=round(500 * self.processors * share * (1 + 0.4 * math.sin(number / 40))),
            written_bytes=sum(routed.values()) * 60,
            segments=24,
            state_rows=sum(rows for rows, _ in states.values()),
            state_bytes=sum(size for _, size in states.values()),
            states=states,
            work=work,
            watermarks=dict.fromkeys(self.query.names, mark),
            plan=str(plan),
            events=events,
            seconds={"prepare": 0.01, "write": 0.02,
                     "join": 0.2 * self.processors * share * chance.uniform(0.8, 1.2)},
            total={"results": 500 * number, "rows": {n: r * number for n, r in rows.items()},
                   "late": {"news": number // 7}},
        )  # fmt: skip

    def rows(self, number: int) -> dict[str, int]:
        """Rows of each stream in a batch."""
        wave = 1 + 0.3 * math.sin(number / 90) + 0.05 * math.sin(number * 1.7)
        per = {"trades": 5_750, "quotes": 13_500, "news": 1_925, "ratings": 2_875}
        return {name: round(n * self.processors * wave) for name, n in per.items()}

    def _states(
        self, plan: Node, share: float
    ) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
        states: dict[str, list[int]] = {}
        work: dict[str, list[int]] = {}
        rows = {n: round(5 * r * share) for n, r in self.rows(0).items()}
        for name in self.query.names:
            states[streams_name(self.query.names, [self.query.index(name)])] = [
                rows[name],
                rows[name] * 96,
            ]
        for at in joins(plan):
            name = streams_name(self.query.names, stream_set(self.query, at))
            probes = sum(rows[leaf] for leaf in at.streams) // 5
            work[name] = [probes, probes, 3 * probes, probes // 2, probes // 3]
            if at is not plan and isinstance(at, Join):
                states[name] = [probes, probes * 40]
        return states, work

    def past(self, number: int) -> HistoryEntry:
        """What the history tells of a batch; cheaper than from the reports of all processors."""
        one = history_entry(number, [self.report(number, 0)])
        changed = [
            p for p in range(self.processors) if self.changes(number, p) or self.judges(number, p)
        ]
        if changed:
            reports = [self.report(number, p) for p in changed]
            one = replace(one, decisions=history_entry(number, reports).decisions)
        chance = Random(f"{self.seed} {number}")
        slow = 1.9 if self.phase(number) != self.phase(max(0, number - 6)) else 1.0
        plans: dict[str, int] = {}
        for processor in range(self.processors):
            label = str(self.plan(number, processor))
            plans[label] = plans.get(label, 0) + 1
        return replace(
            one,
            at=float(BEGAN + 2 * number),
            took=round(slow * chance.uniform(0.7, 0.9), 4),
            results=round(one.results * self.processors),
            state_rows=one.state_rows * self.processors,
            state_bytes=round(one.state_bytes * self.processors * chance.uniform(0.97, 1.03)),
            fullest=round(one.state_bytes * 2.6),
            plans=plans,
            hottest=(self.hot, 2.6),
        )

    def _spark_logs(self, where: Path) -> None:
        for log in ("offsets", "commits"):
            (where / log).mkdir()
        for number in range(max(0, self.batches - 100), self.batches):
            began = BEGAN + 2 * number
            about = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1000 * began})
            (where / "offsets" / str(number)).write_text(f"v1\n{about}\n{{}}")
            commit = where / "commits" / str(number)
            commit.write_text("v1\n{}")
            os.utime(commit, (began + 0.8, began + 0.8))

    def _groups(self, control: Path) -> None:
        """A move that has ended, and one that is under way."""
        if self.processors < 2:
            return
        # Groups that have the number of their processor.
        hot, other = self.hot, (self.hot + 1) % self.processors
        first = Move(1, "MSLB", (hot,), (hot,), (other,))
        second = Move(2, "PTLB", (other,), (other,), (hot,))
        last = max(self.batches - 40, 1)
        tables = RoutingTables(LocalStore(control / "tables"))
        table = self.table.begin(first, last, self.processors)
        tables.add(table)
        table = table.end(1, last + 4)
        tables.add(table)
        tables.add(table.begin(second, last + 20, self.processors))
        move: dict[str, Any] = {"move": {"groups": [hot], "senders": [hot], "receivers": [other],
                                         "protocol": "MSLB"}, "done": True, "why": ""}  # fmt: skip
        moved = Event("relocated", last + 4, self.watermark(last), move, -1)
        (control / "balance.jsonl").write_text(json.dumps(moved.to_dict()) + "\n")
