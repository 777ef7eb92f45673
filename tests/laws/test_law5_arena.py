"""Law 5 against an enemy of the cache: whatever happens to the arena, the results are the same."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.adapt.policy import PlanPolicy
from plait.engine.saved import engine_from_state, engine_to_state
from plait.kernels.jit import Array
from plait.kernels.memory import HEAP, Memory
from plait.node.durable.store import Live
from plait.node.epochs import Epoch
from plait.plan.jtree import Join, Leaf
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Query, Stream, make_query
from plait.spark.arena.engines import Arena, Places
from plait.spark.arena.manifest import Subject, decode, encode, query_digest
from plait.testing.examples import SECOND
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, cases, crowds
from plait_lab.laws.strategies.tunings import drawn_tuning

pytestmark = pytest.mark.slow

LOOSE = PlanPolicy(confidence=0.0, margin=0.0, least=0.0, payback=0.0, confirm=1, drift=0.0)
"""Goes over to another plan at the least occasion."""


@cache
def long_history(which: str) -> History:
    """Many batches, so that there is much to lose: keys come and go, windows are never empty.

    The rich one has interned keys of two kinds, and payload of every kind of column, with nulls.
    """
    chance = random.Random(which)
    rich = which == "rich"
    key, other = (pa.string(), pa.decimal128(9, 2)) if rich else (pa.int64(), pa.int32())
    payload = {"s": pa.string(), "b": pa.binary(2), "f": pa.bool_()} if rich else {}
    time = Field("ts", pa.timestamp("us"))
    types = [{"k": key}, {"k": key, "d": other}, {"d": other}]
    streams = [
        Stream(name, (time, *(Field(n, t) for n, t in {**keys, **payload}.items())), "ts", SECOND)
        for name, keys in zip("abc", types, strict=True)
    ]
    joined = [
        Call("eq", (Column("a", "k"), Column("b", "k"))),
        Call("eq", (Column("b", "d"), Column("c", "d"))),
    ]
    query = make_query(streams, joined, global_window(3, 8 * SECOND))

    def value(name: str, number: int) -> object:
        now = number // 3 + chance.randrange(2)
        values: dict[str, object] = {
            "k": f"key {now} {'x' * (now % 5)}" if rich else now,
            "d": Decimal(now) / 4 if rich else now,
            "s": chance.choice((None, "", f"{name} {number}", "é" * number)),
            "b": chance.choice((None, b"ab", bytes([number, 0]))),
            "f": chance.choice((None, False, True)),
        }
        return values[name]

    def row(stream: Stream, number: int) -> dict[str, object]:
        instant = number * SECOND - chance.randrange(2 * SECOND)
        names = [f.name for f in stream.fields[1:]]
        return {"ts": instant, **{name: value(name, number) for name in names}}

    batches = [
        {s.name: [row(s, n) for n in range(3 * b, 3 * b + chance.randrange(5))] for s in streams}
        for b in range(16)
    ]
    return History(query, tuple(batches))


@cache
def _expected(which: str) -> Counter[Result]:
    history = long_history(which)
    return oracle(history.query, split_late(history.query, history.batches)[0])


def expected(history: History) -> Counter[Result]:
    """By definition; that of a long history is computed once."""
    for which in ("rich", "plain"):
        if history is long_history(which):
            return _expected(which)
    return oracle(history.query, split_late(history.query, history.batches)[0])


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
        live = Live(token, engine)
        live.segments.extend((n, stream, t) for n, stream, t in state["segments"])
        return live

    def memory(self, number: int) -> Memory:
        return HEAP

    def put(self, number: int, live: Live) -> None:
        state = {
            "segments": list(live.segments),
            "engine": engine_to_state(live.engine),
        }
        subject = Subject(query_digest(live.engine.query), number, live.token)
        self.written[number] = live.token, b"".join(encode(subject, state, lambda _: None))

    def drop(self, number: int, live: Live) -> None:
        pass


def _no_file(*_: object) -> Array:
    raise AssertionError("everything is in the manifest")


def _assert_kept(history: History, processors: int, seed: int) -> None:
    chance = random.Random(seed)
    query, engines = history.query, WrittenEngines()
    plan = any_plan(query, chance)
    adapt = LOOSE if isinstance(plan, Join | Leaf) and chance.random() < 0.3 else None
    tuning = drawn_tuning(chance)
    cluster = Cluster(query, plan, processors, [engines], adapt=adapt, tuning=tuning)
    found: Counter[Result] = Counter()
    epoch = None
    for number, batch in enumerate(history.tables()):
        if adapt is None and chance.random() < 0.4:
            epoch = any_epoch(cluster.processor.setup.query, number + 1, plan, chance)
            plan = epoch.plan or plan
        found += multiset(cluster.run(batch, epoch=epoch))
        assert not any(report.rebuilt for report in cluster.reports), "every engine is kept"
        assert len(engines.written) == sum(store.header is not None for store in cluster.stores)
    answer = expected(history)
    assert found == answer, f"{difference(found, answer)}\n{plan}\n{history!r}"


@settings(max_examples=60)
@given(cases(late=True) | crowds(late=True), st.integers(1, 3), st.integers(0, 2**32))
def test_oracle_engines_that_are_written_and_read_after_every_batch(
    history: History, processors: int, seed: int
) -> None:
    _assert_kept(history, processors, seed)


@pytest.mark.slow
@settings(max_examples=20)
@given(st.sampled_from(("rich", "plain")), st.integers(1, 2), st.integers(0, 2**32))
def test_oracle_engines_of_every_kind_of_column(which: str, processors: int, seed: int) -> None:
    _assert_kept(long_history(which), processors, seed)


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
            tuning = drawn_tuning(chance)
            cluster = Cluster(history.query, plan, chance.choice((1, 2)), workers, tuning=tuning)
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
            answer = expected(history)
            plan = cluster.processor.setup.plan
            assert found == answer, (
                f"{difference(found, answer)}\n{vandal.done}\n{plan}\n{history!r}"
            )


@settings(max_examples=40)
@given(st.lists(cases(late=True), min_size=1, max_size=2), st.integers(0, 2**32))
def test_oracle_a_vandal_in_the_arena(histories: list[History], seed: int) -> None:
    _assert_unharmed(histories, seed)


@pytest.mark.campaign
@settings(max_examples=12)
@given(st.integers(0, 2**32))
def test_oracle_a_vandal_among_queries_of_many_batches(seed: int) -> None:
    _assert_unharmed([long_history("rich"), long_history("plain")], seed)
