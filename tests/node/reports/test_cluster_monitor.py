"""What the distribution manager sees is what the processors have reported."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from plait.groups.balance.cluster import divided_work
from plait.groups.balance.manager import ManagerState, manage
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.moves.move import Move
from plait.groups.routing.table import Table, initial
from plait.node.reports.cluster_monitor import ClusterMonitor
from plait.node.reports.report import Report
from plait.query.query import NEVER_LATE
from plait_lab.workloads.keyed import keyed_query

SECOND = 1_000_000
QUERY = keyed_query([["k"]] * 2, 10 * SECOND, 5 * SECOND)
TABLE = initial([0, 0, 1])


def report(processor: int, at: float, **given: Any) -> Report:
    """A report in which both streams have come that far."""
    marks = {name: round(at * SECOND) for name in QUERY.names}
    return Report(processor, watermarks=marks, **given)


def monitor() -> ClusterMonitor:
    """Both processors have reported once, so that time runs."""
    found = ClusterMonitor(QUERY, 3, 2)
    found.add([report(0, 100), report(1, 100)], TABLE)
    return found


def test_what_is_asked_about_the_query() -> None:
    assert (monitor().window, monitor().life) == (10.0, 15.0)


def test_a_stream_without_watermark_does_not_keep_rows_for_ever_in_the_estimate() -> None:
    endless = replace(QUERY.streams[0], delay=NEVER_LATE)
    query = replace(QUERY, streams=(endless, QUERY.streams[1]))
    assert ClusterMonitor(query, 3, 2).life == 15.0


def test_a_look_covers_the_batches_since_the_one_before() -> None:
    found = monitor()
    assert found.snapshot(TABLE, range(2)) is None, "no time has passed"
    for at in (102, 104):
        found.add([report(0, at, seconds={"join": 0.5, "write": 0.25}, results=3)], TABLE)
    snapshot = found.snapshot(TABLE, [0])
    assert snapshot is not None and (snapshot.time, snapshot.span) == (4.0, 4.0)
    first, second = snapshot.processors
    assert (first.seconds, first.matches, first.active) == (1.5, 6, True)
    assert (second.seconds, second.active) == (None, False)
    found.add([report(0, 105, seconds={"join": 0.1})], TABLE)
    again = found.snapshot(TABLE, [0])
    assert again is not None and (again.span, again.processors[0].seconds) == (1.0, 0.1)


def test_who_waits_for_a_core_has_no_more_work() -> None:
    """On a busy machine a task may take ten times as long as its neighbour for the same rows."""
    found = monitor()
    same = {"prepare": 0.25, "join": 0.5, "write": 0.25}
    waited = {"prepare": 0.25, "join": 10.0, "write": 0.25}
    found.add([report(0, 110, seconds=waited, cpu=same), report(1, 110, seconds=same)], TABLE)
    snapshot = found.snapshot(TABLE, range(2))
    assert snapshot is not None and [p.seconds for p in snapshot.processors] == [0.75, 0.75]


def test_what_conditions_drop_is_work_too() -> None:
    """A hot spot: its rows find a million others, and almost none passes a condition."""
    found = monitor()
    hot, cold = {0: 500, 1: 500}, {2: 500}
    found.add(
        [
            report(0, 110, cpu={"join": 1.0}, groups={"s0": hot, "s1": {0: 500, 1: 1}}),
            report(1, 110, cpu={"join": 0.1}, groups={"s0": cold}),
        ],
        TABLE,
    )
    calm = found.snapshot(TABLE, range(2))
    assert calm is not None and calm.processors[0].matches == 0
    visits = {"s0 s1": [1500, 1500, 1_000_000, 10, 10]}
    found.add([report(0, 120, groups={"s0": hot, "s1": {0: 500, 1: 1}}, work=visits)], TABLE)
    busy = found.snapshot(TABLE, range(2))
    assert busy is not None
    matches = busy.processors[0].matches
    assert matches is not None and matches > 10 * 1501
    works = divided_work(1.0, matches, [g for g in busy.groups if g.holders == (0,)])
    assert works[0] is not None and works[0].total > 0.9, "a third of the rows, most of the work"


def test_the_first_batch_tells_nothing_about_loads() -> None:
    found = ClusterMonitor(QUERY, 3, 2)
    found.add([report(0, 100, seconds={"join": 9.0}, groups={"s0": {0: 50}})], TABLE)
    found.add([report(0, 110, seconds={"join": 1.0})], TABLE)
    snapshot = found.snapshot(TABLE, range(2))
    assert snapshot is not None and snapshot.processors[0].seconds == 1.0
    assert snapshot.groups[0].arrived == (0, 0) and snapshot.groups[0].stored == (50, 0)


def test_a_rebuilt_engine_or_rows_taken_in_are_no_work_of_groups() -> None:
    found = monitor()
    found.add([report(0, 110, seconds={"prepare": 8.0, "join": 1.0})], TABLE)
    snapshot = found.snapshot(TABLE, range(2))
    assert snapshot is not None and snapshot.processors[0].seconds == 1.0


def test_the_least_watermark_is_the_time_and_never_goes_back() -> None:
    found = monitor()
    found.add([Report(0, watermarks={"s0": 200 * SECOND, "s1": 103 * SECOND})], TABLE)
    assert found.time == 3.0
    found.add([Report(0, watermarks={"s0": 200 * SECOND, "s1": 101 * SECOND})], TABLE)
    assert found.time == 3.0
    found.add([Report(0)], TABLE)
    assert found.time == 3.0, "a processor that has seen no stream yet"


@pytest.mark.parametrize("spread", [None, 0])
def test_rows_are_counted_once(spread: int | None) -> None:
    """Of a stream that is divided, rows are added up; of copies, the largest number counts."""
    table = TABLE
    if spread is not None:
        move = Move(1, "MSLB", (0,), (0,), (0, 1), spread)
        table = TABLE.begin(move, 1, 2).end(1, 2)
    found = monitor()
    here = report(0, 110, groups={"s0": {0: 4, 1: 1}, "s1": {0: 7}})
    there = report(1, 110, groups={"s0": {0: 3}, "s1": {0: 7, 2: 2}})
    found.add([here, there], table)
    snapshot = found.snapshot(table, range(2))
    assert snapshot is not None
    first, second, third = snapshot.groups
    assert first.arrived == (4 if spread is None else 7, 7)
    assert (second.arrived, third.arrived) == ((1, 0), (0, 2))
    assert first.holders == ((0,) if spread is None else (0, 1)) and first.spread == spread


def test_rows_are_stored_for_a_window_and_the_delay() -> None:
    found = monitor()
    for at, rows in ((105, 1), (115, 10), (121, 100)):
        found.add([report(0, at, groups={"s0": {0: rows}}, state_bytes=1_100)], TABLE)
    snapshot = found.snapshot(TABLE, range(2))
    assert snapshot is not None
    assert snapshot.groups[0].arrived == (111, 0)
    assert snapshot.groups[0].stored == (110, 0), "what came before 106 has expired"
    assert snapshot.groups[0].nbytes == pytest.approx(1_100.0)


def test_groups_on_their_way_are_seen() -> None:
    found = monitor()
    table: Table = TABLE.begin(Move(1, "PTLB", (1,), (0,), (1,)), 1, 2)
    found.add([report(0, 110)], table)
    snapshot = found.snapshot(table, range(2))
    assert snapshot is not None and [g.moving for g in snapshot.groups] == [False, True, False]


@pytest.mark.parametrize("visited", [3_000_000, 3_000])
def test_a_hot_group_is_spread_only_if_it_has_the_work(visited: int) -> None:
    """As it was in a hot spot: of 68 % of the rows, half are of one group. What it takes differs.

    If its rows find much, although a condition drops nearly all, moving its neighbours is in vain.
    """
    table, found = initial([0] * 64 + [1] * 64), ClusterMonitor(QUERY, 128, 2)
    hot = {"s0": dict.fromkeys(range(64), 100) | {0: 17_600}, "s1": dict.fromkeys(range(64), 160)}
    cool = {name: dict.fromkeys(range(64, 128), rows) for name, rows in (("s0", 100), ("s1", 160))}
    manager, setting, wishes = ManagerState(), BalanceSetting(found.window), []
    for at in range(0, 25, 5):
        took, work = {"join": 0.05 + 2.5e-8 * visited}, {"s0 s1": [34_000, 34_000, visited, 20, 20]}
        first = report(0, at, cpu=took, work=work, groups=hot)
        found.add([first, report(1, at, cpu={"join": 0.025}, groups=cool)], table)
        snapshot = found.snapshot(table, range(2))
        manager, wish, _ = manage(setting, manager, snapshot) if snapshot else (manager, None, ())
        wishes += [wish] if wish else []
    (move,) = wishes[0].moves
    if visited > 1_000_000:
        assert (move.groups, move.receivers, move.spread) == ((0,), (0, 1), 0)
    else:
        assert 0 not in move.groups and len(move.groups) > 10 and move.receivers == (1,)
