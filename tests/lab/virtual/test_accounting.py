"""What work costs: pairs by nested loops, counted operations by hash joins."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from plait.errors import PlaitError
from plait.local.host import LocalRun
from plait.optimize.costs import Costs
from plait.plan.jtree import parse_shape
from plait.plan.routed import Eddies
from plait.query.query import Query
from plait.testing.examples import chain
from plait_lab.virtual.accounting import Account, Meter
from plait_lab.workloads.arrivals import Poisson, tables

PAIRS = Costs(match=1.0)


def rows_of(query: Query, seed: int = 1) -> dict[str, pa.Table]:
    arrivals = {name: Poisson(8.0) for name in query.names}
    keys = {f.name: 5 for s in query.streams for f in s.fields if f.name != "ts"}
    return tables(query, arrivals, keys, 20.0, seed)


def one_by_one(given: dict[str, pa.Table]) -> list[tuple[str, pa.Table]]:
    """Every row as a batch of its own, in order of time."""
    times = [(t["ts"][i].value, n, i) for n, t in given.items() for i in range(t.num_rows)]
    return [(name, given[name].slice(i, 1)) for _, name, i in sorted(times)]


@pytest.mark.slow
def test_oracle_nested_loops_compare_every_pair_in_the_window() -> None:
    """Tuple by tuple, the account is what looping over the windows would have compared."""
    query = chain(2)
    given = rows_of(query)
    run = LocalRun(query, parse_shape(query, "(a b)"))
    meter = Meter(query, "nested-loop", PAIRS)
    charged = expected = 0.0
    for name, row in one_by_one(given):
        before = meter.read(run.engine)
        other = run.engine.bases[1 - query.index(name)]
        expected += len(other)
        run.push({name: row})
        # The row purges the other side when it comes; the account takes the mean of both sizes.
        charged += meter.since(before, 0)
    assert charged == pytest.approx(expected, rel=0.02)
    assert charged > 1000


@pytest.mark.slow
def test_hash_joins_pay_for_what_they_find() -> None:
    query = chain(2)
    run = LocalRun(query, parse_shape(query, "(a b)"))
    meter = Meter(query, "hash", PAIRS)
    charged = 0.0
    for name, row in one_by_one(rows_of(query)):
        before = meter.read(run.engine)
        results = run.push({name: row}).num_rows
        charged += meter.since(before, results)
    assert charged == run.counts.results > 0


def test_the_prices_of_batches_are_left_out() -> None:
    query = chain(3)
    given = rows_of(query)
    totals = []
    for parts in (1, 40):
        run = LocalRun(query, parse_shape(query, "((a b) c)"))
        meter = Meter(query, "hash", Costs(insert=1.0, arrive=1.0, call=9.0, upkeep=9.0))
        before = meter.read(run.engine)
        for part in np.array_split(np.arange(0, 1000), parts):
            lo, hi = int(part[0]), int(part[-1]) + 1
            run.push({n: t.slice(t.num_rows * lo // 1000, t.num_rows * hi // 1000
                                 - t.num_rows * lo // 1000) for n, t in given.items()})  # fmt: skip
        totals.append(meter.since(before, 0))
    assert totals[0] == totals[1]


@pytest.mark.slow
@pytest.mark.parametrize("account", ["hash", "nested-loop"])
def test_moving_state_is_charged_for_what_it_recomputes(account: Account) -> None:
    query = chain(4)
    run = LocalRun(query, parse_shape(query, "(((a b) c) d)"))
    run.push(rows_of(query))
    meter = Meter(query, account, PAIRS)
    record = run.migrate(parse_shape(query, "(a ((b c) d))"), "moving-state")
    sizes = {"".join(s.streams): s.rows for s in run.engine.sizes()}
    charged = meter.moved(run.engine, record)
    if account == "hash":
        assert charged == sizes["bc"] + sizes["bcd"] == record.recomputed > 0
    else:
        assert charged == sizes["b"] * sizes["c"] + sizes["bc"] * sizes["d"] > 0


def test_both_boxes_of_a_parallel_track_are_charged() -> None:
    query = chain(3)
    old, new = (parse_shape(query, s) for s in ("((a b) c)", "(a (b c))"))
    given = rows_of(query)
    half = {n: t.slice(0, t.num_rows // 2) for n, t in given.items()}
    rest = {n: t.slice(t.num_rows // 2, 8) for n, t in given.items()}
    charged = {}
    for strategy in ("none", "parallel-track"):
        run = LocalRun(query, old)
        run.push(half)
        meter = Meter(query, "nested-loop", PAIRS)
        if strategy == "parallel-track":
            run.migrate(new, "parallel-track")
            assert run.engine.migrating
        before = meter.read(run.engine)
        run.push(rest)
        charged[strategy] = meter.since(before, 0)
    assert charged["none"] < charged["parallel-track"] < 2 * charged["none"]


def test_what_cannot_be_accounted_for_is_refused() -> None:
    query = chain(2)
    with pytest.raises(PlaitError, match=r"accounting by 'hsah'; did you mean 'hash'"):
        Meter(query, "hsah", PAIRS)  # type: ignore[arg-type]  # wrong on purpose
    with pytest.raises(PlaitError, match=r"eddies .* is not accounted for"):
        Meter(query, "hash", PAIRS).read(LocalRun(query, Eddies()).engine)
