"""What each probe of a plan does: the keys it looks up and the conditions it checks.

The engine runs these facts and `explain` shows them, so both take them from here.

*Keys.* All streams gathered so far agree in every key class they have, so a probe looks up all the
classes that the gathered streams share with the probed state: none is left to be checked later.

*Conditions.* A residual is checked at the first step of a path that has gathered all its streams.
One whose streams are all within a single state was checked when that state was filled: by the join
below, or, for a residual over one stream, as its tuples arrive (`on_arrival`).
"""

from __future__ import annotations

from dataclasses import dataclass

from plait.plan.jtree import Join, Node, joins
from plait.query.expr import streams_of
from plait.query.graph import JoinGraph
from plait.query.query import Query

StreamSet = frozenset[int]
"""Streams by their indexes: what identifies a state."""


@dataclass(frozen=True, slots=True)
class ProbeStep:
    """One probe: of child `target`, by the key `classes`, checking `residuals` on the matches.

    `target` is an index in `Join.children`, `classes` are ascending indexes in the join graph's
    classes, `residuals` ascending indexes in `Query.residuals`.
    """

    target: int
    classes: tuple[int, ...]
    residuals: tuple[int, ...]


def stream_set(query: Query, node: Node) -> StreamSet:
    """The indexes of the streams below a node, which is what identifies its state.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> from plait.plan.jtree import parse_shape
    >>> sorted(stream_set(query, parse_shape(query, "(trades quotes news)")))
    [0, 1, 2]
    """
    return frozenset(query.index(name) for name in node.streams)


def steps(query: Query, join: Join, child: int) -> tuple[ProbeStep, ...]:
    """List the probes of a new tuple of a child, in order.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> from plait.plan.jtree import mjoin
    >>> for step in steps(query, mjoin(query), 0):
    ...     print(step)
    ProbeStep(target=1, classes=(0,), residuals=(0,))
    ProbeStep(target=2, classes=(0,), residuals=())
    """
    return _steps(query, query.graph, join, child)


def _steps(query: Query, graph: JoinGraph, join: Join, child: int) -> tuple[ProbeStep, ...]:
    sets = [stream_set(query, node) for node in join.children]
    gathered = sets[child]
    path = []
    for target in join.orders[child]:
        state = sets[target]
        checked = decided(query, gathered, state)
        path.append(ProbeStep(target, graph.shared(gathered, state), checked))
        gathered |= state
    return tuple(path)


def decided(query: Query, left: StreamSet, right: StreamSet) -> tuple[int, ...]:
    """List the residuals that need both sets of streams, by index.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> decided(query, frozenset({0}), frozenset({1}))
    (0,)
    """
    needs = (frozenset(map(query.index, streams_of(r))) for r in query.residuals)
    return tuple(
        r
        for r, streams in enumerate(needs)
        if streams <= left | right and not streams <= left and not streams <= right
    )


def on_arrival(query: Query, stream: int) -> tuple[int, ...]:
    """List the residuals over one stream alone, which its tuples must satisfy to be stored.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> on_arrival(query, 0), on_arrival(query, 2)
    ((1,), ())
    """
    only = frozenset({query.streams[stream].name})
    return tuple(r for r, expr in enumerate(query.residuals) if streams_of(expr) == only)


def indexes(query: Query, plan: Node) -> dict[StreamSet, tuple[tuple[int, ...], ...]]:
    """List the indexes of each state of the plan, by stream set, as tuples of key classes.

    The root has no state and so no entry; children come before parents, left to right.

    >>> from plait.testing.examples import trades_quotes_news as query
    >>> from plait.plan.jtree import parse_shape
    >>> for state, by in indexes(query, parse_shape(query, "((trades quotes) news)")).items():
    ...     print(sorted(state), by)
    [0] ((0,),)
    [1] ((0,),)
    [0, 1] ((0,),)
    [2] ((0,),)
    """
    graph = query.graph
    found: dict[StreamSet, set[tuple[int, ...]]] = {}
    for join in joins(plan):
        sets = [stream_set(query, node) for node in join.children]
        for state in sets:
            found[state] = set()
        for child in range(len(sets)):
            for step in _steps(query, graph, join, child):
                found[sets[step.target]].add(step.classes)
    return {state: tuple(sorted(by)) for state, by in found.items()}
