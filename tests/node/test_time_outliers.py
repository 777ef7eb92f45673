"""One row with a wrong clock is noticed when it has made others late, and not otherwise."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.local.host import LocalRun
from plait.node.reports.progress import progress
from plait.node.time_outliers import TimeOutlier, time_outlier_notes, time_outliers_after
from plait.query.query import NEVER_LATE
from plait.testing.examples import clique
from plait_lab.laws.processors import Cluster

QUERY = clique(2)
DAY = 86_400_000_000
NOW, IN_9999 = 1_780_000_000_000_000, 253_370_764_800_000_000


def rows(*times: int) -> pa.Table:
    return pa.table([list(times), [1] * len(times)], schema=QUERY.streams[0].schema)


def test_a_row_of_the_year_9999_is_told_with_what_it_did() -> None:
    cluster = Cluster(QUERY, LocalRun(QUERY).plan, 3)
    for n in range(10):
        times = [NOW + n * 1_000_000 + i for i in range(50)]
        cluster.run({"a": rows(*times), "b": rows(*times, *([IN_9999] if n == 4 else ()))})
    found = progress([(9, cluster.reports, {})])
    (told,) = found.notes
    assert "one row of stream b is 7,97" in told[1] and "years ahead of all others" in told[1]
    assert "since then 250 of 250 rows of b were late" in told[1] and ".ahead('1 hour')" in told[1]
    assert "7,97" in str(found)


def test_streams_that_merely_start_pause_or_lag_are_not_far_ahead() -> None:
    none = BEFORE_ALL_TIMES
    assert not time_outliers_after(QUERY, {}, [none, none], [NOW, none], {"a": 1}, {})
    assert not time_outliers_after(QUERY, {}, [NOW, NOW], [NOW + DAY, NOW], {"a": 1}, {})
    far = time_outliers_after(QUERY, {}, [NOW, NOW], [NOW, NOW + 2 * DAY], {"b": 9}, {})
    assert far == {"b": TimeOutlier(2 * DAY)}, "the rows of that batch are not late by it"
    after = time_outliers_after(
        QUERY, far, [NOW, NOW + 2 * DAY], [NOW, NOW + 2 * DAY], {"b": 9}, {"b": 3}
    )
    assert after == {"b": TimeOutlier(2 * DAY, 9, 3)} and not time_outlier_notes([after]), (
        "most are on time"
    )
    late = time_outliers_after(
        QUERY, after, [NOW, NOW + 2 * DAY], [NOW, NOW + 2 * DAY], {"b": 9}, {"b": 9}
    )
    assert time_outlier_notes([late]) and "2 days" in time_outlier_notes([late])[0]
    others = [NOW + 2 * DAY] * 2
    assert not time_outliers_after(QUERY, late, [NOW, others[1]], others, {}, {}), (
        "they have caught up"
    )


def test_a_stream_whose_rows_are_never_late_does_no_harm() -> None:
    streams = tuple(replace(s, delay=NEVER_LATE) for s in QUERY.streams)
    endless = replace(QUERY, streams=streams)
    assert not time_outliers_after(endless, {}, [NOW, NOW], [NOW, IN_9999], {"b": 1}, {})


def test_wide_windows_allow_for_more() -> None:
    wide = tuple(replace(s, delay=30 * DAY) for s in QUERY.streams)
    query = replace(QUERY, streams=wide)
    assert not time_outliers_after(query, {}, [NOW, NOW], [NOW, NOW + 50 * DAY], {}, {})
    assert time_outliers_after(query, {}, [NOW, NOW], [NOW, NOW + 61 * DAY], {}, {})
