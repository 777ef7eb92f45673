"""A restart with other delays or conditions: watermarks never go back, other questions are refused.

Two streams with one key; rows that are at most 10 seconds apart are joined.
"""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa
import pytest

from plait.errors import CheckpointDamaged, CheckpointMismatch
from plait.plan.examples import clique, keyed
from plait.plan.jtree import mjoin
from plait.query.expr import Call, Column, Literal
from plait.query.query import Query
from plait.workshop.laws.processors import Cluster

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


def test_a_longer_delay_does_not_bring_back_what_was_dropped() -> None:
    """The row of b at 92 would have joined both of a, but that at 85 is gone: all or nothing."""
    cluster = restarted(begun(0), delayed(60))
    assert cluster.run(rows([], [92])).num_rows == 0
    (report,) = cluster.reports
    assert report.late == {"b": 1} and report.watermarks == {"a": 100 * SECOND, "b": 100 * SECOND}
    assert report.notes == [
        "the delay of 'a' was 0 s and is 1 min from this batch on",
        "the delay of 'b' was 0 s and is 1 min from this batch on",
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
    with pytest.raises(CheckpointMismatch, match=r"filters was \[\] and is now \[a.k > 0\]; start"):
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
