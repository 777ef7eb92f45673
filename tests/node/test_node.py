"""A node by itself: what a step does, and that it depends on nothing but what it is given."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from plait.adapt.setting import Setting
from plait.engine.intake.admission import LATE, NO_TIME, NULL_KEY
from plait.errors import MigrationError, SourceError
from plait.machine.clock import Clock
from plait.node.batch import Aside, Batch, Rows, batch_of_rows
from plait.node.epochs import Epoch
from plait.node.node import Node, Setup
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import parse_shape
from plait.plan.routed import Teddies
from plait.testing.examples import clique
from plait.testing.oracle.answer import Result, multiset
from plait_lab.laws.strategies.policies import eager

QUERY = clique(3)
TREE, OTHER = parse_shape(QUERY, "((a b) c)"), parse_shape(QUERY, "(a (b c))")
SETUP = Setup(QUERY, TREE)
SECOND = 1_000_000


STILL = Clock(float, float)
"""Clocks that stand still."""


def still_node(*given: Any, **named: Any) -> Node:
    return Node(*given, clock=STILL, **named)


def table(stream: int, seconds: list[int | None], keys: list[int | None]) -> pa.Table:
    schema = QUERY.streams[stream].schema
    times = [None if s is None else s * SECOND for s in seconds]
    columns = [times if f.name == "ts" else keys for f in schema]
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, schema, strict=True)], schema)


def batch(second: int, n: int = 2) -> Batch:
    """Rows of every stream with equal keys."""
    rows: dict[str, Rows] = {
        name: table(s, [second] * n, [1] * n) for s, name in enumerate(QUERY.names)
    }
    return batch_of_rows(QUERY, rows)


def stepped(
    node: Node, given: Batch, epoch: Epoch | None = None
) -> tuple[Counter[Result], list[Aside]]:
    found = list(node.step(given, epoch))
    results = [rows for rows in found if not isinstance(rows, Aside)]
    aside = [rows for rows in found if isinstance(rows, Aside)]
    return multiset(pa.Table.from_batches(results, QUERY.schema)), aside


def test_a_step_joins_counts_and_moves_the_watermarks() -> None:
    node = still_node(SETUP, number=3)
    results, aside = stepped(node, batch(1))
    assert results.total() == 8 and not aside
    report = node.report
    assert (report.processor, report.batch, report.results) == (3, 1, 8)
    assert report.rows == {"a": 2, "b": 2, "c": 2} and not report.late
    assert node.watermarks == [SECOND - s.delay for s in QUERY.streams]
    assert report.watermarks == dict(zip(QUERY.names, node.watermarks, strict=True))
    assert report.plan == str(TREE)


def test_every_row_that_is_not_joined_is_handed_out_with_its_reason() -> None:
    node = still_node(SETUP)
    stepped(node, batch(100))
    rows = table(0, [1, None, 100, 101], [1, 1, None, 1])
    results, aside = stepped(node, batch_of_rows(QUERY, {"a": rows}))
    assert {(a.stream, a.reason): a.rows.num_rows for a in aside} == {
        (0, LATE): 1,
        (0, NO_TIME): 1,
        (0, NULL_KEY): 1,
    }
    report = node.report
    assert (report.late, report.null_times, report.null_keys) == ({"a": 1}, {"a": 1}, {"a": 1})
    assert results.total() == 4, "the row at 101 meets two of b and two of c"


def test_of_the_copies_of_a_late_row_only_the_original_is_set_aside() -> None:
    node = still_node(SETUP)
    stepped(node, batch(100))
    late = batch_of_rows(QUERY, {"a": table(0, [1, 2, 3, 100], [1, 1, 1, 1])})
    late.originals = {0: 2}
    results, aside = stepped(node, late)
    assert [a.rows.num_rows for a in aside] == [2] and node.report.late == {"a": 2}
    assert results.total() == 4, "a copy that is on time is joined"


def test_a_batch_that_is_refused_changes_nothing() -> None:
    node = still_node(SETUP)
    stepped(node, batch(1))
    before = node.header("t", 0).to_json()
    given = batch(2)
    given.rows[1] = given.rows[1].drop_columns([QUERY.streams[1].fields[-1].name])
    with pytest.raises(SourceError, match="lack the column"):
        stepped(node, given)
    assert node.header("t", 0).to_json() == before
    assert stepped(node, batch(2))[0].total() == 4**3 - 2**3


def test_a_node_goes_on_from_its_header_and_engine() -> None:
    """Rebuilding the node in every step changes nothing, apart from how long things took."""
    setting = Setting(QUERY, eager(1.0, None), Budget(), DEFAULT)
    setup = replace(SETUP, adapt=setting)
    whole = still_node(setup, every_batch=True)
    header, engine = None, None
    for second in range(1, 12):
        again = still_node(setup, header, engine, every_batch=True)
        epoch = Epoch(second, OTHER if second % 2 else TREE) if 3 < second < 8 else None
        assert stepped(whole, batch(second), epoch) == stepped(again, batch(second), epoch)
        assert whole.plan == again.plan and whole.watermarks == again.watermarks
        header, engine = again.header("t", 0), again.engine
        assert header.batch == second
    assert whole.header("t", 0).followed == again.header("t", 0).followed


def test_an_epoch_is_followed_once_and_holds_the_plan() -> None:
    node = still_node(SETUP)
    epoch = Epoch(1, OTHER)
    stepped(node, batch(1), epoch)
    assert node.plan == OTHER and node.report.epoch == 1
    assert [m["status"] for m in node.report.migrations] == ["done"]
    node.migrate(TREE)
    stepped(node, batch(2), epoch)
    assert node.plan == TREE and not node.report.migrations, "it was followed before"
    assert node.followed.holds(epoch)
    node.release()
    assert not node.followed.holds(epoch)


def test_a_request_within_a_batch_waits_for_its_end() -> None:
    node = still_node(SETUP)
    steps = node.step(batch(1))
    next(steps)
    queued = node.migrate(OTHER)
    assert queued.status == "queued" and node.queued == [queued] and node.plan == TREE
    for _ in steps:
        pass
    assert node.plan == OTHER and not node.queued
    assert [m.status for m in node.migrations] == ["done"]


def test_requests_while_two_plans_run_wait_their_turn() -> None:
    node = still_node(SETUP)
    stepped(node, batch(1))
    node.migrate(OTHER, "parallel-track")
    assert [m.status for m in (node.engine.migration,) if m] == ["under way"]
    last = parse_shape(QUERY, "((a c) b)")
    node.migrate(last)
    wrong: Any = "by magic"
    with pytest.raises(MigrationError, match="strategy"):
        node.migrate(TREE, wrong)
    results = Counter[Result]()
    for second in range(2, 60, 3):
        results += stepped(node, batch(second))[0]
    assert node.plan == last and not node.engine.migrating
    assert [m.status for m in node.migrations] == ["done", "done"]
    plain = still_node(SETUP)
    stepped(plain, batch(1))
    wanted = Counter[Result]()
    for second in range(2, 60, 3):
        wanted += stepped(plain, batch(second))[0]
    assert results == wanted


def test_results_that_waited_in_a_router_leave_in_the_batch_of_its_end() -> None:
    """A task may be the last one that sees this engine: nothing may wait beyond it."""
    patient = Teddies(counter_limit=1_000, patience=50)
    node, plain = still_node(replace(SETUP, plan=patient)), still_node(SETUP)
    found, wanted = Counter[Result](), Counter[Result]()
    for second, rows in enumerate((20, 20, 1, 1, 1, 1), 1):
        epoch = Epoch(1, TREE) if second >= 5 else None
        found += stepped(node, batch(second, rows), epoch)[0]
        wanted += stepped(plain, batch(second, rows))[0]
        if second == 4:
            assert found != wanted, "something waits"
        if second >= 5:
            assert found == wanted, "nothing waits once the tree runs"
    assert node.plan == TREE


def test_a_still_clock_and_a_fast_one_make_no_difference_to_results() -> None:
    ticks = iter(range(10**9))
    fast = Clock(lambda: float(next(ticks)), lambda: float(next(ticks)))
    slow_node, fast_node = still_node(SETUP), Node(SETUP, clock=fast)
    for second in range(1, 6):
        assert list(fast_node.step(batch(second))) == list(slow_node.step(batch(second)))
    assert fast_node.report.seconds["join"] > 0 == slow_node.report.seconds["join"]
