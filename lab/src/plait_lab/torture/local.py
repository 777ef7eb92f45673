"""Torture in one process: any plan, changed at any time by anybody, with any tuning."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from random import Random
from typing import Literal

import pyarrow as pa

from plait.adapt.policy import PlanPolicy
from plait.errors import MigrationError
from plait.local.host import LocalRun
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.migration import ResultOrder, Strategy
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.oracle.answer import multiset, oracle
from plait.testing.oracle.checksum import checksum
from plait.testing.oracle.duck import TooSlow, count_and_checksum, joinable
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.strategies.policies import eager
from plait_lab.torture.cases import Case, split
from plait_lab.torture.tally import Tally

REQUESTS: tuple[Strategy | Literal["auto"], ...] = ("moving-state", "parallel-track", "auto")
_PATIENCE = 120.0
"""Seconds that DuckDB may take."""
_NAIVE = 40
"""Rows up to which the definition itself is computed; it tries all combinations."""


class Wrong(AssertionError):
    """An answer that is not the definition's."""


def play(case: Case) -> Tally:
    """Run a case and check its answer; what happened."""
    chance = case.chance("local")
    run = LocalRun(
        case.query,
        plan_for(case, chance),
        hash_bits=chance.choice((64, 64, 64, 8)) if case.rows < 20_000 else 64,
        tuning=case.tuning,
        adapt=policy_for(case, chance) or False,
        budget=Budget(memory=1e12) if chance.random() < 0.3 else None,
        costs=DEFAULT,
    )
    found = []
    for batch in case.batches:
        if case.has("moves") and chance.random() < 0.2:
            move(run, case, chance)
        if run.counts.batches and chance.random() < 0.1:
            run.release()
        found.append(run.push(batch))
    found.append(pa.Table.from_batches(list(run.finish()), case.query.schema))
    checked = check(case, found, run.counts.late)
    return Tally(
        queries=1,
        unchecked=0 if checked else 1,
        rows=sum(run.counts.rows.values()),
        results=run.counts.results,
        late=sum(run.counts.late.values()),
        migrations=sum(m.status == "done" for m in run.migrations),
    )


def plan_for(case: Case, chance: Random) -> Plan:
    """Any tree; where the rows are few, now and then a router."""
    router: Plan = chance.choice((Teddies(policy="lottery"), Teddies(packet_limit=8), Eddies()))
    tree = sample_plan(case.query, chance)
    return router if case.rows < 5_000 and chance.random() < 0.2 else tree


def policy_for(case: Case, chance: Random) -> PlanPolicy | None:
    """The usual policy, one that moves at every occasion, or none."""
    choice = chance.choice((None, PlanPolicy(), eager(1.0, None), eager(0.001, 0.0)))
    return choice if case.has("adapt") else None


def move(run: LocalRun, case: Case, chance: Random) -> None:
    """Go over to another plan; a request that makes no sense is refused and changes nothing."""
    strategy = chance.choice(REQUESTS)
    order: ResultOrder = "timestamp" if chance.random() < 0.3 else "any"
    with suppress(MigrationError):
        run.migrate(plan_for(case, chance), strategy, order=order)


def check(case: Case, found: Iterable[pa.Table], late: dict[str, int]) -> bool:
    """Compare an answer with the definition; false if DuckDB takes too long to know it."""
    rows, late_rows = split(case)
    results = pa.concat_tables([case.query.schema.empty_table(), *found])
    if sum(table.num_rows for table in rows.values()) <= _NAIVE:
        same = multiset(results) == oracle(case.query, rows)
        wanted = "what the definition says"
    else:
        try:
            number, total = count_and_checksum(case.query, rows, threads=1, seconds=_PATIENCE)
        except TooSlow:
            return False
        same = (results.num_rows, checksum(results)) == (number, total)
        wanted = f"DuckDB's {number:,}"
    if not same:
        raise Wrong(f"{results.num_rows:,} results are not {wanted}")
    for stream in case.query.streams:
        wanted_late = joinable(case.query, stream, late_rows[stream.name])
        if late.get(stream.name, 0) != wanted_late:
            raise Wrong(
                f"{late.get(stream.name, 0):,} rows of {stream.name!r} are called late, "
                f"not {wanted_late:,}"
            )
    return True
