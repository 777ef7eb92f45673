"""Compute the join graph: the estimated rates of streams and selectivities between them.

Each processor has estimates of its own, of the rows that come to it. For the query as a whole rates
are added up. The selectivity of two streams is the share of all their pairs that match: processor p
sees r_p s_p of them in the time in which there are R S, so it is the sum of its shares weighted by
r_p s_p / (R S). Rows that go to several processors are counted once, by how many copies there are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from plait.dashboard.reading.snapshot import JoinSnapshot, ProcessorEstimates
from plait.errors import PlaitError
from plait.node.reports.work import streams_name
from plait.optimize.statistics import Statistics, read_statistics
from plait.plan.labels import class_labels
from plait.query.query import Query


@dataclass(frozen=True, slots=True)
class StreamView:
    """A stream; None is unknown."""

    name: str
    rate: float | None = None
    """Rows per second of event time."""
    confidence: float | None = None
    stored: int = 0
    late: int = 0
    """Rows that came late since the beginning."""
    watermark: int | None = None


@dataclass(frozen=True, slots=True)
class EdgeView:
    """Two streams that share keys; the estimates are None if nothing is known."""

    left: int
    right: int
    keys: str
    selectivity: float | None = None
    """The share of their pairs, close enough in time, that match."""
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class GraphView:
    """The streams and the edges between them."""

    streams: tuple[StreamView, ...]
    edges: tuple[EdgeView, ...]
    processor: int | None
    """Whose estimates these are; None: all taken together."""
    batch: int | None = None
    """The newest comparison of plans that they come from."""
    estimating: int = 0
    """The number of processors with estimates."""


def graph_view(snapshot: JoinSnapshot, processor: int | None = None) -> GraphView | None:
    """The join graph, as one processor sees it or all; None if the question is not known."""
    query = snapshot.query
    if query is None:
        return None
    estimates = {
        p: found
        for p, told in snapshot.estimates.items()
        if processor in (None, p) and (found := _statistics(told)) is not None
    }
    copies = _copies(snapshot) if processor is None else {}
    rates = _rates(query, list(estimates.values()), copies)
    latest = [r for r in snapshot.latest.values() if processor in (None, r.processor)]
    stored = {
        name: sum(r.states.get(streams_name(query.names, [i]), [0])[0] for r in latest)
        for i, name in enumerate(query.names)
    }
    total: dict[str, int] = {}
    for report in latest:
        for name, late in report.total.get("late", {}).items():
            total[name] = total.get(name, 0) + late
    last = snapshot.last
    marks: Mapping[str, int] = {} if last is None else last.watermarks
    streams = tuple(
        StreamView(
            name,
            *rates[name],
            stored=stored[name],
            late=total.get(name, 0),
            watermark=marks.get(name),
        )
        for name in query.names
    )
    edges = tuple(
        EdgeView(i, j, keys, *_agreement(query, i, j, list(estimates.values()), rates))
        for i, j, keys in _pairs(query)
    )
    newest = max((snapshot.estimates[p].batch for p in estimates), default=None)
    return GraphView(streams, edges, processor, newest, len(estimates))


def _statistics(estimates: ProcessorEstimates) -> Statistics | None:
    try:
        return read_statistics(estimates.statistics)
    except PlaitError:
        return None


def _pairs(query: Query) -> list[tuple[int, int, str]]:
    """The pairs of streams that share keys, and which; of a class with many members, all pairs."""
    labels = class_labels(query)
    found = []
    for i, j in combinations(range(len(query.streams)), 2):
        shared = query.graph.shared([i], [j])
        if shared:
            found.append((i, j, ", ".join(labels[k] for k in shared)))
    return found


def _copies(snapshot: JoinSnapshot) -> dict[str, float]:
    """How many processors a row of each stream goes to, on average, in the last batch."""
    if not snapshot.recent:
        return {}
    _, reports = snapshot.recent[-1]
    rows = max((r.rows for r in reports), key=lambda n: sum(n.values()), default={})
    routed: dict[str, int] = {}
    for report in reports:
        for name, n in report.routed.items():
            routed[name] = routed.get(name, 0) + n
    return {n: max(1.0, routed[n] / rows[n]) for n in routed if rows.get(n)}


def _rates(
    query: Query, known: Sequence[Statistics], copies: Mapping[str, float]
) -> dict[str, tuple[float | None, float | None]]:
    found: dict[str, tuple[float | None, float | None]] = {}
    for name in query.names:
        estimates = [s.rates[name] for s in known if name in s.rates]
        if not estimates:
            found[name] = (None, None)
            continue
        rate = sum(e.value for e in estimates) / copies.get(name, 1.0)
        weight = sum(e.value for e in estimates) or 1.0
        sure = sum((e.confidence or 0.0) * e.value for e in estimates) / weight
        found[name] = (rate, sure)
    return found


def _agreement(
    query: Query,
    left: int,
    right: int,
    known: Sequence[Statistics],
    rates: Mapping[str, tuple[float | None, float | None]],
) -> tuple[float | None, float | None]:
    """The selectivity of two streams over all processors, and how sure it is."""
    one, other = query.names[left], query.names[right]
    name = streams_name(query.names, (left, right))
    whole = (rates[one][0] or 0.0) * (rates[other][0] or 0.0)
    matched = weighed = sure = 0.0
    for statistics in known:
        estimate = statistics.joint.get(name)
        if estimate is None or one not in statistics.rates or other not in statistics.rates:
            continue
        pairs = statistics.rates[one].value * statistics.rates[other].value
        matched += estimate.value * pairs
        weighed += pairs
        sure += (estimate.confidence or 0.0) * pairs
    if not weighed or not whole:
        return None, None
    if len(known) == 1:
        return matched / weighed, sure / weighed
    return min(1.0, matched / whole), sure / weighed
