"""The figures of a run from Kafka to Kafka, and what it says where there is no Kafka."""

from __future__ import annotations

import pytest

from plait_lab.bench.spark import kafka_latency
from plait_lab.bench.spark.kafka_feed import Appended, expected_results
from plait_lab.bench.spark.kafka_latency import KafkaOptions, Latencies, distinct


def test_without_kafka_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_latency, "missing", lambda: "a Kafka broker is missing: do this")
    report = kafka_latency.kafka_latency(KafkaOptions(), lambda _: None)
    assert report.systems == {"kafka": {"left out": "a Kafka broker is missing: do this"}}
    assert not report.claims, "nothing was measured"


def test_latencies_are_those_of_results() -> None:
    found = Latencies("plait", 9, 0.0, [float(n) for n in range(1, 101)], 0.5, 100, 100)
    told = found.figures()
    assert (told["median_s"], told["p99_s"], told["most_s"]) == (50.5, 99.0, 100.0)
    assert Appended(3_000_000, 1_500_000, (1, 2)).seconds == 1.5


def test_a_repeated_result_counts_once() -> None:
    one, again, other = Appended(1, 0, (1, 2)), Appended(9, 0, (1, 2)), Appended(1, 0, (1, 3))
    assert len(distinct([one, again, other])) == 2


def test_duckdb_counts_rows_that_are_near_each_other() -> None:
    rows = [[(0, 1, 0), (5_000_000, 1, 1)], [(1_000_000, 1, 0)], [(2_000_000, 1, 0), (0, 2, 1)]]
    assert expected_results(rows, 2.0) == 1
    assert expected_results(rows, 4.0) == 2
    assert expected_results([[], [(0, 1, 0)]], 1.0) == 0
