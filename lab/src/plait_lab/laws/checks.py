"""Running a history, and checking what came out against the definition.

A failed check says what is missing and what is too much, and prints the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random

import pyarrow as pa

from plait.engine.purging import PurgeByWatermarks
from plait.local.host import LocalRun
from plait.node.durable.store import Engines
from plait.plan.routed import Plan
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait.testing.oracle.fates import FILTERED, LATE, NO_TIME, NULL_KEY, counts, set_aside
from plait_lab.laws.hosts import definition, run_on_processors
from plait_lab.laws.strategies.histories import History, stream_table

Late = dict[str, Counter[Result]]


def expected(history: History) -> tuple[Counter[Result], Late]:
    """By definition: the results over the rows on time, and the late rows of each stream."""
    on_time, _ = split_late(history.query, history.batches)
    aside = set_aside(history.query, history.batches)
    return oracle(history.query, on_time), {
        s.name: multiset(stream_table(s, aside[s.name][LATE])) for s in history.query.streams
    }


def assert_lawful(
    history: History,
    plan: Plan | None = None,
    *,
    hash_bits: int = 64,
    answer: tuple[Counter[Result], Late] | None = None,
    purge: type[PurgeByWatermarks] = PurgeByWatermarks,
    seed: int = 0,
) -> None:
    """Run the history with a plan; its results, late rows and counts are those of the definition.

    `answer` is `expected(history)`, for a caller that tries many plans.
    """
    results, late = expected(history) if answer is None else answer
    query = history.query
    run = LocalRun(query, plan, hash_bits=hash_bits, purge=purge, tuning=history.tuning, seed=seed)
    found: Counter[Result] = Counter()
    for batch in history.tables():
        table = run.push(batch)
        assert table.schema == query.schema
        found += multiset(table)
    found += multiset(pa.Table.from_batches(list(run.finish()), query.schema))
    about = f"plan {run.plan}, hash_bits={hash_bits}, purge={purge.__name__}\n{history!r}"
    assert found == results, f"{difference(found, results)}\n{about}"
    handed_out = {name: multiset(table) for name, table in run.late().items()}
    assert handed_out == late, f"late rows {handed_out} instead of {late}\n{about}"
    assert not any(table.num_rows for table in run.late().values()), "late rows twice"
    assert run.counts.results == results.total(), about
    assert run.counts.late == {name: rows.total() for name, rows in late.items()}, about
    aside = set_aside(query, history.batches)
    assert Counter(run.counts.null_times) == counts(aside, NO_TIME), about
    assert Counter(run.counts.filtered) == counts(aside, FILTERED), about
    assert Counter(run.counts.null_keys) == counts(aside, NULL_KEY), about


def difference(found: Counter[Result], wanted: Counter[Result]) -> str:
    """What is missing and what is too much.

    >>> print(difference(Counter({(1,): 2}), Counter({(1,): 1, (2,): 1})))
    1 results missing: [((2,), 1)]; 1 too many: [((1,), 1)]
    """
    missing, surplus = wanted - found, found - wanted
    return (
        f"{missing.total()} results missing: {missing.most_common(5)}; "
        f"{surplus.total()} too many: {surplus.most_common(5)}"
    )


def assert_lawful_on_processors(
    history: History, processors: int, seed: int, workers: Sequence[Engines] | None = None
) -> None:
    """Run the history on processors whose tasks die and lose their caches: the same holds there.

    Also, what they counted in all is right, although many batches were repeated.
    """
    query = history.query
    answer, cluster = run_on_processors(history, Random(seed), processors, workers)
    wanted = definition(query, history.batches)
    about = f"{cluster.processor.setup.plan}\n{history!r}"
    assert answer.results == wanted.results, (
        f"{difference(answer.results, wanted.results)}\n{about}"
    )
    assert answer == wanted, about
    totals = [report.total for report in cluster.last_reports]
    if not totals:
        return
    assert sum(total["results"] for total in totals) == wanted.results.total(), about
    aside = set_aside(query, history.batches)
    late = sum((Counter(total["late"]) for total in totals), Counter[str]())
    assert late == counts(aside, LATE), about
    seen = {name: len(rows) for name, rows in history.rows().items()}
    assert Counter(totals[0]["rows"]) == +Counter(seen), about
    for name, reason in (("null_times", NO_TIME), ("null_keys", NULL_KEY), ("filtered", FILTERED)):
        assert Counter(totals[0][name]) == counts(aside, reason), f"{name}\n{about}"
