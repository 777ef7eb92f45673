"""Export what a query does as metrics for Prometheus, by its conventions.

Names begin with `plait_`, units are base units, what only grows ends in `_total`. Every metric has
the labels `join` (the name of the join) and `query` (the id of the query that has reported last).
They are made from the control directory when they are asked for, so whoever has the checkpoint can
serve them; a query that has ended keeps its last values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


def _metrics(snapshot: JoinSnapshot) -> Iterator[_Family]:
    gauge = GaugeMetricFamily
    last, latest = snapshot.last, sorted(snapshot.latest.values(), key=lambda r: r.processor)
    yield _stale(bool(snapshot.stale))
    if last is None:
        return
    yield gauge, "plait_batch", "Number of the last batch that has ended.", (), [((), last.last)]
    yield (gauge, "plait_batch_duration_seconds", "Time that the last batch took.", (),
           [((), last.took / max(last.batches, 1))])  # fmt: skip
    yield (gauge, "plait_batch_timestamp_seconds", "When the last batch began.", (),
           [((), last.at)])  # fmt: skip
    yield (gauge, "plait_watermark_seconds", "Watermark of each stream, in seconds since 1970.",
           ("stream",), [((s,), mark / 1e6) for s, mark in last.watermarks.items()])  # fmt: skip
    if last.at:
        yield (gauge, "plait_watermark_lag_seconds",
               "How far the watermark of each stream was behind the clock when the batch began.",
               ("stream",),
               [((s,), last.at - m / 1e6) for s, m in last.watermarks.items()])  # fmt: skip
    yield from _totals(latest)
    yield from _processors(snapshot, latest)
    yield from _decisions(snapshot)


def _stale(stale: bool) -> _Family:
    text = "Whether nothing newer can be read of the query."
    return GaugeMetricFamily, "plait_stale", text, (), [((), float(stale))]


def _totals(latest: Sequence[Report]) -> Iterator[_Family]:
    """What was counted since the checkpoint began."""

    def by_stream(name: str, *, same: bool) -> _Values:
        found: dict[str, float] = {}
        for report in latest:
            for stream, n in report.total.get(name, {}).items():
                before = found.get(stream, 0.0)
                found[stream] = max(before, n) if same else before + n
        return [((stream,), n) for stream, n in found.items()]

    counter = CounterMetricFamily
    yield (counter, "plait_rows", "Rows that came, by stream.", ("stream",),
           by_stream("rows", same=True))  # fmt: skip
    yield (counter, "plait_late_rows", "Rows that came late and were not joined, by stream.",
           ("stream",), by_stream("late", same=False))  # fmt: skip
    yield (counter, "plait_results", "Results.", (),
           [((), sum(r.total.get("results", 0) for r in latest))])  # fmt: skip
    rebuilt = sum(r.total.get("rebuilt", 0) for r in latest)
    yield (counter, "plait_engine_rebuilds", "How often an engine was rebuilt from the state.",
           (), [((), rebuilt)])  # fmt: skip


def _processors(snapshot: JoinSnapshot, latest: Sequence[Report]) -> Iterator[_Family]:
    gauge, counter = GaugeMetricFamily, CounterMetricFamily
    which = ("processor",)
    view = load_view(snapshot)
    yield (
        counter,
        "plait_processor_rows",
        "Rows that came to each processor, copies included.",
        which,
        [((r.processor,), sum(r.total.get("routed", {}).values())) for r in latest],
    )
    yield (
        counter,
        "plait_processor_busy_seconds",
        "Time that each processor has worked.",
        which,
        [((r.processor,), sum(r.total.get("seconds", {}).values())) for r in latest],
    )
    yield (
        gauge,
        "plait_processor_load_ratio",
        "Rows of each processor in the last batch, as a multiple of the mean.",
        which,
        [((p.number,), p.share) for p in view.processors],
    )
    yield (
        gauge,
        "plait_state_bytes",
        "Memory of the state of each processor.",
        which,
        [((r.processor,), r.state_bytes) for r in latest],
    )
    yield (
        gauge,
        "plait_state_rows",
        "Stored rows of each processor.",
        which,
        [((r.processor,), r.state_rows) for r in latest],
    )
    if view.budget is not None:
        yield (
            gauge,
            "plait_state_budget_bytes",
            "Memory that the state of a processor may take.",
            which,
            [((r.processor,), view.budget) for r in latest],
        )
    if view.work:
        hottest = max((g.work or 0.0) / view.work for g in view.groups)
        yield (
            gauge,
            "plait_hottest_group_ratio",
            "Share of all work that the hottest partition group takes.",
            (),
            [((), hottest)],
        )
    yield (gauge, "plait_moves_under_way", "Moves of partition groups that have not ended.", (),
           [((), len(view.moves))])  # fmt: skip


def _decisions(snapshot: JoinSnapshot) -> Iterator[_Family]:
    """Decisions are counted over the whole history, so a console that was restarted goes on."""
    counter, gauge = CounterMetricFamily, GaugeMetricFamily
    changes = [d for d in snapshot.decisions if d.sort in ("change", "asked")]
    yield (
        counter,
        "plait_plan_changes",
        "Changes of plan, each on one processor.",
        (),
        [((), sum(len(d.processors) for d in changes))],
    )
    unpaid = [d for d in snapshot.decisions if d.sort == "verdict" and d.good is False]
    yield (
        counter,
        "plait_plan_changes_unpaid",
        "Changes of plan that did not pay.",
        (),
        [((), sum(len(d.processors) for d in unpaid))],
    )
    hot = [d for d in snapshot.decisions if d.sort == "groups" and d.good is False]
    yield (
        counter,
        "plait_hot_spots",
        "Times that a hot group could neither move nor be spread.",
        (),
        [((), len(hot))],
    )
    pinned = snapshot.epoch is not None and snapshot.epoch.plan is not None
    yield (
        gauge,
        "plait_plan_pinned",
        "Whether somebody says which plan to run.",
        (),
        [((), float(pinned))],
    )
    plans: dict[str, int] = {}
    for report in snapshot.latest.values():
        plans[report.plan] = plans.get(report.plan, 0) + 1
    yield (gauge, "plait_plan_processors", "How many processors run each plan.", ("plan",),
           [((plan,), n) for plan, n in plans.items()])  # fmt: skip
