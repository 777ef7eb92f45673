from __future__ import annotations

import pyarrow as pa
import pytest

from plait.node.durable.store import OwnEngines
from plait.node.reports.progress import progress
from plait.node.reports.report import Report
from plait.plan.jtree import mjoin
from plait.query.query import Query
from plait.testing.examples import chain
from plait_lab.laws.processors import Cluster

SECOND = 1_000_000


def batch(query: Query, first: int, keys: list[int | None]) -> dict[str, pa.Table]:
    """A row per key and stream, all keys equal, a second apart; the times of -1 are missing."""
    times = [None if k == -1 else (first + i) * SECOND for i, k in enumerate(keys)]
    return {
        s.name: pa.table(
            [times, *([keys] * (len(s.fields) - 1))],
            schema=s.schema,
        )
        for s in query.streams
    }


def run(batches: list[list[int | None]], firsts: list[int]) -> tuple[Cluster, list[list[Report]]]:
    query = chain(3)
    cluster = Cluster(query, mjoin(query), 4)
    reports = []
    for keys, first in zip(batches, firsts, strict=True):
        cluster.run(batch(query, first, keys))
        reports.append(cluster.reports)
    return cluster, reports


def numbered(reports: list[list[Report]]) -> list[tuple[int, list[Report], dict[str, int]]]:
    return [(number, found, {"addBatch": 7}) for number, found in enumerate(reports)]


def test_counts_of_all_processors_are_those_of_the_query() -> None:
    """b has both keys and goes to one of 2 x 2 processors, a and c have one and go to two."""
    cluster, reports = run([[1, 2, None], [1, -1, 3], [5]], [100, 200, 0])
    assert cluster.routing.shares == (2, 2)
    found = progress(numbered(reports))
    last, total = found.last, found.total
    assert last is not None and last.number == 2 and found.processed == 3
    assert last.counted.rows == {"a": 1, "b": 1, "c": 1}
    assert last.counted.late == {"a": 1, "b": 1, "c": 1}, "once each, though copied"
    assert total.rows == {"a": 7, "b": 7, "c": 7}
    assert total.null_keys == {"a": 1, "b": 1, "c": 1}
    assert total.null_times == {"a": 1, "b": 1, "c": 1}
    assert total.late == {"a": 1, "b": 1, "c": 1}
    assert total.results == 4
    assert sum(total.routed.values()) == 5 * (2 + 1 + 2), "four rows on time and a late one each"
    assert total.reused == 2 * 4 and not total.rebuilt
    assert found.watermarks == {"a": 202 * SECOND, "b": 202 * SECOND, "c": 202 * SECOND}
    assert last.milliseconds == {"addBatch": 7}


@pytest.mark.slow
def test_totals_need_the_last_batch_only() -> None:
    _, reports = run([[1]] * 150, [20 * n for n in range(150)])
    everything, remembered = progress(numbered(reports)), progress(numbered(reports)[-100:])
    assert remembered.total == everything.total
    assert remembered.total.results == 150 and remembered.processed == 150
    assert len(remembered.batches) == 100


def test_the_hottest_processor_shows() -> None:
    _, reports = run([[4] * 40], [0])
    hot, times = progress(numbered(reports)).total.hottest
    assert times > 1.4
    routed = {r.processor: sum(r.routed.values()) for r in reports[0]}
    assert routed[hot] == max(routed.values())


def test_a_report_that_is_missing_is_that_of_the_batch_before() -> None:
    _, reports = run([[1, 2, 3]] * 3, [0, 20, 40])
    whole = progress(numbered(reports))
    reports[2] = [r for r in reports[2] if r.processor != 3]
    found = progress(numbered(reports))
    assert found.processed == 3 and set(found.plans) == {0, 1, 2, 3}
    assert found.total.rows == whole.total.rows
    assert found.total.routed[3] < whole.total.routed[3], "as it was a batch earlier"


def test_batches_without_a_report_are_named() -> None:
    _, reports = run([[1]] * 3, [0, 20, 40])
    reports[1] = []
    found = progress([*numbered(reports), (3, [], {}), (4, [], {"addBatch": 5})])
    assert found.unreported == (1, 4), "of the third Spark has no times: it has not run"
    assert "no report of the batches 1, 4" in str(found)
    nothing = progress([(n, [], {"addBatch": 5}) for n in range(9)])
    assert str(nothing) == "no batch yet\nno report of the batches 3, 4, 5, 6, 7, 8, ..."


def test_notes_are_told_once_with_the_last_batch() -> None:
    _, reports = run([[1]] * 3, [0, 20, 40])
    for by_processor in reports[:2]:
        for report in by_processor:
            report.notes = ["a decision was skipped"]
    found = progress(numbered(reports), [(2, "a report cannot be read")])
    assert found.notes == ((1, "a decision was skipped"), (2, "a report cannot be read"))
    assert "batch 1: a decision was skipped\nbatch 2: a report" in str(found)


def test_what_could_not_be_written_is_counted_and_survives() -> None:
    query = chain(3)
    cluster = Cluster(query, mjoin(query), 4)
    cluster.run(batch(query, 0, [1]))
    for what in ("reports", "event logs"):
        task = cluster.processor.task(2, cluster.stores[2], OwnEngines())
        task.not_written(what, f"{what}: no space")
    cluster.workers = (OwnEngines(),)
    deaths = iter([False, True])
    cluster.run(batch(query, 20, [1]), die=lambda p, step: next(deaths, False))
    first = progress([(1, cluster.reports, {})])
    assert first.total.unwritten == {"reports": 1, "event logs": 1}
    assert [note for _, note in first.notes] == ["event logs: no space", "reports: no space"]
    cluster.run(batch(query, 40, [1]))
    second = progress([(2, cluster.reports, {})])
    assert second.total.unwritten == first.total.unwritten and not second.notes
    assert "not written: 1 event logs, 1 reports" in str(second)
