"""What reports tell of states and joins adds up to what the engine holds and counts."""

from __future__ import annotations

from tests.adapt.conftest import QUERY, batches

from plait.local.host import LocalRun
from plait.node.reports.work import WORK, Tally
from plait.plan.jtree import parse_shape


def test_each_join_is_told_by_its_streams_and_by_batch() -> None:
    run = LocalRun(QUERY, parse_shape(QUERY, "((s0 s1) s2)"), adapt=False)
    outputs = 0
    for batch in batches(3, lambda _: "k", rate=60):
        found = run.push(batch)
        report = run.node.report
        assert set(report.work) == {"s0 s1", "s0 s1 s2"}
        assert report.work["s0 s1 s2"][WORK.index("outputs")] == found.num_rows
        outputs += report.work["s0 s1"][WORK.index("outputs")]
        assert set(report.states) == {"s0", "s1", "s2", "s0 s1"}
        assert report.states["s0"][0] <= 60 * 5
    assert outputs > 0
    engine = run.node.engine
    assert sum(rows for rows, _ in report.states.values()) == sum(s.rows for s in engine.sizes())


def test_a_plan_that_has_changed_counts_from_its_beginning() -> None:
    run = LocalRun(QUERY, parse_shape(QUERY, "((s0 s1) s2)"), adapt=False)
    first, second = batches(2, lambda _: "k", rate=60)
    run.push(first)
    tally = Tally(run.node.engine)
    assert set(map(sum, tally.since(run.node.engine).values())) == {0}
    run.migrate(parse_shape(QUERY, "(s0 (s1 s2))"))
    run.push(second)
    assert set(run.node.report.work) == {"s1 s2", "s0 s1 s2"}
    assert all(n >= 0 for numbers in run.node.report.work.values() for n in numbers)
