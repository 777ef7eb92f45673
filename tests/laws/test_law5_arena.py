"""Law 5 against an enemy of the cache: whatever happens to the arena, the results are the same."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.adapt.policy import Policy
from plait.cluster.epochs import Epoch
from plait.cluster.processor import Live
from plait.engine.saved import engine_from_state, engine_to_state
from plait.kernels.jit import Array
from plait.kernels.memory import HEAP, Memory
from plait.plan.enumerate import sample_plan
from plait.plan.jtree import Join, Leaf
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query
from plait.runtime.arena import Arena, Places
from plait.runtime.manifest import Subject, decode, encode, query_digest
from plait.testing.histories import History, cases, crowds
from plait.testing.laws import difference
from plait.testing.oracle import Result, multiset, oracle, split_late
from plait.testing.processors import Cluster

LOOSE = Policy(confidence=0.0, margin=0.0, least=0.0, payback=0.0, confirm=1, drift=0.0)
"""Goes over to another plan at the least occasion."""


def any_plan(query: Query, chance: random.Random) -> Plan:
    routers = [
        kind(policy=policy)
        for kind in (Teddies, Eddies)
        for policy in ("ordered", "lottery", "random")
    ]
    return chance.choice((sample_plan(query, chance), chance.choice(routers)))


def any_epoch(query: Query, number: int, running: Plan, chance: random.Random) -> Epoch:
    strategies = ["moving-state"]
    if isinstance(running, Join | Leaf):
        strategies += ["parallel-track", "auto"]
    strategy = chance.choice(strategies)
    return Epoch(number, sample_plan(query, chance), strategy)  # type: ignore[arg-type]  # one of them


@dataclass
class WrittenEngines:
    """Engines that are nothing but bytes between two batches."""

    written: dict[int, tuple[str, bytes]] = field(default_factory=dict)

    def take(self, number: int, token: str, query: Query) -> Live | None:
        known, raw = self.written.pop(number, ("", b""))
        if known != token:
            return None
        state = decode(raw, Subject(query_digest(query), number, token), _no_file)
        engine = engine_from_state(query, state["engine"])
        live = Live(token, engine, state["newest"])
        live.segments.extend((n, stream, t) for n, stream, t in state["segments"])
        return live

    def memory(self, number: int) -> Memory:
        return HEAP

    def put(self, number: int, live: Live) -> None:
        state = {
            "newest": live.newest,
            "segments": list(live.segments),
            "engine": engine_to_state(live.engine),
        }
        subject = Subject(query_digest(live.engine.query), number, live.token)
        self.written[number] = live.token, b"".join(encode(subject, state, lambda _: None))

    def drop(self, number: int, live: Live) -> None:
        pass


def _no_file(*_: object) -> Array:
    raise AssertionError("everything is in the manifest")


@settings(max_examples=60)
@given(cases(late=True) | crowds(late=True), st.integers(1, 3), st.integers(0, 2**32))
def test_oracle_engines_that_are_written_and_read_after_every_batch(
    history: History, processors: int, seed: int
) -> None:
    chance = random.Random(seed)
    query, engines = history.query, WrittenEngines()
    plan = any_plan(query, chance)
    adapt = LOOSE if isinstance(plan, Join | Leaf) and chance.random() < 0.3 else None
    cluster = Cluster(query, plan, processors, [engines], adapt=adapt)
    found: Counter[Result] = Counter()
    epoch = None
    for number, batch in enumerate(history.tables()):
        if adapt is None and chance.random() < 0.4:
            epoch = any_epoch(cluster.processor.query, number + 1, plan, chance)
            plan = epoch.plan or plan
        found += multiset(cluster.run(batch, epoch=epoch))
        assert not any(report.rebuilt for report in cluster.reports), "every engine is kept"
        assert len(engines.written) == len(cluster.stores)
    answer = oracle(query, split_late(query, history.batches)[0])
    assert found == answer, f"{difference(found, answer)}\n{plan}\n{history!r}"


# -- an enemy with the same rights as ourselves


class Vandal:
    """Does harm to the files below a folder, of which nobody is in use."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self._folder = folder
        self._chance = chance
        self.done: Counter[str] = Counter()

    def strike(self) -> None:
        """Harm one file, or a whole folder."""
        files = [path for path in self._folder.rglob("*") if path.is_file()]
        deeds: list[Callable[[Path], object]] = [
            self.truncate, self.empty, self.flip, self.delete, self.duplicate, self.exchange,
            self.link, self.scatter, self.delete_folder,
        ]  # fmt: skip
        if files:
            # Manifests are few among many arrays.
            manifests = [path for path in files if path.name.startswith("engine-")]
            victim = self._chance.choice(self._chance.choice((manifests or files, files)))
            deed = self._chance.choice(deeds)
            deed(victim)
            self.done[deed.__name__] += 1

    def _other(self, path: Path) -> Path:
        return self._chance.choice([p for p in self._folder.rglob("*") if p.is_file()] or [path])

    def truncate(self, path: Path) -> None:
        os.truncate(path, self._chance.randrange(path.stat().st_size + 1))

    def empty(self, path: Path) -> None:
        path.write_bytes(b"")

    def flip(self, path: Path) -> None:
        with path.open("r+b") as file:
            size = path.stat().st_size
            for _ in range(self._chance.choice((1, 1, 8)) if size else 0):
                at = self._chance.randrange(size)
                file.seek(at)
                byte = file.read(1)[0]
                file.seek(at)
                file.write(bytes([byte ^ 1 << self._chance.randrange(8)]))

    def delete(self, path: Path) -> None:
        path.unlink()

    def duplicate(self, path: Path) -> None:
        copy = shutil.copy if self._chance.random() < 0.5 else shutil.copy2
        other = self._other(path)
        if other != path:
            other.unlink()
            copy(path, other)

    def exchange(self, path: Path) -> None:
        other = self._other(path)
        meanwhile = path.with_name("meanwhile")
        path.rename(meanwhile)
        if other != path:
            other.rename(path)
            meanwhile.rename(other)

    def link(self, path: Path) -> None:
        other = self._other(path)
        if other != path:
            path.unlink()
            path.symlink_to(other)

    def scatter(self, path: Path) -> None:
        path.with_name(self._chance.choice(("engine-x", "new", "owner-x", "x"))).write_bytes(b"x")
        (path.parent.parent / "0-x").mkdir(exist_ok=True)

    def delete_folder(self, path: Path) -> None:
        parents = [p for p in path.parents if self._folder in (p, *p.parents)]
        shutil.rmtree(self._chance.choice(parents), ignore_errors=True)


def _assert_unharmed(histories: list[History], seed: int) -> None:
    """Queries that run in turns in the same folders, with a vandal between their batches."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder, "memory"), Path(folder, "disk"), limit=1 << 15, smallest=1)
        vandal = Vandal(Path(folder), chance)
        queries = []
        for number, history in enumerate(histories):
            workers = [Arena(f"run{number}", places) for _ in range(2)]
            plan = any_plan(history.query, chance)
            cluster = Cluster(history.query, plan, chance.choice((1, 2)), workers)
            queries.append((history, cluster, Counter[Result]()))

        def dies(_processor: int, _step: int) -> bool:
            if chance.random() < 0.1:
                # While an engine is in use only names can go: what is mapped stays.
                shutil.rmtree(chance.choice((places.memory, places.disk)), ignore_errors=True)
            return chance.random() < 0.1

        for number in range(max(len(history.batches) for history in histories)):
            for history, cluster, found in queries:
                if number >= len(history.batches):
                    continue
                results = cluster.run(
                    history.tables()[number], worker_of=lambda _: chance.randrange(2), die=dies
                )
                found.update(multiset(results))
                if chance.random() < 0.7:
                    vandal.strike()
        for history, cluster, found in queries:
            answer = oracle(history.query, split_late(history.query, history.batches)[0])
            assert found == answer, (
                f"{difference(found, answer)}\n{vandal.done}\n{cluster.processor.plan}\n{history!r}"
            )


@settings(max_examples=40)
@given(st.lists(cases(late=True), min_size=1, max_size=2), st.integers(0, 2**32))
def test_oracle_a_vandal_in_the_arena(histories: list[History], seed: int) -> None:
    _assert_unharmed(histories, seed)


@pytest.mark.slow
@settings(max_examples=40)
@given(st.lists(crowds(late=True), min_size=1, max_size=2), st.integers(0, 2**32))
def test_oracle_a_vandal_in_crowded_windows(histories: list[History], seed: int) -> None:
    _assert_unharmed(histories, seed)
