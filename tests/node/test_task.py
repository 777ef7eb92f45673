"""The batches of a node: its engine is kept or rebuilt, its state written and removed.

Also a restart with other delays or conditions: watermarks never go back, other questions are
refused. Two streams with one key; rows that are at most 10 seconds apart are joined.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest

from plait.engine.intake.admission import LATE, NULL_KEY
from plait.errors import CheckpointDamaged, CheckpointMismatch
from plait.node.durable.store import OwnEngines
from plait.plan.jtree import mjoin
from plait.query.expr import Call, Column, Literal
from plait.query.query import Query
from plait.testing.examples import clique, keyed
from plait_lab.laws.processors import Cluster

SECOND = 1_000_000
QUERY = clique(2)


def rows(a: list[int], b: list[int]) -> dict[str, pa.Table]:
    """Rows at these seconds, all with the same key."""
    return {
        stream.name: pa.table([[t * SECOND for t in times], [1] * len(times)], schema=stream.schema)
        for stream, times in zip(QUERY.streams, (a, b), strict=True)
    }


def delayed(seconds: int) -> Query:
    streams = tuple(replace(s, delay=seconds * SECOND) for s in QUERY.streams)
    return replace(QUERY, streams=streams)


def restarted(cluster: Cluster, query: Query) -> Cluster:
    again = Cluster(query, mjoin(query), len(cluster.stores))
    again.stores = cluster.stores
    return again


def begun(seconds: int) -> Cluster:
    """Rows of a at 85 and 95 seconds, then both streams have come to 100 seconds."""
    query = delayed(seconds)
    cluster = Cluster(query, mjoin(query), 1)
    assert cluster.run(rows([85, 95], [])).num_rows == 0
    cluster.run(rows([100], [100]))
    return cluster


def test_an_engine_that_is_kept_is_not_rebuilt() -> None:
    cluster = begun(0)
    assert not cluster.reports[0].rebuilt
    assert cluster.run(rows([], [101])).num_rows == 2, "95 and 100"
    assert not cluster.reports[0].rebuilt
    again = restarted(cluster, QUERY)
    assert again.run(rows([101], [])).num_rows == 2, "100 and 101"
    assert again.reports[0].rebuilt and again.reports[0].total["rebuilt"] == 1


def test_an_engine_that_missed_batches_is_not_used() -> None:
    """Batches go from one worker to the other; each finds an engine of an older state."""
    cluster = Cluster(QUERY, mjoin(QUERY), 1, (OwnEngines(), OwnEngines()))
    found = []
    for second, worker in ((1, 0), (2, 1), (3, 0), (4, 0)):
        results = cluster.run(rows([second], [second]), worker_of=partial(max, worker))
        found.append((results.num_rows, cluster.reports[0].rebuilt))
    assert found == [(1, False), (3, True), (5, True), (7, False)]


def test_a_batch_that_died_leaves_no_engine_behind() -> None:
    """Its rows are in the engine already; the batch is repeated from the store as it was."""
    cluster = begun(0)
    deaths = iter([True])
    found = cluster.run(rows([], [101]), die=lambda _processor, _step: next(deaths, False))
    assert found.num_rows == 2 and cluster.reports[0].rebuilt
    assert cluster.reports[0].total["results"] == 2 + 2, "100 with 95 and 100; repeats count once"


def test_segments_are_written_once_and_removed_when_they_have_expired() -> None:
    cluster = begun(0)
    store = cluster.stores[0]
    assert sorted(store.rows) == [(1, 0), (2, 0), (2, 1)]
    assert cluster.reports[0].segments == 3
    cluster.run(rows([], []))
    assert cluster.reports[0].written_bytes == 0, "no rows, no segment"
    assert sorted(cluster.stores[0].rows) == [(1, 0), (2, 0), (2, 1)]
    cluster.run(rows([107], [107]))
    assert sorted(cluster.stores[0].rows) == [(2, 0), (2, 1), (4, 0), (4, 1)], "95 met 105 last"
    report = cluster.reports[0]
    assert (report.segments, report.written_bytes > 0) == (4, True)
    assert report.total["written_bytes"] == cluster.stores[0].written


def test_late_rows_are_not_stored() -> None:
    cluster = begun(0)
    assert cluster.run(rows([99], [])).num_rows == 0
    assert cluster.reports[0].late == {"a": 1} and cluster.reports[0].written_bytes == 0
    again = restarted(cluster, QUERY)
    assert again.run(rows([], [100])).num_rows == 2, "95 and 100, not 99"


@pytest.mark.parametrize("wanted", [True, False])
def test_rows_set_aside_are_handed_out_if_somebody_wants_them(wanted: bool) -> None:
    cluster = Cluster(QUERY, mjoin(QUERY), 1, aside=wanted)
    cluster.run(rows([100], [100]))
    given = rows([5, 100], [100])
    no_key = pa.table([[100 * SECOND], [None]], schema=QUERY.streams[1].schema)
    found = cluster.run({"a": given["a"], "b": pa.concat_tables([given["b"], no_key])})
    assert found.num_rows == 3
    aside = sorted((a.reason, a.stream, a.rows.num_rows) for a in cluster.aside)
    assert aside == ([(LATE, 0, 1), (NULL_KEY, 1, 1)] if wanted else [])
    assert (cluster.reports[0].late, cluster.reports[0].null_keys) == ({"a": 1}, {"b": 1})


def test_what_could_not_be_written_is_told_by_the_next_report() -> None:
    cluster = begun(0)
    task = cluster.processor.task(0, cluster.stores[0], OwnEngines())
    task.not_written("report", "the disk is full")
    task.not_written("report", "the disk is still full")
    cluster.run(rows([], []))
    report = cluster.reports[0]
    assert report.unwritten == {"report": 2}
    assert report.notes == ["the disk is full", "the disk is still full"]
    cluster.run(rows([], []))
    assert not cluster.reports[0].unwritten and not cluster.reports[0].notes, "told once"
    assert cluster.reports[0].total["unwritten"] == {"report": 2}


def test_a_longer_delay_does_not_bring_back_what_was_dropped() -> None:
    """The row of b at 92 would have joined both of a, but that at 85 is gone: all or nothing."""
    cluster = restarted(begun(0), delayed(60))
    assert cluster.run(rows([], [92])).num_rows == 0
    (report,) = cluster.reports
    assert report.late == {"b": 1} and report.watermarks == {"a": 100 * SECOND, "b": 100 * SECOND}
    assert report.notes == [
        "the delay of a was 0 s and is now 1 min from this batch on",
        "the delay of b was 0 s and is now 1 min from this batch on",
    ]
    cluster.run(rows([130], [130]))
    assert cluster.reports[0].watermarks == {"a": 100 * SECOND, "b": 100 * SECOND}, "it stands"
    assert not cluster.reports[0].notes, "told once"
    cluster.run(rows([200], [200]))
    assert cluster.reports[0].watermarks == {"a": 140 * SECOND, "b": 140 * SECOND}, "as asked for"
    again = restarted(cluster, delayed(60))
    assert again.run(rows([], [139, 141])).num_rows == 0
    assert again.reports[0].late == {"b": 1} and not again.reports[0].notes


def test_a_shorter_delay_holds_from_the_next_batch_on() -> None:
    cluster = restarted(begun(60), delayed(0))
    assert cluster.run(rows([], [92])).num_rows == 0
    assert cluster.reports[0].late == {"b": 1}
    assert cluster.run(rows([], [101])).num_rows == 2, "95 and 100"


def test_the_same_delay_changes_nothing() -> None:
    cluster = restarted(begun(60), delayed(60))
    assert cluster.run(rows([], [92])).num_rows == 3
    assert not cluster.reports[0].notes and not cluster.reports[0].late


def test_a_stream_that_was_never_seen_has_no_watermark() -> None:
    query = delayed(0)
    cluster = Cluster(query, mjoin(query), 1)
    cluster.run(rows([100], []))
    again = restarted(cluster, delayed(60))
    assert again.run(rows([], [95])).num_rows == 1
    assert again.reports[0].watermarks == {"a": 100 * SECOND, "b": 35 * SECOND}


def test_state_of_an_earlier_version_goes_on_and_learns_the_contract() -> None:
    cluster = begun(0)
    earlier = json.loads(cluster.stores[0].contract or "")
    del earlier["filters"], earlier["delays"]
    cluster.stores[0].contract = json.dumps(earlier)
    without_checksum(cluster)
    again = restarted(cluster, delayed(0))
    assert again.run(rows([], [100])).num_rows == 2
    assert again.stores[0].contract == again.processor.contract.to_json()


def test_another_condition_on_one_stream_is_refused() -> None:
    condition = Call("gt", (Column("a", "k"), Literal(0, pa.int64())))
    asked = replace(QUERY, residuals=(condition,))
    cluster = restarted(begun(0), asked)
    with pytest.raises(CheckpointMismatch, match=r"filters was \[\] and is now \[a.k > 0\]; tell"):
        cluster.run(rows([], [100]))


def test_segments_that_are_missing_or_of_another_query_are_noticed() -> None:
    for damage in (remove_one, take_all_of_another, take_the_header_of_another):
        cluster = begun(0)
        damage(cluster)
        again = restarted(cluster, QUERY)
        with pytest.raises(CheckpointDamaged, match=r"state of processor 0 has \d segments, but"):
            again.run(rows([], [100]))


def test_a_segment_that_cannot_be_read_is_named() -> None:
    cluster = begun(0)
    key, (newest, body) = next(iter(cluster.stores[0].rows.items()))
    cluster.stores[0].rows[key] = (newest, body[: len(body) // 2])
    with pytest.raises(CheckpointDamaged, match="segment 1 of stream 'a' in the state of proc"):
        restarted(cluster, QUERY).run(rows([], [100]))


def test_headers_of_earlier_versions_have_no_checksum() -> None:
    cluster = begun(0)
    without_checksum(cluster)
    assert restarted(cluster, QUERY).run(rows([], [100])).num_rows == 2


def without_checksum(cluster: Cluster) -> None:
    header = json.loads(cluster.stores[0].header or "")
    del header["state"]
    cluster.stores[0].header = json.dumps(header)


def remove_one(cluster: Cluster) -> None:
    rows_there = cluster.stores[0].rows
    del rows_there[next(iter(rows_there))]


def take_all_of_another(cluster: Cluster) -> None:
    """As if a file of the state were that of another batch."""
    other = Cluster(QUERY, mjoin(QUERY), 1)
    other.run(rows([95], [95]))
    cluster.stores[0].rows = other.stores[0].rows


def take_the_header_of_another(cluster: Cluster) -> None:
    wider = keyed("k", "k", width=11 * SECOND)
    other = Cluster(wider, mjoin(wider), 1)
    other.run(rows([95], []))
    other.run(rows([100], [100]))
    cluster.stores[0].header = other.stores[0].header
