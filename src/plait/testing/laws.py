"""Running a history, and checking what came out against the definition.

A failed check says what is missing and what is too much, and prints the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pyarrow as pa

from plait.cluster.packets import lean
from plait.engine.purging import Purge
from plait.node.store import Engines
from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query
from plait.runtime.local import LocalRun
from plait.testing.fates import FILTERED, LATE, NO_TIME, NULL_KEY, counts, set_aside
from plait.testing.histories import History, stream_table
from plait.testing.oracle import Result, multiset, oracle, split_late
from plait.testing.processors import Cluster

Late = dict[str, Counter[Result]]
Rows = Sequence[Mapping[str, object]]


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
    purge: Purge = "watermark",
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
    about = f"plan {run.plan}, hash_bits={hash_bits}, purge={purge}\n{history!r}"
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
    """Run the history on processors whose tasks die and lose their caches: the same holds there."""
    chance = Random(seed)
    query = history.query
    plans = (sample_plan(query, chance), Teddies(policy="lottery"), Eddies())
    plan = chance.choices(plans, (4, 1, 1))[0]
    secret = chance.choice((None, 0, chance.getrandbits(64)))
    cluster = Cluster(
        query, plan, processors, workers, aside=True, tuning=history.tuning, seed=secret
    )
    aside: Counter[tuple[str, str, Result]] = Counter()
    found: Counter[Result] = Counter()
    late_rows: Counter[str] = Counter()
    for batch in history.tables():
        table = cluster.run(
            batch,
            tasks=chance.choice((1, 2, 3)),
            worker_of=lambda _: chance.randrange(2),
            die=lambda _processor, _step: chance.random() < 0.2,
        )
        found += multiset(table)
        for part in cluster.aside:
            name = query.names[part.stream]
            rows = multiset(pa.Table.from_batches([part.rows]))
            aside.update({(name, part.reason, row): n for row, n in rows.items()})
        for report in cluster.reports:
            late_rows.update(report.late)
    on_time, _ = split_late(query, history.batches)
    answer = oracle(query, on_time)
    assert found == answer, (
        f"{difference(found, answer)}\n{cluster.processor.setup.plan}\n{history!r}"
    )
    wanted = set_aside(query, history.batches)
    assert aside == _as_handed_out(query, wanted), repr(history)
    assert late_rows == counts(wanted, LATE)
    totals = [report.total for report in cluster.reports]
    assert sum(total["results"] for total in totals) == answer.total(), "a repeated batch counts"
    assert sum((Counter(total["late"]) for total in totals), Counter()) == late_rows
    if totals:
        seen = {s.name: sum(len(b.get(s.name, ())) for b in history.batches) for s in query.streams}
        assert Counter(totals[0]["rows"]) == Counter({name: n for name, n in seen.items() if n})
        for name, reason in (
            ("null_times", NO_TIME),
            ("null_keys", NULL_KEY),
            ("filtered", FILTERED),
        ):
            assert Counter(totals[0][name]) == counts(wanted, reason), f"{name}\n{history!r}"


def _as_handed_out(
    query: Query, aside: Mapping[str, Mapping[str, Rows]]
) -> Counter[tuple[str, str, Result]]:
    """Stream, reason and values of the rows that processors hand out, if they are asked to."""
    found: Counter[tuple[str, str, Result]] = Counter()
    narrow = lean(query)
    for stream, needed in zip(query.streams, narrow.streams, strict=True):
        for reason in (NO_TIME, NULL_KEY, LATE):
            table = stream_table(stream, aside[stream.name][reason])
            rows = multiset(table.select([f.name for f in needed.fields]))
            found.update({(stream.name, reason, row): n for row, n in rows.items()})
    return found
