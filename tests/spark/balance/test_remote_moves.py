"""Partition groups that move where the control directory is in an object store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any, cast

import pytest
from tests.machine.remote import MemoryStore, in_memory
from tests.spark.balance.managed_story import ID, Story, any_key

from plait.errors import MoveError
from plait.groups.balance.policy import BalancePolicy
from plait.groups.routing.table import Table
from plait.spark.balance.moves import Moves
from plait.spark.control import directory as control_module
from plait.spark.control import locks, report_files
from plait.spark.control.background_requests import BackgroundRequests
from plait.spark.control.cached_tables import CachedTables
from plait.spark.control.directory import Control
from plait.spark.control.locks import lock_on

pytestmark = pytest.mark.slow

BASE = "bucket/check/plait/join"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    own = BackgroundRequests(5.0, pauses=[0.0])
    for module in (control_module, report_files):
        monkeypatch.setattr(module, "requests", lambda: own)
    for name in ("_PLACED", "_ASKED", "_KNOWN", "_TABLES"):
        monkeypatch.setattr(control_module, name, {})
    yield in_memory(monkeypatch)


def control(run: str = "run") -> Control:
    return Control.of("s3://bucket/check", None, run, "yarn")


class RemoteStory(Story):
    """Its tasks run in several Python workers; each knows the tables that it has listed."""

    def __init__(self, store: MemoryStore, policy: BalancePolicy) -> None:
        self._store, self._who = store, Random(9)
        self._workers: list[dict[str, tuple[str, CachedTables]]] = [{}, {}, {}]
        super().__init__(control(), policy, any_key)
        self.cluster.transfers = cast(Any, self.control.transfers)  # instead of memory

    def table(self, batch: int) -> Table | None:
        """Whichever worker packs the rows."""
        control_module._TABLES = self._who.choice(self._workers)
        return self.control.table(batch)

    def written(self, number: int, processor: int) -> None:
        """A batch takes two seconds."""
        path = f"{BASE}/reports/{ID}/{number // 64:08}/{number}-{processor}.json"
        raw, _ = self._store.objects[path]
        self._store.objects[path] = (raw, (1_700_000_000 + 2 * number) * 10**9)


def test_oracle_groups_move_through_the_store(store: MemoryStore) -> None:
    story = RemoteStory(store, BalancePolicy())
    moves = Moves(story.join.routing, story.control, ID)
    moves.begin([g for g in range(128) if story.cluster.table.places[g] == (1,)][:56], [0])
    story.run(72)
    rows = Counter[int]()
    for _ in range(8):
        story.run(1)
        rows.update(story.rows_of_last_batch())
    assert max(rows.values()) < 0.75 * rows.total(), "all were on one"
    assert "go to processor 1" in story.said() and "went from processor 0 to 1" in story.said()
    assert story.exact()
    left = [path for path in store.objects if path.startswith(f"{BASE}/transfer/")]
    assert not left, "what was exported is removed when it has arrived"


def test_the_query_of_a_checkpoint_is_known(store: MemoryStore) -> None:
    assert control().newest_query() is None
    store.objects["bucket/check/metadata"] = (json.dumps({"id": "q"}).encode(), 0)
    assert control().newest_query() == "q"
    store.objects["bucket/check/metadata"] = (b"[", 0)
    assert control().newest_query() is None


def test_another_run_lists_the_tables_anew(store: MemoryStore) -> None:
    first = control("1")
    assert first.table(3) is None
    story = RemoteStory(store, BalancePolicy())
    Moves(story.join.routing, story.control, ID).begin(range(3), [1])
    newest = story.control.tables.newest()
    assert newest is not None
    assert control("2").table(newest.since) == newest


def test_a_second_manager_is_refused(store: MemoryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    first = lock_on(control())
    first.take()
    first.take()
    assert store.requests == {"put": 1, "list": 1}, "it is renewed now and then"
    (mine,) = [path for path in store.objects if "manager.lock" in path]
    monkeypatch.setattr(locks, "_me", lambda: "another")
    second = lock_on(control())
    with pytest.raises(MoveError, match="another process moves the partition groups of s3://"):
        second.take()
    assert [path for path in store.objects if "manager.lock" in path] == [mine]
    raw, when = store.objects[mine]
    store.objects[mine] = (raw, when - 120 * 10**9)  # it died two minutes ago
    second.take()
    assert [path for path in store.objects if "manager.lock" in path] == [
        f"{BASE}/manager.lock/another"
    ]
