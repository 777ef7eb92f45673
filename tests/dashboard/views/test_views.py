"""What is shown follows from what was read."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.dashboard.conftest import RUN

from plait.adapt.policy import PlanPolicy
from plait.adapt.strategy import way_to
from plait.dashboard.drawing.graph import draw_graph
from plait.dashboard.drawing.tree import draw_tree
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.views.join_graph import graph_view
from plait.dashboard.views.loads import load_view
from plait.dashboard.views.plan_preview import preview
from plait.dashboard.views.plan_trees import NodeView, tree_views
from plait.errors import PlaitError
from plait.node.reports.report import Report
from plait.optimize.costs import DEFAULT
from plait.optimize.model import Model
from plait.plan.jtree import parse_shape


def test_the_graph_adds_processors_up(snapshot: JoinSnapshot) -> None:
    whole, one = graph_view(snapshot), graph_view(snapshot, 1)
    assert whole is not None and one is not None
    assert [s.name for s in whole.streams] == list(RUN.query.names)
    assert len(whole.edges) == 6 and all(e.confidence for e in whole.edges)
    for stream, part in zip(whole.streams, one.streams, strict=True):
        assert stream.rate == pytest.approx(3 * (part.rate or 0.0), rel=0.1), (
            "all estimate the same here"
        )
        assert stream.stored > part.stored > 0
    for edge, local in zip(whole.edges, one.edges, strict=True):
        # Each sees a third of either stream, so a ninth of the pairs; together a third of them.
        assert edge.selectivity == pytest.approx((local.selectivity or 0.0) / 3, rel=0.1)
    text = draw_graph(whole)
    assert "trades" in text and "1 in " in text and "sure" in text


def test_without_estimates_all_is_unknown(snapshot: JoinSnapshot) -> None:
    view = graph_view(replace(snapshot, estimates={}))
    assert view is not None and not view.estimating
    assert {e.selectivity for e in view.edges} == {None} == {s.rate for s in view.streams}
    assert "no estimate" in draw_graph(view)
    assert graph_view(replace(snapshot, question=None)) is None


def nodes(node: NodeView) -> list[NodeView]:
    return [node, *(below for child in node.children for below in nodes(child))]


def test_trees_show_state_and_work(snapshot: JoinSnapshot) -> None:
    (view,) = tree_views(snapshot)
    assert view.root is not None and view.processors == (0, 1, 2)
    every = nodes(view.root)
    reports = snapshot.latest.values()
    assert sum(n.rows for n in every) == sum(r.state_rows for r in reports)
    assert sum(n.share or 0.0 for n in every) == pytest.approx(1.0)
    assert {n.label for n in every if not n.is_join} == set(RUN.query.names)
    drawn = draw_tree(view)
    assert drawn is not None and drawn.count("<rect") == len(every) + 2 * sum(
        n.is_join for n in every
    )


def test_plans_that_differ_are_shown_apart(snapshot: JoinSnapshot) -> None:
    batch, reports = snapshot.recent[-1]
    other = replace_plan(reports[0], "(((trades quotes) news) ratings)")
    router = replace_plan(reports[1], "teddies (ordered)")
    mixed = replace(snapshot, recent=((batch, (other, router, reports[2])),))
    views = tree_views(mixed)
    assert len(views) == 3 and sum(v.root is None for v in views) == 1
    assert len(tree_views(mixed, 1)) == 1


def replace_plan(report: Report, plan: str) -> Report:
    return Report.from_dict(report.to_dict() | {"plan": plan})


def test_loads_and_groups(snapshot: JoinSnapshot) -> None:
    view = load_view(snapshot)
    assert [p.number for p in view.processors] == [0, 1, 2]
    assert max(view.processors, key=lambda p: p.share).number == RUN.hot
    assert sum(p.groups or 0 for p in view.processors) == len(view.groups) == 128
    assert view.moves and view.work and view.budget == RUN.budget.memory
    known = sum(g.work or 0.0 for g in view.groups)
    assert known == pytest.approx(view.work)


def test_a_preview_is_what_the_processors_would_foresee(snapshot: JoinSnapshot) -> None:
    query = RUN.query
    wanted = "(((trades quotes) news) ratings)"
    found = preview(snapshot, wanted)
    assert len(found.processors) == 3 and not found.silent
    known = RUN.known(RUN.phase(59))
    model = Model(query, known, DEFAULT)
    old, new = (parse_shape(query, p) for p in (snapshot.latest[0].plan, wanted))
    way = way_to(model, old, new, PlanPolicy(), room=24e6 - 9e6)
    first = found.processors[0]
    assert (first.pause, first.strategy) == (way.pause, way.strategy)
    assert first.now == pytest.approx(model.cost(old).cpu)
    assert first.then == pytest.approx(model.cost(new).cpu)
    assert found.change is not None and found.change > 0, "the other plan was chosen for a reason"
    assert "trades⋈quotes" in found.made


def test_a_chosen_strategy_is_foreseen(snapshot: JoinSnapshot) -> None:
    wanted = "(((trades quotes) news) ratings)"
    for strategy in ("moving-state", "parallel-track"):
        found = preview(snapshot, wanted, strategy)
        assert {p.strategy for p in found.processors} == {strategy}


def test_a_preview_of_nonsense_is_refused(snapshot: JoinSnapshot) -> None:
    for plan in ("((trades", "(trades quotes)", "(a b)", "teddies", "[" * 5000):
        with pytest.raises(PlaitError):
            preview(snapshot, plan)
    with pytest.raises(PlaitError, match="not known"):
        preview(replace(snapshot, question=None), "(trades quotes)")
    silent = preview(replace(snapshot, estimates={}), "(trades quotes news ratings)")
    assert silent.silent == 3 and silent.change is None
