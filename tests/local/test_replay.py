"""Several sources side by side, in batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import SourceError
from plait.local.options import ORDERS, LocalOptions, Order
from plait.local.replay import Replay
from plait.local.sources.base import Source
from plait.local.sources.memory import BatchesSource, TableSource
from plait.testing.examples import clique

SCHEMA = pa.schema([("ts", pa.timestamp("us")), ("k", pa.int64())])
STREAMS = st.lists(st.lists(st.none() | st.integers(0, 60), max_size=25), min_size=3, max_size=3)


def table(times: list[int | None]) -> pa.Table:
    return pa.table({"ts": times, "k": range(len(times))}, schema=SCHEMA)


def replay(streams: list[list[int | None]], **options: Any) -> list[dict[str, pa.Table]]:
    sources: dict[str, Source] = {
        name: TableSource(table(times)) for name, times in zip("abc", streams, strict=True)
    }
    return list(Replay(clique(3), sources, LocalOptions(**options)))


def chunked(rows: pa.Table, size: int) -> pa.Table:
    return pa.Table.from_batches(rows.to_batches(max_chunksize=size), rows.schema)


def dated_rows(batches: list[dict[str, pa.Table]]) -> list[dict[str, list[int]]]:
    """The rows with an event time of each batch that has some, by stream."""
    found = [
        {
            name: rows.filter(rows.column("ts").is_valid()).column("k").to_pylist()
            for name, rows in batch.items()
        }
        for batch in batches
    ]
    return [kept for batch in found if (kept := {n: ks for n, ks in batch.items() if ks})]


def rows_of(batches: list[dict[str, pa.Table]], name: str) -> list[int]:
    return [k for batch in batches if name in batch for k in batch[name].column("k").to_pylist()]


def times_of(batch: dict[str, pa.Table]) -> list[int]:
    stamps = (t.column("ts").cast(pa.int64()).drop_null().to_pylist() for t in batch.values())
    return [t for times in stamps for t in times]


@given(
    STREAMS,
    st.sampled_from(ORDERS),
    st.sampled_from([{"batch_rows": 1}, {"batch_rows": 7}, {"batch_seconds": 5e-6}]),
)
def test_every_row_is_in_one_batch(
    streams: list[list[int | None]], order: Order, batches: dict[str, float]
) -> None:
    found = replay(streams, order=order, **batches)
    for name, times in zip("abc", streams, strict=True):
        rows = rows_of(found, name)
        assert sorted(rows) == list(range(len(times)))
        if order == "file":
            assert rows == sorted(rows)
        else:
            dated = [t for k in rows if (t := times[k]) is not None]
            assert dated == sorted(dated)
    assert all(sum(t.num_rows for t in batch.values()) for batch in found)


@pytest.mark.slow
@settings(max_examples=50)
@given(STREAMS, st.sampled_from([{"batch_rows": 4}, {"batch_seconds": 5e-6}]))
def test_streams_advance_together(
    streams: list[list[int | None]], batches: dict[str, float]
) -> None:
    found = [times for batch in replay(streams, **batches) if (times := times_of(batch))]
    for before, after in pairwise(found):
        assert max(before) <= min(after)


@pytest.mark.slow
@settings(max_examples=50)
@given(STREAMS)
def test_batches_by_rows_are_full_and_those_by_time_are_short(
    streams: list[list[int | None]],
) -> None:
    sizes = [len(times_of(batch)) for batch in replay(streams, batch_rows=5)]
    full, rest = divmod(sum(t is not None for times in streams for t in times), 5)
    assert [size for size in sizes if size] == [5] * full + [rest] * (rest > 0)
    for batch in replay(streams, batch_seconds=5e-6):
        times = times_of(batch)
        assert not times or max(times) - min(times) < 5


def test_batches_by_time_begin_at_the_earliest_event() -> None:
    found = replay([[3, 9], [4, 30], [5]], batch_seconds=5e-6)
    assert [sorted(times_of(batch)) for batch in found] == [[3, 4, 5], [9], [30]]


@pytest.mark.slow
@given(STREAMS, st.sampled_from(ORDERS), st.integers(1, 9), st.lists(st.integers(1, 9), min_size=2))
def test_batches_depend_neither_on_chunks_nor_on_rows_without_time(
    streams: list[list[int | None]], order: Order, batch_rows: int, sizes: list[int]
) -> None:
    def batches(tables: list[pa.Table], size: int, undated_rows: int) -> object:
        sources: dict[str, Source] = {
            n: TableSource(chunked(t, size)) for n, t in zip("abc", tables, strict=True)
        }
        options: dict[str, Any] = {
            "order": order,
            "batch_rows": batch_rows,
            "undated_rows": undated_rows,
        }
        found = list(Replay(clique(3), sources, LocalOptions(**options)))
        held = [sum(t.column("ts").null_count for t in batch.values()) for batch in found]
        assert sum(held) == sum(t.column("ts").null_count for t in tables)
        return dated_rows(found)

    whole = [table(times) for times in streams]
    dated = [rows.filter(rows.column("ts").is_valid()) for rows in whole]
    expected = batches(dated, 1 << 16, 1)
    for size in sizes:
        assert batches(whole, size, sizes[-1]) == expected


def test_rows_without_time_do_not_pile_up() -> None:
    read = []

    def chunks() -> Iterator[pa.Table]:
        for start in range(50):
            read.append(start)
            yield table([None] * 10)

    others = {"b": TableSource(table([0, 5])), "c": TableSource(table([1]))}
    sources: dict[str, Source] = {"a": BatchesSource(chunks(), SCHEMA), **others}
    feed = iter(
        Replay(clique(3), sources, LocalOptions(order="file", batch_rows=10, undated_rows=25))
    )
    for _ in range(3):
        batch = next(feed)
        assert list(batch) == ["a"]
        assert batch["a"].num_rows == 30
        assert len(read) % 3 == 0
    assert sum(b["a"].num_rows for b in feed if "a" in b) == 500 - 90


def test_an_iterator_is_read_once_and_only_as_far_as_needed() -> None:
    read = []

    def batches() -> Iterator[pa.Table]:
        for start in range(0, 100, 10):
            read.append(start)
            yield table(list(range(start, start + 10)))

    others = {"b": TableSource(table([0, 5])), "c": TableSource(table([1]))}
    sources: dict[str, Source] = {"a": BatchesSource(batches(), SCHEMA), **others}
    feed = iter(Replay(clique(3), sources, LocalOptions(order="file", batch_rows=10)))
    assert rows_of([next(feed)], "a") == list(range(7))
    assert len(read) <= 3
    assert sum(b["a"].num_rows for b in feed) == 93


def test_progress_reaches_the_end() -> None:
    sources: dict[str, Source] = {n: TableSource(table([9, 1, 5] * 50)) for n in "abc"}
    feed = Replay(clique(3), sources, LocalOptions(batch_rows=30))
    seen = []
    for _ in feed:
        assert feed.progress is not None
        seen.append(feed.progress)
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


def test_an_unknown_order_and_an_empty_batch() -> None:
    with pytest.raises(SourceError, match="no order 'random'; known: event-time, file"):
        replay([[1], [1], [1]], order="random")
    with pytest.raises(SourceError, match="give a batch size above 0"):
        replay([[1], [1], [1]], batch_rows=0)
    for seconds in (0.0, -1.0, math.nan, math.inf, -math.inf):
        with pytest.raises(SourceError, match="give a batch size above 0 that is finite"):
            replay([[1], [1], [1]], batch_seconds=seconds)


@pytest.mark.parametrize("seconds", [1e-300, 1e15, 1e300])
def test_a_batch_may_be_very_short_or_very_long(seconds: float) -> None:
    found = replay([[0, 2**60], [-(2**60)], [5]], batch_seconds=seconds)
    assert [rows_of(found, name) for name in "abc"] == [[0, 1], [0], [0]]
    assert len(found) == (4 if seconds < 1 else 1)
