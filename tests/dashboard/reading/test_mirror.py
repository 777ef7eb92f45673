"""A checkpoint in an object store is shown as one in a folder, with few requests."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.dashboard.conftest import RUN
from tests.machine.remote import MemoryStore, in_memory

from plait.cli.query import report
from plait.dashboard.reading import mirror as mirror_module
from plait.dashboard.reading.mirror import Mirror, MirrorWatcher, watch_remote
from plait.dashboard.reading.watcher import watch_checkpoint
from plait.errors import SourceError, StorageError
from plait_lab.workloads.checkpoints import ID

URL, BASE = "s3://bucket/check", "bucket/check"
JOIN = f"{BASE}/plait/join"


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, generated: Path) -> MemoryStore:
    """What the checkpoint would be in a store: no history, and no file to which lines are added."""
    system = in_memory(monkeypatch)
    for path in sorted(generated.rglob("*")):
        name = str(path.relative_to(generated))
        if path.is_file() and not name.endswith((".jsonl", ".json")):
            put(system, f"{BASE}/{name}", path.read_bytes(), path.stat().st_mtime)
    control = generated / "plait" / "join"
    for folder in ("tables", "epochs"):
        for path in (control / folder).glob("*.json"):
            put(system, f"{JOIN}/{folder}/{path.name}", path.read_bytes())
    put(system, f"{JOIN}/question.json", (control / "question.json").read_bytes())
    for path in (control / "reports" / ID).iterdir():
        put_report(system, path.name, path.read_bytes())
    for path in (control / "events").glob("*.jsonl"):
        for line in path.read_text().splitlines():
            at = f"{JOIN}/events/{path.stem}-{json.loads(line)['batch']:08}.jsonl"
            before = system.objects.get(at, (b"", 0))[0]
            put(system, at, before + line.encode() + b"\n")
    put(system, f"{JOIN}/balance/00000024-aa.jsonl", (control / "balance.jsonl").read_bytes())
    return system


def put(store: MemoryStore, path: str, raw: bytes, when: float = 0.0) -> None:
    store.objects[path] = (raw, int(when * 1e9))


def put_report(store: MemoryStore, name: str, raw: bytes) -> None:
    block = int(name.partition("-")[0]) // 64
    put(store, f"{JOIN}/reports/{ID}/{block:08}/{name}", raw)


class Stopwatch:
    """A clock that stands still."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_the_same_is_shown_as_of_a_folder(
    store: MemoryStore, checkpoint: Path, tmp_path: Path
) -> None:
    (checkpoint / "plait" / "join" / "history.jsonl").unlink()
    (local,) = watch_checkpoint(checkpoint)
    mirror = Mirror(URL, tmp_path / "copy")
    (join,) = mirror.joins
    here, there = local.settled(), MirrorWatcher(mirror, join).settled()
    assert (there.question, there.table, there.epoch) == (here.question, here.table, here.epoch)
    assert there.recent == here.recent and there.latest.keys() == {0, 1, 2}
    assert there.estimates == here.estimates
    assert there.history == here.history[-33:] and not there.notes
    assert {d.sort for d in there.decisions} >= {"groups"}


def test_only_what_is_new_is_copied(store: MemoryStore, tmp_path: Path) -> None:
    clock = Stopwatch()
    mirror = Mirror(URL, tmp_path, clock)
    watcher = MirrorWatcher(mirror, "join")
    first = watcher.settled()
    store.requests.clear()
    watcher.refresh()
    assert not store.requests, "it was looked at a moment ago"
    clock.now += 10
    watcher.refresh()
    assert set(store.requests) == {"list"} and store.requests["list"] < 12
    for processor in range(3):
        raw = RUN.report(60, processor).to_json().encode()
        put_report(store, f"60-{processor}.json", raw)
    clock.now += 10
    assert len(watcher.refresh().history) == len(first.history), "the batch has not ended"
    put(store, f"{BASE}/offsets/60", store.objects[f"{BASE}/offsets/59"][0])
    put(store, f"{BASE}/commits/60", b"v1\n{}", 1.0)
    store.requests.clear()
    clock.now += 10
    found = watcher.refresh()
    assert found.history[-1].last == 60 and store.requests["get"] == 1, "where it began"


def test_a_store_that_is_away_is_said_on_the_page(store: MemoryStore, tmp_path: Path) -> None:
    clock = Stopwatch()
    watcher = MirrorWatcher(Mirror(URL, tmp_path, clock), "join")
    before = watcher.settled()
    store.away = OSError("503: slow down")
    clock.now += 10
    found = watcher.refresh()
    assert "s3://bucket/check cannot be read: 503: slow down" in found.notes
    assert found.recent == before.recent, "what was known stays"
    store.away = None
    clock.now += 10
    assert not watcher.refresh().notes


def test_reports_of_long_ago_leave_the_copy(
    store: MemoryStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_module, "_KEPT", 5)
    clock = Stopwatch()
    mirror = Mirror(URL, tmp_path, clock)
    mirror.refresh()
    clock.now += 10
    mirror.refresh()
    left = Counter(int(p.name.partition("-")[0]) for p in tmp_path.glob("plait/join/reports/*/*"))
    assert left == Counter(dict.fromkeys(range(54, 60), 3))


def test_bad_places_are_named(store: MemoryStore, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="s3://bucket/other has no reports of a join"):
        Mirror("s3://bucket/other", tmp_path)
    with pytest.raises(SourceError, match=r"through which plans cannot be asked for; .*migrate"):
        watch_remote(URL, control=True)
    store.away = OSError("ACCESS_DENIED")
    with pytest.raises(StorageError, match=r"cannot reach s3://bucket/check: ACCESS_DENIED"):
        watch_remote(URL)


def test_a_report_of_a_checkpoint_in_a_store(store: MemoryStore, tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    report(URL, out, overwrite=False)
    assert "<svg" in out.read_text()


def test_no_name_of_an_object_leads_out_of_the_copy(store: MemoryStore, tmp_path: Path) -> None:
    put(store, f"{BASE}/plait/../question.json", b"{}")
    put(store, f"{JOIN}/reports/../00000000/59-9.json", b"{}")
    for folder in ("tables", "epochs", "events", "balance"):
        put(store, f"{JOIN}/{folder}/..", b"x\n")
    mirror = Mirror(URL, tmp_path / "far" / "copy")
    assert mirror.joins == ["join"]
    assert not MirrorWatcher(mirror, "join").settled().notes
    copied = {p.relative_to(tmp_path).parts[:3] for p in tmp_path.rglob("*") if p.is_file()}
    assert {parts[:2] for parts in copied} == {("far", "copy")}
    assert {parts[2] for parts in copied} <= {"plait", "commits", "offsets"}
