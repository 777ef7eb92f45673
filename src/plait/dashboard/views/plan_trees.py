"""Compute the trees of the running plans, with the state and the work of each node.

Work is counted, not timed: inserts, probes, rows visited and matches, each times its cost in the
calibrated cost model. So the shares of the nodes can be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.errors import PlaitError
from plait.node.reports.report import Report
from plait.node.reports.work import WORK, streams_name
from plait.optimize.costs import DEFAULT, Costs
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.labels import class_labels, key_label, state_label
from plait.plan.steps import steps, stream_set
from plait.plan.text import read_plan
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class NodeView:
    """A window, or a join with the state that keeps what it finds."""

    label: str
    rows: int = 0
    bytes: int = 0
    work: float = 0.0
    """Seconds of the last batch by the cost model; those of a window are those of its join."""
    share: float | None = 0.0
    """Of the work of the whole plan; None if it has just begun and has done none."""
    counted: tuple[tuple[str, int], ...] = ()
    """What the join did in the last batch."""
    ways: tuple[str, ...] = ()
    """What a new tuple of each input looks up."""
    children: tuple[NodeView, ...] = ()
    root: bool = False

    @property
    def is_join(self) -> bool:
        """Whether it is no window."""
        return bool(self.children)


@dataclass(frozen=True, slots=True)
class TreeView:
    """A plan and the processors that run it."""

    plan: str
    processors: tuple[int, ...]
    root: NodeView | None = None
    """None if it is a router, which has no tree, or if the question is not known."""
    results: int = 0
    """Of the last batch."""


def tree_views(snapshot: JoinSnapshot, processor: int | None = None) -> tuple[TreeView, ...]:
    """The plans that run, those of the most processors first."""
    latest = [r for r in snapshot.latest.values() if processor in (None, r.processor)]
    costs = DEFAULT if snapshot.question is None else snapshot.question.costs
    found = []
    for plan, _ in Counter(r.plan for r in latest).most_common():
        there = sorted((r for r in latest if r.plan == plan), key=lambda r: r.processor)
        root = None if snapshot.query is None else _root(snapshot.query, plan, there, costs)
        found.append(
            TreeView(plan, tuple(r.processor for r in there), root, sum(r.results for r in there))
        )
    return tuple(found)


def _root(query: Query, plan: str, reports: Sequence[Report], costs: Costs) -> NodeView | None:
    try:
        tree = read_plan(query, plan)
    except PlaitError:
        return None
    if not isinstance(tree, Join | Leaf):
        return None
    seconds = [_seconds(numbers, costs) for r in reports for numbers in r.work.values()]
    return _node(query, tree, reports, costs, sum(seconds), root=True)


def _node(
    query: Query,
    node: Node,
    reports: Sequence[Report],
    costs: Costs,
    total: float,
    *,
    root: bool = False,
) -> NodeView:
    streams = stream_set(query, node)
    name = streams_name(query.names, streams)
    held = [r.states.get(name, (0, 0)) for r in reports]
    done = [r.work[name] for r in reports if len(r.work.get(name, ())) == len(WORK)]
    rows, size = (sum(h[i] for h in held) for i in (0, 1))
    work = sum(_seconds(numbers, costs) for numbers in done)
    children: tuple[NodeView, ...] = ()
    ways: tuple[str, ...] = ()
    if isinstance(node, Join):
        children = tuple(_node(query, c, reports, costs, total) for c in node.children)
        ways = tuple(_way(query, node, c) for c in range(len(node.children)))
    counted = tuple((what, sum(n[i] for n in done)) for i, what in enumerate(WORK) if done)
    return NodeView(
        label=state_label(query, streams),
        rows=rows,
        bytes=size,
        work=work,
        share=work / total if total else None,
        counted=counted if isinstance(node, Join) else (),
        ways=ways,
        children=children,
        root=root,
    )


def _way(query: Query, join: Join, child: int) -> str:
    """What a new tuple of an input looks up, and by which key."""
    labels = class_labels(query)
    path = state_label(query, stream_set(query, join.children[child]))
    for step in steps(query, join, child):
        target = state_label(query, stream_set(query, join.children[step.target]))
        path += f" → {target} {key_label(labels, step.classes)}"
    return path


def _seconds(numbers: Sequence[int], costs: Costs) -> float:
    """What a join did, in seconds of the cost model."""
    done = dict(zip(WORK, numbers, strict=False))
    return (
        done.get("inserts", 0) * costs.insert
        + done.get("probes", 0) * costs.probe
        + done.get("visited", 0) * costs.visit
        + done.get("matches", 0) * costs.match
    )
