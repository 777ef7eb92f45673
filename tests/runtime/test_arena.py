"""Engines are handed over between processes, spill, and leave nothing behind."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from plait.cluster.processor import Live
from plait.engine.engines import make_engine
from plait.engine.ingest import BEFORE_ALL_TIMES
from plait.engine.windows import Windows
from plait.plan.examples import chain
from plait.plan.jtree import parse_shape
from plait.runtime.arena import Arena, Places, sweep

QUERY = chain(3)
PLAN = parse_shape(QUERY, "((a b) c)")


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path / "memory", tmp_path / "disk", smallest=1)


def fresh(arena: Arena, token: str) -> Live:
    windows = Windows(QUERY, {}, memory=arena.memory(0))
    return Live(token, make_engine(QUERY, PLAN, windows=windows), [BEFORE_ALL_TIMES] * 3)


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
    assert room.bytes_in_memory <= 100_000 < room.bytes_on_disk  # type: ignore[attr-defined]
    one.put(0, live)
    other = two.take(0, "first", QUERY)
    assert other is not None
    assert push(other, 1, 3) == 0 and push(other, 2, 1) == 3 * 20_000
    two.drop(0, other)
    assert not [path for path in places.disk.rglob("*") if path.is_file()]


def test_without_any_room_arrays_live_in_the_process(places: Places) -> None:
    arena = Arena("run", Places(places.memory, places.disk, limit=0, smallest=1))
    room = arena.memory(0)
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


def _ended_pid() -> int:
    process = multiprocessing.get_context("spawn").Process(target=int)
    process.start()
    process.join()
    assert process.pid is not None
    return process.pid
