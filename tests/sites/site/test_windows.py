"""Windows of a site: one sequence by stamp, copies that fill it, and what is durable."""

from __future__ import annotations

import pyarrow as pa

from plait.engine.windows import Windows
from plait.sites.site.one_way import keeping_all
from plait.sites.site.store import SegmentChanges
from plait.sites.site.windows import SiteWindows
from plait.testing.examples import clique
from plait_lab.laws.processors import MemoryStore


def rows(*seconds: int) -> pa.RecordBatch:
    times = pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us"))
    return pa.record_batch({"ts": times, "k": pa.array([1] * len(seconds), pa.int64())})


def windows(changes: SegmentChanges | None = None) -> SiteWindows:
    found = SiteWindows(Windows(keeping_all(clique(2)), {}), changes or SegmentChanges())
    found.keep(0)
    return found


def stamps(found: SiteWindows) -> list[tuple[int, int]]:
    return [(stamp, part.num_rows) for stamp, part in found.content(0)]


def test_a_copy_is_put_between_what_is_there() -> None:
    holder, target = windows(), windows()
    for stamp in (2, 5, 8):
        holder.store(0, rows(stamp), stamp)
    target.store(0, rows(9), 9)
    target.unpack(0, holder.packed(0, upto=5))
    assert stamps(target) == [(2, 1), (5, 1), (9, 1)]


def test_rows_that_a_copy_has_overtaken_are_stored_once() -> None:
    found = windows()
    found.fill(0, [(3, rows(3)), (5, rows(5))])
    found.store(0, rows(3), 3)
    found.store(0, rows(2, 2), 2)
    assert stamps(found) == [(2, 2), (3, 1), (5, 1)]


def test_more_rows_of_a_stamp_replace_fewer() -> None:
    found = windows()
    found.store(0, rows(4), 1)
    found.fill(0, [(1, rows(3, 4))])
    found.fill(0, [(1, rows(4))])
    assert stamps(found) == [(1, 2)]


def test_an_empty_window_can_be_copied() -> None:
    target = windows()
    target.unpack(0, windows().packed(0, upto=9))
    assert stamps(target) == []


def test_what_is_purged_or_not_kept_leaves_the_store() -> None:
    changes, store = SegmentChanges(), MemoryStore()
    found = windows(changes)
    found.store(0, rows(1), 1)
    found.store(0, rows(60), 2)
    changes.save(store, "{}")
    assert len(store.rows) == 2
    found.purge({0: 30_000_000})
    changes.save(store, "{}")
    assert [segment for segment, _ in store.rows] == [2]
    found.keep_only([])
    changes.save(store, "{}")
    assert not store.rows
