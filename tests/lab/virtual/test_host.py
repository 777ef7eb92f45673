"""The virtual runtime: the same results as elsewhere, and time that follows from the work alone."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest

from plait.engine.purging import PurgeByWatermarks
from plait.errors import PlaitError
from plait.local.host import LocalRun
from plait.optimize.costs import PAPER, Costs
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.migration import ResultOrder, Strategy
from plait.query.query import Query
from plait.testing.examples import keyed
from plait.testing.oracle.answer import Result, multiset, oracle
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.virtual.accounting import Account
from plait_lab.virtual.host import Clean, VirtualRun
from plait_lab.virtual.machines import Link, Machine
from plait_lab.virtual.trace import Trace
from plait_lab.workloads.arrivals import Bursts, Poisson, Regular, tables

SECOND = 1_000_000
OLD, NEW = "(((a b) c) d)", "(a ((b c) d))"
UNIT = Costs(arrive=1.0)
"""Every row costs a second of work, and nothing else does anything."""


def four(width: float = 1.0) -> Query:
    return keyed("x", "xy", "yz", "z", width=round(width * SECOND))


def streams(
    query: Query, seconds: float = 8.0, rate: float = 6.0, seed: int = 1
) -> dict[str, pa.Table]:
    arrivals = {name: Poisson(rate) for name in query.names}
    return tables(query, arrivals, {"x": 4, "y": 4, "z": 4}, seconds, seed)


def results(run: VirtualRun) -> Counter[Result]:
    return multiset(pa.Table.from_batches(run.kept, run.query.schema))


@pytest.mark.parametrize("slices", range(1, 21))
def test_no_row_is_lost_to_rounding(slices: int) -> None:
    """A microsecond in so many slices: the product of their number and length may be less."""
    query = keyed("x", "x", width=0)
    rows = {s.name: pa.table({f.name: [1] for f in s.fields}).cast(s.schema) for s in query.streams}
    run = VirtualRun(query, mjoin(query), rows, quantum=1e-6 / slices, keep=True)
    run.advance()
    assert results(run).total() == 1


@pytest.mark.slow
def test_differential_results_are_those_of_a_local_run_and_of_the_oracle() -> None:
    query = four()
    given = streams(query, seconds=4.0, rate=4.0)
    local = LocalRun(query, parse_shape(query, OLD))
    expected = multiset(local.push(given))
    assert expected == oracle(query, {n: t.to_pylist() for n, t in given.items()})
    assert expected.total() > 10
    for account in ("hash", "nested-loop"):
        for purge in (PurgeByWatermarks, PurgeByLemma):
            run = virtual(query, given, account, purge)
            run.advance()
            assert results(run) == expected, (account, purge)
            assert run.trace.results == expected.total()


def virtual(
    query: Query, given: dict[str, pa.Table], account: str = "nested-loop",
    purge: type[PurgeByWatermarks] = PurgeByLemma,
    speed: float = 0.05, quantum: float = 0.05,
) -> VirtualRun:  # fmt: skip
    accounts: dict[str, Account] = {"hash": "hash", "nested-loop": "nested-loop"}
    return VirtualRun(
        query,
        parse_shape(query, OLD),
        given,
        machine=Machine(speed),
        account=accounts[account],
        costs=PAPER,
        purge=purge,
        quantum=quantum,
        keep=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("purge", [PurgeByWatermarks, PurgeByLemma])
@pytest.mark.parametrize("clean", ["work-off", "take-over"])
@pytest.mark.parametrize("order", ["any", "timestamp"])
@pytest.mark.parametrize("strategy", ["moving-state", "parallel-track"])
@pytest.mark.parametrize("speed", [1.0, 0.0005])
def test_differential_migrations_change_no_result(
    purge: type[PurgeByWatermarks],
    clean: Clean,
    order: ResultOrder,
    strategy: Strategy,
    speed: float,
) -> None:
    query = four()
    given = streams(query)
    expected = multiset(LocalRun(query).push(given))
    run = virtual(query, given, purge=purge, speed=speed)
    run.migrate(3.0, parse_shape(query, NEW), strategy, order=order, clean=clean)
    trace = run.advance()
    assert results(run) == expected
    assert trace.migration is not None
    assert trace.migration.start >= 3.0
    assert not run.migrating
    assert run.done


@pytest.mark.slow
def test_the_same_run_twice_is_the_same() -> None:
    query = four()
    traces: list[Trace] = []
    for _ in range(2):
        run = virtual(query, streams(query), speed=0.01)
        run.migrate(3.0, parse_shape(query, NEW), "parallel-track")
        traces.append(run.advance())
    assert traces[0] == traces[1]
    assert traces[0] != virtual(query, streams(query, seed=2), speed=0.01).advance()


def test_a_slow_machine_falls_behind_and_catches_up_after_a_burst() -> None:
    query = four()
    arrivals = {name: Bursts(10.0, period=4.0, share=0.25) for name in query.names}
    given = tables(query, arrivals, {"x": 50, "y": 50, "z": 50}, 4.0, seed=1)
    total = sum(t.num_rows for t in given.values())
    run = VirtualRun(query, parse_shape(query, OLD), given, machine=Machine(60.0),
                     costs=UNIT, quantum=0.05)  # fmt: skip
    trace = run.advance()
    # All rows come in the first second; the machine does 60 of them per second.
    assert trace.end == pytest.approx(total / 60, rel=0.1)
    queued = trace.queued([0.5, 0.9, 1.5, trace.end])
    assert queued[0] < queued[1] > queued[2] > queued[3] == 0
    assert queued[1] == pytest.approx(total * 0.9 - 0.9 * 60, rel=0.25)
    assert trace.busy([0.2, 1.0]).tolist() == pytest.approx([1.0])


def test_a_fast_machine_waits_for_the_streams() -> None:
    query = four()
    given = tables(query, {n: Regular(10.0) for n in query.names}, {}, 5.0, seed=1)
    run = VirtualRun(query, parse_shape(query, OLD), given, machine=Machine(400.0), costs=UNIT,
                     quantum=0.1)  # fmt: skip
    trace = run.advance()
    assert trace.end == pytest.approx(5.0, abs=0.1)
    assert trace.busy([1.0, 4.0]).tolist() == pytest.approx([0.1], rel=0.05)
    assert max(trace.queued([1.0, 2.0, 3.0])) <= 4


@pytest.mark.slow
def test_conservation_of_rows() -> None:
    query = four()
    given = streams(query)
    total = sum(t.num_rows for t in given.values())
    run = virtual(query, given, speed=0.0005)
    for until in (1.0, 2.5, 4.0, 7.0):
        run.advance(until)
        taken = sum(s.rows for s in run.trace.slices)
        arrived = sum(
            sum(stamp.value <= run.clock * SECOND for stamp in t["ts"]) for t in given.values()
        )
        assert taken + run.queued == arrived
    run.advance()
    assert sum(s.rows for s in run.trace.slices) == total
    assert run.queued == 0


@pytest.mark.slow
def test_moving_state_works_off_what_waits_or_takes_it_over() -> None:
    query = four()
    given = streams(query, rate=10.0)
    lengths: dict[str, Trace] = {}
    for clean in ("work-off", "take-over"):
        run = virtual(query, given, speed=0.0005)
        how: Clean = "work-off" if clean == "work-off" else "take-over"
        run.migrate(4.0, parse_shape(query, NEW), "moving-state", clean=how)
        lengths[clean] = run.advance()
    cleaned = lengths["work-off"].stage("clean")
    moved = lengths["work-off"].stage("move")
    assert cleaned is not None and moved is not None
    assert cleaned.length > moved.length > 0
    assert cleaned.end == moved.start
    assert lengths["take-over"].stage("clean") is None
    # What had arrived before the request was worked off by then, and not much more.
    reached = max(s.reached for s in lengths["work-off"].slices if s.end <= cleaned.end)
    assert reached == pytest.approx(4.0, abs=0.06)
    # Nothing comes out while states are moved.
    still = lengths["work-off"].results_by([moved.start, moved.end])
    assert still[0] == still[1]


@pytest.mark.slow
@pytest.mark.parametrize(("shape", "windows"), [(OLD, 2.0), ("(a b c d)", 1.0)])
def test_a_parallel_track_takes_one_window_or_two(shape: str, windows: float) -> None:
    query = four()
    given = streams(query, rate=40.0)
    run = VirtualRun(query, parse_shape(query, shape), given, machine=Machine(100.0), costs=PAPER,
                     purge=PurgeByLemma, quantum=0.02)  # fmt: skip
    run.migrate(3.0, parse_shape(query, NEW), "parallel-track")
    trace = run.advance(through_migrations=True)
    assert trace.migration is not None
    assert trace.migration.length == pytest.approx(windows, rel=0.1)


@pytest.mark.slow
def test_by_watermarks_old_tuples_are_gone_after_one_window() -> None:
    query = four()
    run = VirtualRun(query, parse_shape(query, OLD), streams(query, rate=40.0),
                     machine=Machine(100.0), costs=PAPER, quantum=0.02)  # fmt: skip
    run.migrate(3.0, parse_shape(query, NEW), "parallel-track")
    trace = run.advance(through_migrations=True)
    assert trace.migration is not None
    assert trace.migration.length == pytest.approx(1.0, rel=0.15)


def test_rows_through_a_link_come_later() -> None:
    query = four()
    given = streams(query)
    feeds = {"a": Link(latency=1.5), "b": Link(rate=3.0)}
    run = VirtualRun(query, parse_shape(query, OLD), given, costs=UNIT, machine=Machine(1e6),
                     quantum=0.1, feeds=feeds, keep=True)  # fmt: skip
    trace = run.advance()
    assert results(run) == multiset(LocalRun(query).push(given))
    # b needs a third of a second per row: the last one is there long after it was sent.
    assert trace.end >= given["b"].num_rows / 3.0
    first = trace.slices[0]
    assert first.begin >= first.reached + 1.5


def test_what_makes_no_sense_is_refused() -> None:
    query = four()
    given = streams(query)
    plan = parse_shape(query, OLD)
    with pytest.raises(PlaitError, match="quantum"):
        VirtualRun(query, plan, given, quantum=0.0)
    backwards = given | {"a": given["a"].take(list(range(given["a"].num_rows))[::-1])}
    with pytest.raises(PlaitError, match="'a' are not in order"):
        VirtualRun(query, plan, backwards)
    with pytest.raises(PlaitError, match="cleaned by 'wipe'"):
        VirtualRun(query, plan, given).migrate(1.0, plan, clean="wipe")  # type: ignore[arg-type]  # wrong on purpose
