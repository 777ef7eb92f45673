"""Export what a query does as metrics for Prometheus, by its conventions.

Names begin with `plait_`, units are base units, what only grows ends in `_total`. Every metric has
the labels `join` (the name of the join) and `query` (the id of the query that has reported last).
They are made from the control directory when they are asked for, so whoever has the checkpoint can
serve them; a query that has ended keeps its last values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from plait.dashboard.reading.snapshot import JoinSnapshot, Watcher, refreshed
from plait.dashboard.views.loads import load_view
from plait.node.reports.report import Report

CONTENT_TYPE = CONTENT_TYPE_LATEST
_LABELS = ("join", "query")


class QueryMetrics(Collector):
    """The metrics of some snapshots."""

    def __init__(self, found: Sequence[JoinSnapshot]) -> None:
        self._found = found

    def collect(self) -> Iterable[Metric]:
        """All metrics, each with the values of every join."""
        families: dict[str, Metric] = {}
        for snapshot in self._found:
            labels = (snapshot.name, snapshot.running)
            try:
                told = list(_metrics(snapshot))
            except Exception:  # whatever it is, other joins and this one's next batch are exported
                told = [_stale(True)]
            for kind, name, text, more, values in told:
                if name not in families:
                    families[name] = kind(name, text, labels=(*_LABELS, *more))
                for extra, value in values:
                    families[name].add_metric((*labels, *map(str, extra)), value)  # type: ignore[attr-defined]  # both kinds have it
        return list(families.values())


def exposition(found: Sequence[JoinSnapshot]) -> bytes:
    """The text that Prometheus reads."""
    registry = CollectorRegistry()
    registry.register(QueryMetrics(found))
    return generate_latest(registry)


class LiveMetrics(Collector):
    """The same, read anew whenever somebody asks, for one after the other."""

    def __init__(self, watchers: Sequence[Watcher]) -> None:
        self._watchers = watchers
        self._turn = Lock()

    def collect(self) -> Iterable[Metric]:
        """All metrics as they are now."""
        with self._turn:
            return QueryMetrics([refreshed(watcher) for watcher in self._watchers]).collect()


_Values = Iterable[tuple[Sequence[object], float]]
_Family = tuple[Any, str, str, tuple[str, ...], _Values]


def _gauge(name: str, text: str, values: _Values | float, *labels: str) -> _Family:
    return GaugeMetricFamily, name, text, labels, _labelled(values)


def _counter(name: str, text: str, values: _Values | float, *labels: str) -> _Family:
    return CounterMetricFamily, name, text, labels, _labelled(values)


def _labelled(values: _Values | float) -> _Values:
    return [((), float(values))] if isinstance(values, int | float) else values


def _metrics(snapshot: JoinSnapshot) -> Iterator[_Family]:
    last, latest = snapshot.last, sorted(snapshot.latest.values(), key=lambda r: r.processor)
    yield _stale(bool(snapshot.stale))
    if last is None:
        return
    yield _gauge("plait_batch", "Number of the last batch that has ended.", last.last)
    yield _gauge("plait_batch_duration_seconds", "Time that the last batch took.",
                 last.took / max(last.batches, 1))  # fmt: skip
    yield _gauge("plait_batch_timestamp_seconds", "When the last batch began.", last.at)
    marks = {stream: mark / 1e6 for stream, mark in last.watermarks.items()}
    yield _gauge("plait_watermark_seconds", "Watermark of each stream, in seconds since 1970.",
                 [((s,), mark) for s, mark in marks.items()], "stream")  # fmt: skip
    if last.at:
        yield _gauge("plait_watermark_lag_seconds",
                     "How far the watermark of each stream was behind the clock when the batch "
                     "began.",
                     [((s,), last.at - m) for s, m in marks.items()], "stream")  # fmt: skip
    yield from _totals(latest)
    yield from _processors(snapshot, latest)
    yield from _decisions(snapshot)


def _stale(stale: bool) -> _Family:
    return _gauge("plait_stale", "Whether nothing newer can be read of the query.", stale)


def _totals(latest: Sequence[Report]) -> Iterator[_Family]:
    """What was counted since the checkpoint began."""

    def by_stream(name: str, *, same: bool) -> _Values:
        found: dict[str, float] = {}
        for report in latest:
            for stream, n in report.total.get(name, {}).items():
                before = found.get(stream, 0.0)
                found[stream] = max(before, n) if same else before + n
        return [((stream,), n) for stream, n in found.items()]

    def total(name: str) -> float:
        return float(sum(report.total.get(name, 0) for report in latest))

    yield _counter("plait_rows", "Rows that came, by stream.", by_stream("rows", same=True),
                   "stream")  # fmt: skip
    yield _counter("plait_late_rows", "Rows that came late and were not joined, by stream.",
                   by_stream("late", same=False), "stream")  # fmt: skip
    yield _counter("plait_results", "Results.", total("results"))
    yield _counter("plait_engine_rebuilds", "How often an engine was rebuilt from the state.",
                   total("rebuilt"))  # fmt: skip


def _processors(snapshot: JoinSnapshot, latest: Sequence[Report]) -> Iterator[_Family]:
    view = load_view(snapshot)

    def each(value: Callable[[Report], float]) -> _Values:
        return [((report.processor,), value(report)) for report in latest]

    which = "processor"
    yield _counter("plait_processor_rows", "Rows that came to each processor, copies included.",
                   each(lambda r: sum(r.total.get("routed", {}).values())), which)  # fmt: skip
    yield _counter("plait_processor_busy_seconds", "Time that each processor has worked.",
                   each(lambda r: sum(r.total.get("seconds", {}).values())), which)  # fmt: skip
    yield _gauge("plait_processor_load_ratio",
                 "Rows of each processor in the last batch, as a multiple of the mean.",
                 [((p.number,), p.share) for p in view.processors], which)  # fmt: skip
    yield _gauge("plait_state_bytes", "Memory of the state of each processor.",
                 each(lambda r: r.state_bytes), which)  # fmt: skip
    yield _gauge("plait_state_rows", "Stored rows of each processor.",
                 each(lambda r: r.state_rows), which)  # fmt: skip
    if (budget := view.budget) is not None:
        yield _gauge("plait_state_budget_bytes", "Memory that the state of a processor may take.",
                     each(lambda _: budget), which)  # fmt: skip
    if view.work:
        yield _gauge("plait_hottest_group_ratio",
                     "Share of all work that the hottest partition group takes.",
                     max((g.work or 0.0) / view.work for g in view.groups))  # fmt: skip
    yield _gauge("plait_moves_under_way", "Moves of partition groups that have not ended.",
                 len(view.moves))  # fmt: skip


def _decisions(snapshot: JoinSnapshot) -> Iterator[_Family]:
    """Decisions are counted over the whole history, so a console that was restarted goes on."""
    cards = snapshot.decisions
    changes = [c for c in cards if c.sort in ("change", "asked")]
    unpaid = [c for c in cards if c.sort == "verdict" and c.good is False]
    yield _counter("plait_plan_changes", "Changes of plan, each on one processor.",
                   sum(len(c.processors) for c in changes))  # fmt: skip
    yield _counter("plait_plan_changes_unpaid", "Changes of plan that did not pay.",
                   sum(len(c.processors) for c in unpaid))  # fmt: skip
    yield _counter("plait_hot_spots", "Times that a hot group could neither move nor be spread.",
                   sum(c.sort == "groups" and c.good is False for c in cards))  # fmt: skip
    pinned = snapshot.epoch is not None and snapshot.epoch.plan is not None
    yield _gauge("plait_plan_pinned", "Whether somebody says which plan to run.", pinned)
    plans = Counter(report.plan for report in snapshot.latest.values())
    yield _gauge("plait_plan_processors", "How many processors run each plan.",
                 [((plan,), n) for plan, n in plans.items()], "plan")  # fmt: skip
