"""Running a history, and checking what came out against the definition.

A failed check says what is missing and what is too much, and prints the history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pyarrow as pa

from plait.engine.purging import Purge
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.runtime.local import LocalRun
from plait.testing.histories import History, stream_table
from plait.testing.oracle import Result, multiset, oracle, split_late

Late = dict[str, Counter[Result]]


def expected(history: History) -> tuple[Counter[Result], Late]:
    """By definition: the results over the rows on time, and the late rows of each stream."""
    on_time, late = split_late(history.query, history.batches)
    return oracle(history.query, on_time), {
        s.name: multiset(stream_table(s, late[s.name])) for s in history.query.streams
    }


def assert_lawful(
    history: History,
    plan: Plan | None = None,
    *,
    hash_bits: int = 64,
    portion: int | None = None,
    answer: tuple[Counter[Result], Late] | None = None,
    purge: Purge = "watermark",
) -> None:
    """Run the history with a plan; its results, late rows and counts are those of the definition.

    A small `portion` makes probes return in many parts what they find. `answer` is
    `expected(history)`, for a caller that tries many plans.
    """
    results, late = expected(history) if answer is None else answer
    query = history.query
    run = LocalRun(query, plan, hash_bits=hash_bits, portion=portion, purge=purge)
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
    assert run.counts.null_times == _null_times(query, history.batches), about


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


def _null_times(
    query: Query, batches: Sequence[Mapping[str, Sequence[Mapping[str, object]]]]
) -> dict[str, int]:
    return {
        s.name: sum(row[s.time] is None for batch in batches for row in batch.get(s.name, ()))
        for s in query.streams
    }
