"""A control directory in an object store: the same as in a folder, with few requests."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.machine.remote import MemoryStore, in_memory

from plait.adapt.events import Event
from plait.errors import CheckpointMismatch, StorageError
from plait.node.reports.report import Report
from plait.plan.jtree import mjoin
from plait.spark.control import directory as control_module
from plait.spark.control import report_files
from plait.spark.control.background_requests import BackgroundRequests
from plait.spark.control.directory import Control
from plait.testing.examples import clique

QUERY = clique(3)
BASE = "bucket/check/plait/join"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[MemoryStore]:
    """Nothing is remembered from other tests, and requests have a thread of their own."""
    own = BackgroundRequests(5.0, pauses=[0.0])
    for module in (control_module, report_files):
        monkeypatch.setattr(module, "requests", lambda: own)
    for name in ("_PLACED", "_ASKED", "_KNOWN"):
        monkeypatch.setattr(control_module, name, type(getattr(control_module, name))())
    system = in_memory(monkeypatch)
    yield system
    system.open.set()


def control(place: str = "s3a://bucket/check") -> Control:
    return Control.of(place, None, "run", "yarn")


def test_decisions_and_reports_go_through_the_store(store: MemoryStore) -> None:
    here = control()
    assert here.shared and not here.temporary and here.folder == f"s3a://{BASE}"
    here.reach()
    assert here.newest_epoch(QUERY) == (None, []) and not here.reports("q").exist()
    first = here.epochs.add(mjoin(QUERY), "moving-state")
    assert here.newest_epoch(QUERY)[0] == first and f"{BASE}/epochs/000001.json" in store.objects
    for batch in range(3):
        for processor in range(2):
            here.reports("q").write(batch, Report(processor, batch + 1, results=processor))
    assert here.reports("q").batches() == [0, 1, 2] and here.reports("q").exist()
    assert sorted(r.results for r in here.reports("q").of(1)) == [0, 1]
    store.objects[f"{BASE}/reports/q/00000000/1-7.json"] = (b"{", 0)
    found, (note,) = here.reports("q").read(1)
    assert len(found) == 2 and "1-7.json cannot be read" in note


def test_requests_of_a_batch_are_few(store: MemoryStore) -> None:
    here = control()
    here.epochs.add(mjoin(QUERY), "auto")
    store.objects["bucket/check/metadata"] = (json.dumps({"id": "q"}).encode(), 0)
    for batch in range(6):
        before = Counter(store.requests)
        here.check_place("q")
        here.newest_epoch(QUERY)
        report = Report(0, batch + 1, events=[Event("judged", 1, 0)] if batch == 4 else [])
        here.write_events(report, batch)
        here.reports("q").write(batch, report)
        asked = Counter(store.requests) - before
        del asked["clear"]  # in its own time
        if batch == 0:
            assert asked == Counter(get=2, list=1, put=1), "its place and the epoch"
        else:
            assert asked == Counter(list=1, put=1 + (batch == 4)), batch
    assert f"{BASE}/events/0-00000004.jsonl" in store.objects


def test_old_reports_go_many_at_a_time(store: MemoryStore) -> None:
    here = replace(control(), kept=6)
    for batch in range(40):
        for processor in range(2):
            here.reports("q").write(batch, Report(processor, batch + 1))
    getattr(control_module, "requests")().ask(lambda: None).result(10)  # noqa: B009
    kept = here.reports("q").batches()
    assert kept == list(range(kept[0], 40)) and 6 <= len(kept) <= 9
    assert len(here.reports("q").of(35)) == 2 and here.reports("q").of(20) == []
    assert store.requests["clear"] < 2 * 40 / 3 + 2


def test_a_store_that_is_away_delays_nothing_but_what_it_is_told(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = BackgroundRequests(0.01, pauses=[0.0])
    for module in (control_module, report_files):
        monkeypatch.setattr(module, "requests", lambda: slow)
    here = control()
    first = here.epochs.add(mjoin(QUERY), "auto")
    for _ in range(1000):  # in a hundredth of a second even this store may not answer
        if here.newest_epoch(QUERY)[0] == first:
            break
        slow.ask(lambda: None).result(10)
    slow.ask(lambda: None).result(10)
    store.open.clear()
    for batch in range(5):
        here.check_place("q")
        assert here.newest_epoch(QUERY)[0] == first, "what was known before"
        here.reports("q").write(batch, Report(0, batch + 1))
    store.open.set()
    slow.ask(lambda: None).result(10)
    assert here.reports("q").batches() == list(range(5)), "everything was told in the end"


def test_a_report_that_was_given_up_is_an_error_to_count(store: MemoryStore) -> None:
    store.away = OSError("503: slow down")
    with pytest.raises(OSError, match="503"):
        control().reports("q").write(0, Report(0, 1))
    assert control().newest_epoch(QUERY)[0] is None, "the query goes on"
    store.away = None
    control().reports("q").write(1, Report(0, 2))
    assert control().reports("q").batches() == [1]
    store.away = OSError("503: slow down")
    with pytest.raises(StorageError, match="503"):
        control().epochs.add(mjoin(QUERY), "auto")


def test_the_wrong_checkpoint_is_refused(store: MemoryStore) -> None:
    with pytest.raises(CheckpointMismatch, match="was told the checkpoint s3a://bucket/check"):
        control().check_place("q")
    store.objects["bucket/check/metadata"] = (json.dumps({"id": "other"}).encode(), 0)
    with pytest.raises(CheckpointMismatch):
        control().check_place("q")
    store.away = OSError("away")
    control().check_place("q")  # what cannot be read is not judged


def test_a_store_that_refuses_is_named_beforehand(store: MemoryStore) -> None:
    store.away = OSError("AWS Error ACCESS_DENIED during ListObjectsV2")
    with pytest.raises(StorageError, match=r"cannot reach s3a://bucket/check: .*ACCESS_DENIED"):
        control().reach()
