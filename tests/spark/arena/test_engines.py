"""Engines are handed over between processes, spill, and leave nothing behind."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import pickle
import shutil
import stat
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.windows import Windows
from plait.machine.private import Folder
from plait.node.durable.store import Live
from plait.plan.jtree import parse_shape
from plait.spark.arena.engines import Arena, Places, remove, sweep
from plait.testing.examples import chain

QUERY = chain(3)
PLAN = parse_shape(QUERY, "((a b) c)")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "memory", tmp_path / "disk", smallest=1)


def fresh(arena: Arena, token: str) -> Live:
    windows = Windows(QUERY, {}, memory=arena.memory(0))
    return Live(token, Engine(QUERY, PLAN, windows=windows))


def push(live: Live, stream: int, rows: int) -> int:
    """Add rows with equal keys; how many results they complete."""
    fields = QUERY.streams[stream].fields
    batch = pa.record_batch(
        [pa.array([7] * rows, f.type) for f in fields], [f.name for f in fields]
    )
    arrivals = live.engine.admit(stream, batch, BEFORE_ALL_TIMES).arrivals
    found = live.engine.push({stream: arrivals}, [BEFORE_ALL_TIMES] * 3)
    return sum(results.num_rows for results in found)


def _go_on(places: Places, token: str, answer: Connection) -> None:
    arena = Arena("run", places)
    live = arena.take(0, token, QUERY)
    assert live is not None
    push(live, 1, 100)
    live.token = "second"
    arena.put(0, live)
    answer.send(os.getpid())


@pytest.mark.slow
def test_another_process_goes_on_and_hands_back(places: Places) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "first")
    push(live, 0, 100)
    arena.put(0, live)
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_go_on, args=(places, "first", there)
    )
    process.start()
    assert here.poll(60) and here.recv() == process.pid
    process.join(60)
    back = arena.take(0, "second", QUERY)
    assert back is not None and push(back, 2, 2) == 100 * 100 * 2


def test_a_state_that_nobody_has_sweeps_what_is_there(places: Places) -> None:
    arena = Arena("run", places)
    arena.put(0, fresh(arena, "first"))
    assert arena.take(0, "second", QUERY) is None
    assert not list(places.memory.glob("run/0-*"))


def test_what_was_handed_back_is_complete(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    live = fresh(one, "first")
    push(live, 0, 100)
    one.put(0, live)
    other = two.take(0, "first", QUERY)
    assert other is not None and other is not live
    push(other, 1, 50)
    other.token = "second"
    two.put(0, other)
    again = one.take(0, "second", QUERY)
    assert again is not None and push(again, 2, 2) == 100 * 50 * 2


def test_the_same_process_needs_no_loading(places: Places) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "first")
    arena.put(0, live)
    assert arena.take(0, "first", QUERY) is live


def test_an_engine_in_use_is_nobody_elses(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    one.put(0, fresh(one, "first"))
    live = one.take(0, "first", QUERY)
    assert live is not None
    assert two.take(0, "first", QUERY) is None
    one.drop(0, live)
    assert two.take(0, "first", QUERY) is None, "it was left half-way"
    assert not list(places.memory.glob("run/0-*"))


def test_an_engine_dropped_late_does_not_hurt_its_successor(places: Places) -> None:
    arena = Arena("run", places)
    old = fresh(arena, "first")
    new = fresh(arena, "second")
    arena.drop(0, old)
    push(new, 0, 1000)
    arena.put(0, new)
    assert arena.take(0, "second", QUERY) is new


def test_growing_frees_what_it_outgrew(places: Places) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "first")
    for _ in range(20):
        push(live, 0, 500)
    (room,) = places.memory.glob("run/0-*")
    files = sum(path.stat().st_size for path in room.iterdir())
    assert files < 2 * live.engine.nbytes
    arena.put(0, live)


def test_beyond_the_limit_arrays_spill_to_disk(tmp_path: Path) -> None:
    places = Places(tmp_path / "memory", tmp_path / "disk", limit=100_000, smallest=1)
    one, two = Arena("run", places), Arena("run", places)
    live = fresh(one, "first")
    push(live, 0, 20_000)
    room = live.engine.windows.memory
    assert room.bytes_in_memory <= 100_000 < room.bytes_on_disk  # type: ignore[attr-defined]  # a Room
    one.put(0, live)
    other = two.take(0, "first", QUERY)
    assert other is not None
    assert push(other, 1, 3) == 0 and push(other, 2, 1) == 3 * 20_000
    two.drop(0, other)
    assert not [path for path in places.disk.rglob("*") if path.is_file()]


def test_without_any_room_arrays_live_in_the_process(places: Places) -> None:
    arena = Arena("run", Places(places.memory, places.disk, limit=0, smallest=1))
    room = arena.memory(0)
    places.disk.mkdir(mode=0o700)
    places.disk.joinpath("run").write_text("in the way of the folder")
    array = room.empty((1000,), np.int64)
    array.fill(1)
    assert array.base is None, "a plain numpy array"


def test_runs_without_owners_are_swept(places: Places) -> None:
    arena = Arena("old", places)
    arena.put(0, fresh(arena, "first"))
    home = places.memory / "old"
    sweep(places, "new")
    assert home.exists(), "its owner lives"
    for owner in home.glob("owner-*"):
        owner.unlink()
    (home / f"owner-{_ended_pid()}").touch()
    sweep(places, "new")
    assert not home.exists()


# -- somebody else's names


def victim_of(path: Path) -> Path:
    """A folder with something precious in it, to which a link was planted at a path."""
    victim = path.parent / f"{path.name}-victim"
    home = victim / "project"
    home.mkdir(parents=True)
    (home / "precious").write_text("")
    (home / f"owner-{_ended_pid()}").touch()
    path.symlink_to(victim)
    return home / "precious"


def test_a_planted_link_is_not_followed_and_nothing_behind_it_is_swept(places: Places) -> None:
    precious = [victim_of(places.memory), victim_of(places.disk)]
    limited = Places(places.memory, places.disk, limit=0, smallest=1)
    one, two = Arena("run", limited), Arena("run", limited)
    live = fresh(one, "first")
    push(live, 0, 1000)
    assert live.engine.windows.memory.bytes_on_disk  # type: ignore[attr-defined]  # a Room
    one.put(0, live)
    sweep(limited, "another")
    remove(limited, "pro")
    assert all(path.exists() for path in precious)
    assert all(len(list(path.parent.parent.iterdir())) == 1 for path in precious), "nothing of ours"
    assert two.take(0, "first", QUERY) is not None, "workers meet beside the planted name"
    remove(limited, "run")
    for path in (limited.memory, limited.disk):
        (beside,) = path.parent.glob(f"{path.name}.*")
        assert stat.S_IMODE(beside.stat().st_mode) == 0o700
        assert not list(beside.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give folders away")
def test_folders_of_somebody_else_are_not_used(places: Places) -> None:
    for path in (places.memory, places.disk):
        path.mkdir()
        path.chmod(0o777)
        os.chown(path, 65_534, 65_534)
    arena = Arena("run", Places(places.memory, places.disk, limit=0, smallest=1))
    live = fresh(arena, "first")
    push(live, 0, 1000)
    arena.put(0, live)
    assert arena.take(0, "first", QUERY) is live
    assert not list(places.memory.iterdir()) and not list(places.disk.iterdir())


def test_everything_is_private_whatever_the_umask(tmp_path: Path) -> None:
    places = Places(tmp_path / "memory", tmp_path / "disk", limit=100_000, smallest=1)
    before = os.umask(0)
    try:
        arena = Arena("run", places)
        live = fresh(arena, "first")
        push(live, 0, 20_000)
        arena.put(0, live)
    finally:
        os.umask(before)
    found = list(tmp_path.rglob("*"))
    assert len(found) > 10 and list(places.disk.rglob("*"))
    for path in found:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize("run", ["", "..", "../x", "a/b"])
def test_a_run_is_no_path(places: Places, run: str) -> None:
    with pytest.raises(ValueError, match="no plain file name"):
        Arena(run, places)
    with pytest.raises(ValueError, match="no plain file name"):
        remove(places, run)


def test_a_token_is_no_path(places: Places) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "../../../x")
    arena.put(0, live)
    assert arena.take(0, "../../../x", QUERY) is live
    assert not list(places.memory.parent.glob("x*"))


# -- a cache: whatever happens to it, the engine is rebuilt


def test_folders_that_are_deleted_while_it_runs_are_made_again(places: Places) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "first")
    push(live, 0, 100)
    shutil.rmtree(places.memory)
    push(live, 0, 10_000), push(live, 1, 10)
    assert push(live, 2, 1) == 10_100 * 10, "an engine in use does not need them"
    arena.put(0, live)
    assert arena.take(0, "first", QUERY) is None
    again = fresh(arena, "second")
    arena.put(0, again)
    other = Arena("run", places).take(0, "second", QUERY)
    assert other is not None, "and is shared as before"


def test_folders_that_are_deleted_between_batches(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    one.put(0, fresh(one, "first"))
    shutil.rmtree(places.memory / "run")
    assert two.take(0, "first", QUERY) is None
    assert one.take(0, "first", QUERY) is None
    one.put(0, fresh(one, "second"))
    shutil.rmtree(places.memory)
    assert two.take(0, "second", QUERY) is None
    two.put(0, fresh(two, "third"))
    assert one.take(0, "third", QUERY) is not None


def test_without_any_folder_engines_stay_in_the_process(tmp_path: Path) -> None:
    places = Places(tmp_path / "missing/memory", tmp_path / "missing/disk", smallest=1)
    arena = Arena("run", places)
    live = fresh(arena, "first")
    push(live, 0, 1000)
    arena.put(0, live)
    assert arena.take(0, "first", QUERY) is live
    arena.put(0, live)
    assert arena.take(0, "second", QUERY) is None
    assert sum(arena.refused.values())


Damage = Callable[[Path], object]


def _write(data: bytes) -> Damage:
    return lambda path: path.write_bytes(data)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _touch_nothing(path: Path) -> None:
    """Exchanged by a copy with the same bytes, and the same time of modification."""
    shutil.copy2(path, path.with_name("copy"))
    path.with_name("copy").rename(path)


def _link(path: Path) -> None:
    moved = path.with_name("moved")
    path.rename(moved)
    path.symlink_to(moved)


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link_to_zeros(path: Path) -> None:
    path.unlink()
    path.symlink_to("/dev/zero")


def _second_name(path: Path) -> None:
    path.with_name("second").hardlink_to(path)


class _Harm:
    """What a pickle of somebody else could do."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return os.mkdir, ("harm",)


MANIFESTS: dict[str, Damage] = {
    "emptied": _write(b""),
    "cut": _cut,
    "flipped": _flip,
    "foreign": _write(b"plait-engine 1\n2 {}" + bytes(20)),
    "deep": _write(b"plait-engine 1\n200000 " + b"[" * 200_000),
    "a pickle": _write(pickle.dumps(_Harm())),
    "a folder": _folder,
    "a link": _link_to_zeros,
    "deleted": Path.unlink,
}
ARRAYS: dict[str, Damage] = {
    "emptied": _write(b""),
    "cut": _cut,
    "grown": lambda path: os.truncate(path, path.stat().st_size + 8),
    "flipped": _flip,
    "a link": _link,
    "shared": _second_name,
    "deleted": Path.unlink,
}


def published(arena: Arena, places: Places, rows: int = 1000) -> tuple[Path, list[Path]]:
    """An engine in the arena: its manifest and the files of its arrays."""
    live = fresh(arena, "first")
    push(live, 0, rows), push(live, 1, 1)
    arena.put(0, live)
    (manifest,) = places.memory.glob("run/0-*/engine-*")
    others = {manifest.name, "lock"}
    return manifest, [path for path in manifest.parent.iterdir() if path.name not in others]


@pytest.mark.slow
@pytest.mark.parametrize("same_process", [False, True])
@pytest.mark.parametrize("damage", MANIFESTS)
def test_a_damaged_manifest_is_no_manifest(
    places: Places, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str, same_process: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    one, two = Arena("run", places), Arena("run", places)
    manifest, _ = published(one, places)
    MANIFESTS[damage](manifest)
    other = two.take(0, "first", QUERY)
    assert other is None and not (tmp_path / "harm").exists()
    arena = one if same_process else two
    assert arena.take(0, "first", QUERY) is None, "the room is gone"
    arena.put(0, fresh(arena, "second"))
    assert two.take(0, "second", QUERY) is not None


@pytest.mark.parametrize("same_process", [False, True])
@pytest.mark.parametrize("damage", ARRAYS)
def test_a_damaged_array_is_never_mapped(places: Places, damage: str, same_process: bool) -> None:
    one, two = Arena("run", places), Arena("run", places)
    _, arrays = published(one, places)
    assert len(arrays) > 10
    ARRAYS[damage](arrays[len(arrays) // 2])
    arena = one if same_process else two
    found = arena.take(0, "first", QUERY)
    if damage == "shared" and same_process:
        assert found is not None, "its own mapping is not affected"
        return
    assert found is None and sum(arena.refused.values()) == 1
    assert not list(places.memory.glob("run/0-*"))


def test_arrays_that_changed_places_are_noticed(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    _, arrays = published(one, places)
    sizes: dict[int, Path] = {}
    for path in arrays:
        if (twin := sizes.setdefault(path.stat().st_size, path)) != path:
            break
    path.rename(path.with_name("meanwhile"))
    twin.rename(path)
    path.with_name("meanwhile").rename(twin)
    assert two.take(0, "first", QUERY) is None
    assert two.refused == {"Unusable: an array that somebody has changed": 1}


def test_an_exchanged_file_is_not_published(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    _, arrays = published(one, places)
    live = one.take(0, "first", QUERY)
    assert live is not None
    _touch_nothing(arrays[0])
    live.token = "second"
    one.put(0, live)
    assert two.take(0, "second", QUERY) is None
    assert sum(one.refused.values()) == 1


@pytest.mark.parametrize("what", ["code", "numpy", "byteorder", "query", "number", "token"])
def test_a_manifest_for_something_else_is_not_used(
    places: Places, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    from plait.spark.arena.manifest import Subject

    one, two = Arena("run", places), Arena("run", places)
    right = Subject.to_dict
    monkeypatch.setattr(Subject, "to_dict", lambda self: {**right(self), what: "another"})
    published(one, places)
    monkeypatch.setattr(Subject, "to_dict", right)
    assert two.take(0, "first", QUERY) is None
    assert two.refused == {"Unusable: a manifest for something else": 1}


def test_an_engine_of_another_query_is_not_used(places: Places) -> None:
    one, two = Arena("run", places), Arena("run", places)
    published(one, places)
    assert two.take(0, "first", chain(4)) is None
    assert two.refused == {"Unusable: a manifest for something else": 1}


def test_a_manifest_names_no_code(places: Places) -> None:
    arena = Arena("run", places)
    manifest, _ = published(arena, places)
    head, _, rest = manifest.read_bytes().partition(b"\n")
    length, _, body = rest.partition(b" ")
    content = json.loads(body[: int(length)])
    assert head == b"plait-engine 1" and content.keys() == {"for", "state", "arrays"}
    assert b"plait." not in rest and b"numpy." not in rest


# -- without room


def _full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_full_disk_costs_a_rebuild_and_no_more(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    arena = Arena("run", places)
    live = fresh(arena, "first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", _full)
        push(live, 0, 10_000)
        assert push(live, 1, 1) == 0 and push(live, 2, 1) == 10_000, "in the process instead"
        patch.setattr(Folder, "write", _full)
        arena.put(0, live)
    assert arena.take(0, "first", QUERY) is None
    assert arena.refused == {"OSError: No space left on device": 1}
    assert not list(places.memory.glob("run/0-*"))


def test_arrays_for_which_there_was_no_file_are_handed_over_by_value(
    places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = Arena("run", places), Arena("run", places)
    live = fresh(one, "first")
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", _full)
        push(live, 0, 10_000)
    one.put(0, live)
    other = two.take(0, "first", QUERY)
    assert other is not None
    assert push(other, 1, 1) == 0 and push(other, 2, 1) == 10_000


def test_the_bytes_of_a_file_are_there_before_it_is_mapped(places: Places) -> None:
    arena = Arena("run", places)
    room = arena.memory(0)
    room.empty((1 << 20,), np.int64)
    (path,) = [p for p in places.memory.glob("run/0-*/*") if p.name != "lock"]
    assert path.stat().st_blocks * 512 >= path.stat().st_size == 8 << 20


# -- sweeping


def test_stray_files_do_not_stop_sweeping(places: Places) -> None:
    arena = Arena("old", places)
    arena.put(0, fresh(arena, "first"))
    home = places.memory / "old"
    for owner in home.glob("owner-*"):
        owner.unlink()
    (places.memory / "file").write_text("")
    (places.memory / "loose").mkdir()
    (places.memory / "loose").chmod(0o777)
    (home / "owner-nobody").touch()
    sweep(places, "new")
    assert home.exists(), "an owner that cannot be asked"
    (home / "owner-nobody").unlink()
    (home / f"owner-{2**70}").touch()
    sweep(places, "new")
    assert not home.exists()
    assert (places.memory / "loose").exists(), "others may have written to it"


def test_a_run_in_another_container_is_not_swept_before_it_is_old(places: Places) -> None:
    home = places.memory / "theirs"
    home.mkdir(parents=True)
    home.chmod(0o700)
    places.memory.chmod(0o700)
    owner = home / f"owner-{_ended_pid()}-12345"
    owner.touch()
    sweep(places, "new")
    assert home.exists(), "its processes have other numbers here"
    long_ago = time.time() - 2 * places.unused_seconds
    for path in (owner, home):
        os.utime(path, (long_ago, long_ago))
    sweep(places, "new")
    assert not home.exists()


def test_what_was_spilled_goes_when_shared_memory_was_emptied(places: Places) -> None:
    limited = Places(places.memory, places.disk, limit=0, smallest=1, unused_seconds=-1)
    arena = Arena("old", limited)
    live = fresh(arena, "first")
    push(live, 0, 1000)
    arena.put(0, live)
    shutil.rmtree(places.memory)
    assert [path for path in places.disk.rglob("*") if path.is_file()]
    sweep(places, "new")
    assert [path for path in places.disk.rglob("*") if path.is_file()], "it is still young"
    sweep(limited, "new")
    assert not [path for path in places.disk.rglob("*") if path.is_file()]


def _ended_pid() -> int:
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    process.join()
    assert process.pid is not None
    return process.pid
