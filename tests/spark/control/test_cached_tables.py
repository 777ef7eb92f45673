"""Routing tables of a remote store: who lists them now and then misses none."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.machine.remote import MemoryStore, in_memory

from plait.errors import CheckpointDamaged, StorageError
from plait.groups.routing.table import Table, initial
from plait.machine.stores import RemoteStore
from plait.spark.control.cached_tables import CachedTables
from plait.spark.control.routing_tables import RoutingTables

PLACE = "s3://bucket/tables"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> MemoryStore:
    return in_memory(monkeypatch)


def add(tables: RoutingTables, since: int) -> Table:
    newest = tables.newest() or initial([0, 1])
    table = newest.changed(max(since, newest.since + 1))
    tables.add(table)
    return table


@given(st.integers(0, 4), st.integers(0, 2**32))
def test_every_worker_goes_by_the_table_of_the_batch(ahead: int, seed: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        in_memory(patch)
        tables = RoutingTables(RemoteStore(PLACE))
        chance = Random(seed)
        workers = [CachedTables(tables, ahead) for _ in range(3)]
        asked, added = [], []
        for batch in range(20):  # `batch` is the last that has begun
            for _ in range(2):
                if chance.random() < 0.2:
                    added.append(add(tables, batch + 1 + ahead + chance.randrange(3)))
                asked += [(batch, w.at(batch)) for w in workers if chance.random() < 0.5]
            if chance.random() < 0.1:
                tables.forget(batch)
        for batch, found in asked:
            holding = [table for table in added if table.since <= batch]
            assert found == (holding[-1] if holding else None)


def test_a_table_that_comes_sooner_than_promised_is_missed(store: MemoryStore) -> None:
    """So the promise is needed: the test above can fail."""
    tables = RoutingTables(RemoteStore(PLACE))
    worker = CachedTables(tables, 3)
    assert worker.at(5) is None
    table = add(tables, 7)
    assert worker.at(7) is None and worker.at(9) == table


def test_requests_are_few(store: MemoryStore) -> None:
    tables = RoutingTables(RemoteStore(PLACE))
    add(tables, 2)
    table = add(tables, 4)
    store.requests.clear()
    worker = CachedTables(tables, 8)
    for batch in range(6, 24):
        assert worker.at(batch) == table and worker.numbered(2) == table
    assert store.requests == {"list": 2, "get": 1}


def test_a_store_that_is_away_is_waited_for(store: MemoryStore) -> None:
    tables = RoutingTables(RemoteStore(PLACE))
    table = add(tables, 1)
    worker = CachedTables(tables, pauses=[0.0, 0.0, 0.0])
    store.away = OSError("503: slow down")
    with pytest.raises(StorageError, match=r"tables in s3://bucket/tables cannot be read: .*503"):
        worker.at(3)
    store.away = None
    assert worker.at(3) == table


def test_a_damaged_table_is_named_at_once(store: MemoryStore) -> None:
    add(RoutingTables(RemoteStore(PLACE)), 1)
    store.objects["bucket/tables/000001.json"] = (b"{", 0)
    store.requests.clear()
    with pytest.raises(CheckpointDamaged, match=r"000001\.json cannot be read"):
        CachedTables(RoutingTables(RemoteStore(PLACE)), pauses=[9.0] * 9).at(3)
    assert store.requests["get"] == 1
