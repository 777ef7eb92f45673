"""Law 3: the same multiset as the oracle for a migration by each strategy at every instant.

Every pair of plans of three and four streams, at the batch boundaries of small, adversarial
histories (few keys, ties, disorder, a stream that lags); sampled pairs of five and six streams;
several migrations one after the other, also asked for while one is under way.
"""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.local.host import LocalRun
from plait.node.durable.store import Engines
from plait.node.epochs import Epoch
from plait.plan.jtree import Node
from plait.plan.migration import ResultOrder, Strategy
from plait.plan.routed import Eddies, Plan, Teddies
from plait.query.query import Query
from plait.spark.arena.engines import Arena, Places
from plait.testing.examples import chain, clique, cycle, star
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait_lab.exhaustive.plans import all_plans, sample_plan
from plait_lab.laws.checks import difference, expected
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, cases, crowds
from plait_lab.laws.strategies.lagging import lagging_history

pytestmark = pytest.mark.slow

Way = tuple[Strategy, ResultOrder]
MOVING: Way = ("moving-state", "any")
PARALLEL: Way = ("parallel-track", "any")
HELD_BACK: Way = ("parallel-track", "timestamp")
SEEDS = st.integers(0, 10**6)
Graph = Callable[[int], Query]


def collect(run: LocalRun, batches: Sequence[Mapping[str, pa.Table]]) -> Counter[Result]:
    found: Counter[Result] = Counter()
    for batch in batches:
        found += multiset(run.push(batch))
    return found


def ended(run: LocalRun) -> Counter[Result]:
    return multiset(pa.Table.from_batches(list(run.finish()), run.query.schema))


def check_pairs(
    history: History, plans: Sequence[Node], ways: Sequence[Way], per_pair: int | None = None
) -> None:
    """From every plan to every other, by each way, at every instant.

    With `per_pair`, each pair is tried at so many of the instants, other pairs at other ones.
    """
    wanted, _ = expected(history)
    assert wanted, "a history without results shows nothing"
    tables = history.tables()
    instants = range(len(tables) + 1)
    finished = 0
    for i, old in enumerate(plans):
        run, before = LocalRun(history.query, old, tuning=history.tuning), Counter[Result]()
        for instant in instants:
            for j, (new, way) in enumerate(product(plans, ways)):
                if per_pair and (i + j * per_pair + instant) % len(instants) >= per_pair:
                    continue
                other = copy.deepcopy(run, {id(run.query): run.query})
                other.migrate(new, way[0], order=way[1])
                found = before + collect(other, tables[instant:]) + ended(other)
                about = f"{old} → {new} by {way} before batch {instant}\n{history!r}"
                assert found == wanted, f"{difference(found, wanted)}\n{about}"
                (migration,) = other.migrations
                finished += way != MOVING and migration.status == "done"
            if instant < len(tables):
                before += multiset(run.push(tables[instant]))
    assert finished or MOVING in ways, "no parallel track came to its end"


@pytest.mark.parametrize("way", [MOVING, PARALLEL, HELD_BACK], ids=" ".join)
@pytest.mark.parametrize("graph", [chain, clique])
def test_oracle_every_pair_of_shapes_of_three_streams(graph: Graph, way: Way) -> None:
    history = lagging_history(graph(3), batches=5, rows=3, seed=1)
    check_pairs(history, list(all_plans(history.query, orders="default")), [way], per_pair=2)


@pytest.mark.slow
@pytest.mark.parametrize("way", [MOVING, PARALLEL, HELD_BACK], ids=" ".join)
@pytest.mark.parametrize("graph", [chain, star, clique])
def test_oracle_every_pair_of_three_streams_at_every_instant(graph: Graph, way: Way) -> None:
    history = lagging_history(graph(3), batches=6, rows=4, seed=2)
    plans = list(all_plans(history.query, orders="all" if graph is not clique else "default"))
    check_pairs(history, plans, [way])


@pytest.mark.slow
@pytest.mark.parametrize("way", [MOVING, PARALLEL], ids=" ".join)
@pytest.mark.parametrize(
    "graph", [chain, *(pytest.param(g, marks=pytest.mark.campaign) for g in (star, cycle, clique))]
)
def test_oracle_every_pair_of_four_streams(graph: Graph, way: Way) -> None:
    history = lagging_history(graph(4), batches=5, rows=3, seed=3)
    plans = list(all_plans(history.query, orders="default"))
    check_pairs(history, plans, [way], per_pair=1 if len(plans) > 15 else 3)


# --- many migrations, at random ------------------------------------------------------------------


def _some_plan(query: Query, random: Random, routers: bool) -> Plan:
    if routers and random.random() < 0.2:
        return random.choice((Eddies(intake=2), Teddies(patience=2, packet_limit=3)))
    return sample_plan(query, random)


def run_at_random(
    history: History, seed: int, *, hash_bits: int = 64, routers: bool = False, often: float = 0.6
) -> LocalRun:
    """Migrations at random instants, several at once and while others are under way."""
    random = Random(seed)
    query = history.query
    wanted, _ = expected(history)
    run = LocalRun(query, sample_plan(query, random), hash_bits=hash_bits, tuning=history.tuning)
    found: Counter[Result] = Counter()
    about = [f"start {run.plan}"]
    running = run.plan
    for number, batch in enumerate(history.tables()):
        while random.random() < often:
            plan = _some_plan(query, random, routers)
            trees = not any(isinstance(p, Teddies | Eddies) for p in (plan, running))
            ways = [MOVING, PARALLEL, PARALLEL, HELD_BACK] if trees else [MOVING]
            strategy, order = random.choice(ways)
            run.migrate(plan, strategy, order=order)
            running = plan
            about.append(f"batch {number}: {strategy} ({order}) to {plan}")
        found += multiset(run.push(batch))
    found += ended(run)
    assert found == wanted, "\n".join([difference(found, wanted), *about, repr(history)])
    assert run.counts.results == wanted.total()
    return run


@settings(max_examples=12)
@given(cases(streams=st.integers(3, 4)), SEEDS, st.sampled_from((64, 0)))
def test_oracle_migrations_at_random(history: History, seed: int, hash_bits: int) -> None:
    run_at_random(history, seed, hash_bits=hash_bits, routers=True)


@pytest.mark.campaign
@settings(max_examples=100)
@given(cases(streams=st.integers(2, 5), late=True), SEEDS, st.sampled_from((64, 0)))
def test_oracle_migrations_at_random_thoroughly(
    history: History, seed: int, hash_bits: int
) -> None:
    run_at_random(history, seed, hash_bits=hash_bits, routers=True)


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(streams=st.integers(5, 6)), SEEDS)
def test_oracle_sampled_pairs_of_five_and_six_streams(history: History, seed: int) -> None:
    run_at_random(history, seed)


@pytest.mark.slow
@settings(max_examples=80)
@given(crowds(streams=st.integers(3, 4), late=True), SEEDS)
def test_oracle_crowds(history: History, seed: int) -> None:
    run_at_random(history, seed, often=0.4)


@pytest.mark.slow
@settings(max_examples=60)
@given(crowds(streams=st.integers(3, 5)), SEEDS)
def test_oracle_crowds_in_slices_with_small_blocks(history: History, seed: int) -> None:
    """The old plan goes in the middle of a batch, and states are compacted all the time."""
    small = replace(history.tuning, slice_rows=1, compact_rows=2)
    run_at_random(replace(history, tuning=small), seed, often=0.4)


@pytest.mark.parametrize("seed", range(3))
def test_oracle_queued_migrations_have_their_turn(seed: int) -> None:
    """A long history, so that several parallel tracks end and queued ones begin."""
    history = lagging_history(clique(3), batches=24, rows=2, seed=seed)
    run = run_at_random(history, seed, often=0.25)
    done = [m for m in run.migrations if m.status == "done"]
    assert len(done) >= 3
    assert any(m.strategy == "parallel-track" and m.end for m in done)


# --- the order of results ------------------------------------------------------------------------


def out_of_order(history: History, old: Node, new: Node, instant: int, order: ResultOrder) -> int:
    """Pairs of results that break lemma 2.1: no timestamp of the earlier one is the smaller.

    Ties count as order. Within a batch outside the migration stage the engine promises nothing.
    """
    run = LocalRun(history.query, old, tuning=history.tuning)
    names = [o.name for o in history.query.select if o.name.endswith("_ts")]
    emitted: list[tuple[int, tuple[int, ...]]] = []
    for number, batch in enumerate(history.tables()):
        if number == instant:
            run.migrate(new, "parallel-track", order=order)
        staged = run.engine.migrating
        table = run.push(batch)
        columns = [table[name].cast(pa.int64()).to_pylist() for name in names]
        emitted += [(-1 if staged else number, stamp) for stamp in zip(*columns, strict=True)]
    return sum(
        all(a > b for a, b in zip(t, later, strict=True))
        for i, (batch, t) in enumerate(emitted)
        for other, later in emitted[i + 1 :]
        if batch == -1 or batch != other
    )


def check_order(graph: Query, seed: int, rows: int) -> None:
    """Streams in order, as the lemma has them; without holding back, the order is lost."""
    history = lagging_history(graph, batches=7, rows=rows, seed=seed, disorder=0)
    plans = list(all_plans(history.query, orders="default"))
    lost = 0
    for old, new in product(plans, plans):
        assert out_of_order(history, old, new, 3, "timestamp") == 0, f"{old} → {new}"
        lost += out_of_order(history, old, new, 3, "any")
    assert lost, "a history in which order is never lost shows nothing"


def test_results_in_timestamp_order() -> None:
    check_order(chain(3), seed=1, rows=4)


@pytest.mark.campaign
@pytest.mark.parametrize("seed", [0, 1, 3])
def test_results_in_timestamp_order_thoroughly(seed: int) -> None:
    check_order(clique(3), seed, rows=4)


# --- crash and recovery --------------------------------------------------------------------------


def check_crashes(
    history: History, processors: int, seed: int, engines: Sequence[Engines] = ()
) -> int:
    """The driver decides on other plans now and then; how many migrations processors made."""
    random = Random(seed)
    query = history.query
    plan = sample_plan(query, random)
    cluster = Cluster(query, plan, processors, engines, tuning=history.tuning)
    found: Counter[Result] = Counter()
    epoch: Epoch | None = None
    begun: set[tuple[int, int]] = set()
    for batch in history.tables():
        if random.random() < 0.5:
            strategy, _ = random.choice((MOVING, PARALLEL))
            number = 1 if epoch is None else epoch.number + 1
            epoch = Epoch(number, sample_plan(cluster.processor.setup.query, random), strategy)
        found += multiset(
            cluster.run(
                batch,
                worker_of=lambda _: random.randrange(2),
                die=lambda _processor, _step: random.random() < 0.2,
                epoch=epoch,
            )
        )
        begun |= {(r.processor, m["start"]) for r in cluster.reports for m in r.migrations}
    on_time, _ = split_late(query, history.batches)
    wanted = oracle(query, on_time)
    assert found == wanted, f"{difference(found, wanted)}\n{history!r}"
    return len(begun)


@settings(max_examples=6)
@given(cases(streams=st.just(3), late=True), st.integers(1, 2), SEEDS)
def test_oracle_crashes_in_the_middle_of_a_migration(
    history: History, processors: int, seed: int
) -> None:
    check_crashes(history, processors, seed)


@pytest.mark.campaign
@settings(max_examples=40)
@given(cases(streams=st.integers(3, 4), late=True), st.integers(1, 3), SEEDS)
def test_oracle_crashes_in_the_middle_of_a_migration_thoroughly(
    history: History, processors: int, seed: int
) -> None:
    check_crashes(history, processors, seed)


@pytest.mark.slow
@settings(max_examples=30)
@given(crowds(streams=st.just(3)), st.integers(1, 2), SEEDS)
def test_oracle_crashes_with_crowded_windows(history: History, processors: int, seed: int) -> None:
    check_crashes(history, processors, seed)


def test_oracle_engines_change_hands_in_the_middle_of_a_migration() -> None:
    """Two workers that share an arena: a parallel track goes from one to the other."""
    begun = 0
    for seed in range(3):
        with tempfile.TemporaryDirectory() as folder:
            places = Places(Path(folder, "memory"), Path(folder, "disk"), smallest=1)
            shared = [Arena("run", places), Arena("run", places)]
            history = lagging_history(clique(3), batches=7, rows=3, seed=seed)
            begun += check_crashes(history, 1, seed, shared)
    assert begun >= 5


@pytest.mark.campaign
@settings(max_examples=15)
@given(crowds(streams=st.just(3)), st.integers(1, 2), SEEDS)
def test_oracle_engines_change_hands_in_the_middle_of_a_migration_thoroughly(
    history: History, processors: int, seed: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder, "memory"), Path(folder, "disk"), limit=1 << 15, smallest=1)
        check_crashes(history, processors, seed, [Arena("run", places), Arena("run", places)])
