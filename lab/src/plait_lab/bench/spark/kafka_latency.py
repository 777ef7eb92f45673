"""From Kafka to Kafka: how long after a row is made its results are there.

Three streams share one key, and a row has about one result. The latency of a result is the time
from the creation of its newest row to the moment at which the broker has appended it to the topic
of results.

*The sustainable rate* of a system is found first, with batches that follow each other at once: the
rate is doubled until, after some seconds at it, the query is further behind than it may be. *The
latency* is measured at half of that rate, by the same query once it has caught up; other triggers
get queries of their own, and the best one counts. Plait is also measured at half of the rate of
Spark's joins, so that both do the same. Every query gets topics of its own, with rows made in the
same way, and must have as many results in the end as DuckDB finds.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from plait.errors import PlaitError
from plait_lab.bench.spark.job import Job
from plait_lab.bench.spark.kafka_feed import (
    Appended,
    Feed,
    expected_results,
    results_of,
)
from plait_lab.bench.spark.launch import Heard, listen
from plait_lab.bench.spark.systems import NATIVE, PLAIT, SETTINGS
from plait_lab.kafka.broker import make_topics, missing, running_broker, spark_settings
from plait_lab.reporting.report import Note, Report, Series, equal

_KEYS = (("k",),) * 3
_TICK = 0.2
_WARM_BATCHES = 3


@dataclass(frozen=True, slots=True)
class KafkaOptions:
    """What can be varied."""

    triggers: str = "0,0.5,2"
    """Seconds between the beginnings of two batches; 0, as soon as the last one has ended, always.
    """
    window_seconds: float = 2.0
    lowest: int = 250
    """Rows per second and stream to begin with."""
    highest: int = 16_000
    """And where to stop: the rows must be made on the same machine."""
    stage_seconds: float = 20.0
    """How long each rate is tried."""
    behind_seconds: float = 5.0
    """How far a query may be behind then."""
    measured_seconds: float = 30.0
    limit_seconds: float = 600.0
    """What one run may take."""
    cores: int = os.cpu_count() or 2
    memory_mb: int = 1_500
    seed: int = 1


def kafka_latency(options: KafkaOptions, note: Note) -> Report:
    """From Kafka to Kafka: the latency of results at half of the sustainable rate."""
    report = Report("kafka-latency", asdict(options), runtime="spark")
    if problem := missing():
        report.systems["kafka"] = {"left out": problem}
        return report
    triggers = seconds_of(options.triggers)
    rates: dict[str, int] = {}
    measured: list[Latencies] = []
    with (
        tempfile.TemporaryDirectory(prefix="plait-kafka-") as scratch,
        running_broker(Path(scratch) / "broker") as address,
    ):
        bench = _Bench(options, address, Path(scratch), note)
        for system in (NATIVE, PLAIT):
            rates[system], told = bench.search(system, [r // 2 for r in rates.values()])
            measured += told
            limit = " (the highest that was tried)" if rates[system] * 2 > options.highest else ""
            report.systems[system + limit] = {
                "sustainable rows per second and stream": rates[system]
            }
        for trigger in (t for t in triggers if t):
            for system in (NATIVE, PLAIT):
                wanted = dict.fromkeys((rates[system] // 2, rates[NATIVE] // 2))
                measured += bench.measure(system, trigger, list(wanted))
    best: dict[tuple[str, int], float] = {}
    for run in measured:
        title = f"{run.system}, {run.rate:,} rows per second, {_said(run.trigger)}"
        report.systems[title] = run.figures()
        percents, seconds = zip(*run.curve, strict=True)
        report.series.append(Series(title, percents, seconds, "s", "%"))
        case = (run.system, run.rate)
        best[case] = min(best.get(case, run.median), run.median)
    agreed = {(run.found, run.expected) for run in measured}
    half = rates[NATIVE] // 2
    report.ratios["native / plait, median latency at the same rate"] = (
        best[NATIVE, half] / best[PLAIT, half]
    )
    report.ratios["plait / native, sustainable rate"] = rates[PLAIT] / rates[NATIVE]
    report.claims.append(
        equal(
            "results",
            "every query has as many results as DuckDB finds",
            [0, sum(abs(found - expected) for found, expected in agreed)],
        )
    )
    report.systems["machine"] = {"load": os.getloadavg()}
    return report


def seconds_of(text: str) -> tuple[float, ...]:
    """Numbers of seconds, separated by commas.

    >>> seconds_of("0,0.5")
    (0.0, 0.5)
    """
    try:
        found = tuple(float(part) for part in text.split(","))
    except ValueError:
        found = ()
    if not found or not all(0 <= seconds < float("inf") for seconds in found):
        raise PlaitError(f"triggers are numbers of seconds, not {text!r}", remedy="-o triggers=0,1")
    return found


def _said(trigger: float) -> str:
    return f"a batch every {trigger:g} s" if trigger else "batches without a pause"


def is_behind(sent: int, done: int, per_second: float, behind_seconds: float) -> bool:
    """Whether a query has more rows before it than come in that many seconds.

    >>> is_behind(1_000, 400, 100.0, 5.0), is_behind(1_000, 600, 100.0, 5.0)
    (True, False)
    """
    return sent - done > per_second * behind_seconds


@dataclass(frozen=True, slots=True)
class Latencies:
    """What was measured at one rate."""

    system: str
    rate: int
    trigger: float
    seconds: list[float]
    """Of each result, ascending."""
    batch_seconds: float
    found: int
    """Results of the query in all, also at other rates."""
    expected: int

    @property
    def median(self) -> float:
        """Half of the results are there after so long."""
        return statistics.median(self.seconds)

    @property
    def curve(self) -> list[tuple[float, float]]:
        """Percentiles."""
        return [(float(p), percentile(self.seconds, p)) for p in (1, 5, 25, 50, 75, 90, 95, 99)]

    def figures(self) -> dict[str, Any]:
        """For a report."""
        return {
            "median_s": self.median,
            "p99_s": percentile(self.seconds, 99),
            "most_s": self.seconds[-1],
            "results": len(self.seconds),
            "median_batch_s": self.batch_seconds,
        }


def percentile(ascending: Sequence[float], percent: float) -> float:
    """The value that so many percent do not exceed.

    >>> percentile([1.0, 2.0, 3.0, 4.0], 50), percentile([1.0, 2.0, 3.0, 4.0], 99)
    (2.0, 4.0)
    """
    rank = max(1, -(-len(ascending) * percent // 100))
    return ascending[int(rank) - 1]


@dataclass(slots=True)
class _Query:
    """A query in a process of its own, and what it has told so far."""

    job: Job
    heard: Heard = field(default_factory=Heard)
    batches: list[dict[str, Any]] = field(default_factory=list)
    thread: threading.Thread | None = None

    @property
    def done(self) -> int:
        """Rows in batches that have ended."""
        return sum(batch["rows"] for batch in self.batches)

    def check(self) -> None:
        """Say what went wrong, if it has ended by itself."""
        assert self.thread is not None
        if not self.thread.is_alive():
            why = self.heard.error or "it took too long"
            raise PlaitError(f"{self.job.system} from Kafka to Kafka: {why}")


@dataclass(frozen=True, slots=True)
class _Span:
    """Some time at one rate, in microseconds since 1970, and how long a batch took."""

    rate: int
    began: int
    ended: int
    batch_seconds: float


@dataclass(slots=True)
class _Bench:
    """Runs queries against one broker, one after the other."""

    options: KafkaOptions
    address: str
    scratch: Path
    note: Note
    runs: int = 0

    def search(self, system: str, also: Sequence[int]) -> tuple[int, list[Latencies]]:
        """The highest rate of those tried that a system keeps up with, and its latencies.

        They are measured at half of that rate, and at the rates in `also`.
        """
        options = self.options
        rate, held, spans = options.lowest, 0, list[_Span]()
        with self._running(system, 0.0) as (query, feed):
            while rate <= options.highest:
                feed.rate = rate
                self.note(f"{system}: trying {rate:,} rows per second and stream")
                self._pass(query, options.stage_seconds)
                per_second = float(rate * len(_KEYS))
                if is_behind(feed.sent, query.done, per_second, options.behind_seconds):
                    break
                rate, held = rate * 2, rate
            for wanted in dict.fromkeys((held // 2, *also)) if held else ():
                spans.append(self._span(query, feed, wanted))
            self._catch_up(query, feed)
        if not held:
            raise PlaitError(
                f"{system} does not keep up with {options.lowest} rows per second",
                remedy="try fewer: -o lowest=50",
            )
        return held, self._latencies(query, feed, spans)

    def measure(self, system: str, trigger: float, rates: Sequence[int]) -> list[Latencies]:
        """The latencies at some rates, with a trigger."""
        with self._running(system, trigger) as (query, feed):
            spans = [self._span(query, feed, rate) for rate in rates]
            self._catch_up(query, feed)
        return self._latencies(query, feed, spans)

    def _span(self, query: _Query, feed: Feed, rate: int) -> _Span:
        """Some time at a rate, after the query has caught up and got used to it."""
        self._catch_up(query, feed)
        trigger = query.job.trigger_seconds
        self.note(f"{query.job.system}: measuring {rate:,} rows per second, {_said(trigger)}")
        feed.rate = rate
        self._pass(query, self.options.stage_seconds / 2)
        began, before = time.time_ns() // 1000, len(query.batches)
        self._pass(query, self.options.measured_seconds)
        took = [b["durations"]["triggerExecution"] / 1000 for b in query.batches[before:]]
        return _Span(rate, began, time.time_ns() // 1000, statistics.median(took or [0.0]))

    def _catch_up(self, query: _Query, feed: Feed) -> None:
        """Send nothing until everything is done."""
        feed.rate = 0.0
        self._pass(query, _TICK)  # what is being sent is counted
        while query.done < feed.sent:
            self._pass(query, _TICK)

    def _latencies(self, query: _Query, feed: Feed, spans: Sequence[_Span]) -> list[Latencies]:
        """Those of the results whose newest row was made in a span."""
        job = query.job
        results = results_of(self.address, job.topics)
        found = len(distinct(results))
        expected = expected_results(feed.rows, self.options.window_seconds)
        told = []
        for span in spans:
            seconds = sorted(r.seconds for r in results if span.began <= r.made < span.ended)
            if not seconds:
                raise PlaitError(f"{job.system} has no results at {span.rate} rows per second")
            told.append(
                Latencies(
                    job.system,
                    span.rate,
                    job.trigger_seconds,
                    seconds,
                    span.batch_seconds,
                    found,
                    expected,
                )
            )
        return told

    def _pass(self, query: _Query, seconds: float) -> None:
        """Let time pass, as long as the query runs."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            query.check()
            time.sleep(_TICK)

    @contextmanager
    def _running(self, system: str, trigger: float) -> Iterator[tuple[_Query, Feed]]:
        """A query that has done its first batches, and rows that come at the lowest rate."""
        self.runs += 1
        topics, where = f"run{self.runs}", self.scratch / f"run{self.runs}"
        where.mkdir()
        names = [f"{topics}-s{i}" for i in range(len(_KEYS))]
        make_topics(self.address, dict.fromkeys(names, 1))
        appended = {"message.timestamp.type": "LogAppendTime"}
        make_topics(self.address, {f"{topics}-results": 1}, appended)
        options = self.options
        job = Job(
            system,
            _KEYS,
            round(options.window_seconds * 1_000_000),
            str(where),
            kafka=self.address,
            topics=topics,
            trigger_seconds=trigger,
            sink="kafka",
            cores=options.cores,
            memory=f"{options.memory_mb}m",
            settings={**SETTINGS.get(system, {}), **spark_settings()},
        )
        query = _Query(job)
        program = [sys.executable, "-m", "plait_lab.bench.spark.child"]
        command = [*program, str(job.write(where / "job"))]

        def run() -> None:
            query.heard = listen(command, where / "log", options.limit_seconds, on_word)

        def on_word(word: dict[str, Any]) -> None:
            if word["kind"] == "batch":
                query.batches.append(word)

        query.thread = threading.Thread(target=run)
        self.note(f"{system}: starting Spark")
        query.thread.start()
        try:
            with Feed(
                self.address, topics, len(_KEYS), options.window_seconds, options.seed
            ) as feed:
                feed.rate = options.lowest
                while len(query.batches) < _WARM_BATCHES:
                    self._pass(query, _TICK)
                yield query, feed
        finally:
            job.stop.touch()
            query.thread.join()


def distinct(results: Sequence[Appended]) -> set[tuple[int, ...]]:
    """Results by the rows that they are of: the sink of Spark may repeat a batch."""
    return {result.rows for result in results}
