"""Law 3 where plans differ in inner boxes only: what is outside of them runs on, shared.

Parallel tracks (and moving state) between plans of four to seven streams with one box or several,
below each other and beside each other, with streams or combinations as inputs: at every instant,
one after the other, with crashes, and with engines that are written down after every batch.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.driver import Engine
from plait.engine.saved import engine_from_state, engine_to_state
from plait.local.host import LocalRun
from plait.node.epochs import Epoch
from plait.plan.boxes import boxes
from plait.plan.jtree import Join, Leaf, Node, check_plan, joined, joins, parse_shape
from plait.plan.migration import ResultOrder, Strategy
from plait.plan.steps import stream_set
from plait.query.query import Query
from plait.testing.examples import chain, clique
from plait.testing.oracle.answer import Result, multiset, oracle, split_late
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference, expected
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.histories import History, cases, crowds
from plait_lab.laws.strategies.lagging import lagging_history

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 10**6)
WAYS: list[tuple[Strategy, ResultOrder]] = [
    ("parallel-track", "any"),
    ("parallel-track", "timestamp"),
    ("moving-state", "any"),
]
PAIRS = {
    "one box of streams": ("(((a b) c) d)", "((a (b c)) d)"),
    "a combination as an input": ("((((a b) c) d) e)", "(((a b) (c d)) e)"),
    "at the root, with a combination": ("(((a b) c) d)", "((a b) (c d))"),
    "below a join of three": ("((a b) c (d e f))", "((a b) c ((d e) f))"),
    "beside each other": ("(((a b) c) ((d e) f))", "((a (b c)) (d (e f)))"),
    "below each other": ("(((((a b) c) d) e) f)", "(((a (b c)) d) (e f))"),
    "the same, written otherwise": ("(((a b) c) d)", "(d (c (a b)))"),
    "a box, and children swapped": ("((((a b) c) d) e)", "(e (d (a (b c))))"),
}


# --- plans that differ inside --------------------------------------------------------------------


def reshaped(query: Query, nodes: list[Node], random: Random) -> Join:
    """Some tree of joins with these inputs."""
    while len(nodes) > 2 and random.random() < 0.8:
        sets = {node: stream_set(query, node) for node in nodes}
        linked = [
            (x, y) for x in nodes for y in nodes if x != y and query.graph.shared(sets[x], sets[y])
        ]
        x, y = random.choice(linked)
        nodes = [node for node in nodes if node not in (x, y)] + [joined(query, [x, y])]
    return joined(query, nodes)


def changed_inside(query: Query, plan: Node, random: Random) -> Node:
    """A plan that differs from another one in a box, with some children written otherwise."""
    assert isinstance(plan, Join)
    inner = [join for join in joins(plan) if len(join.streams) > 2]
    chosen = random.choice(inner)

    def inputs(node: Node, depth: int) -> list[Node]:
        if isinstance(node, Leaf) or (depth and random.random() < 0.5):
            return [node]
        return [found for child in node.children for found in inputs(child, depth + 1)]

    def rebuilt(node: Node) -> Node:
        if node == chosen:
            return reshaped(query, inputs(node, 0), random)
        if isinstance(node, Leaf):
            return node
        join = Join(tuple(rebuilt(child) for child in node.children), node.orders)
        if random.random() < 0.3:
            last = len(join.children) - 1
            orders = [tuple(last - k for k in order) for order in reversed(join.orders)]
            join = Join(join.children[::-1], tuple(orders))
        return join

    found = rebuilt(plan)
    check_plan(query, found)
    return found


def boxed_plans(query: Query, random: Random, count: int) -> list[Node]:
    """Plans, each of which differs from the one before it in a box."""
    plans = [sample_plan(query, random)]
    while len(plans) < count:
        plans.append(changed_inside(query, plans[-1], random))
    return plans


def test_plans_that_differ_inside_do() -> None:
    """The generator meets what it is for."""
    random, kinds = Random(1), Counter[str]()
    query = clique(6)
    for old, new in pairwise(boxed_plans(query, random, 300)):
        found = boxes(query, old, new)
        whole = any(len(box.streams) == 6 for box in found)
        kinds["at the root" if whole else "inside"] += bool(found)
        kinds["with a combination"] += any(len(s) > 1 for box in found for s in box.inputs)
        kinds["none"] += not found
    assert min(kinds[k] for k in ("at the root", "inside", "with a combination")) > 30


# --- at every instant ----------------------------------------------------------------------------


@pytest.mark.parametrize("way", WAYS, ids=" ".join)
@pytest.mark.parametrize("which", PAIRS)
def test_oracle_every_instant(which: str, way: tuple[Strategy, ResultOrder]) -> None:
    shapes = PAIRS[which]
    size = len(set(shapes[0]) & set("abcdef"))
    history = lagging_history(clique(size), batches=6, rows=3, seed=size, keys=2)
    query = history.query
    old, new = (parse_shape(query, shape) for shape in shapes)
    wanted, _ = expected(history)
    assert wanted
    tables = history.tables()
    ended = 0
    for instant in range(len(tables) + 1):
        run, found = LocalRun(query, old, tuning=history.tuning), Counter[Result]()
        for number, batch in enumerate(tables):
            if number == instant:
                record = run.migrate(new, way[0], order=way[1])
                assert record.boxes == boxes(query, old, new)
            found += multiset(run.push(batch))
        found += multiset(pa.Table.from_batches(list(run.finish()), query.schema))
        assert found == wanted, f"{difference(found, wanted)}\nbefore batch {instant}\n{history!r}"
        ended += any(m.status == "done" for m in run.migrations)
    assert ended > 1


# --- at random -----------------------------------------------------------------------------------


def run_at_random(history: History, seed: int, often: float = 0.5) -> None:
    """Migrations between plans that differ inside, also asked for while one is under way."""
    random, query = Random(seed), history.query
    wanted, _ = expected(history)
    plan = sample_plan(query, random)
    run, found = LocalRun(query, plan, tuning=history.tuning), Counter[Result]()
    about = [f"start {plan}"]
    for number, batch in enumerate(history.tables()):
        while random.random() < often:
            plan = changed_inside(query, plan, random)
            strategy, order = random.choice(WAYS)
            run.migrate(plan, strategy, order=order)
            about.append(f"batch {number}: {strategy} ({order}) to {plan}")
        found += multiset(run.push(batch))
    found += multiset(pa.Table.from_batches(list(run.finish()), query.schema))
    assert found == wanted, "\n".join([difference(found, wanted), *about, repr(history)])


@settings(max_examples=12)
@given(cases(streams=st.integers(4, 5), late=True), SEEDS)
def test_oracle_inner_boxes_at_random(history: History, seed: int) -> None:
    run_at_random(history, seed)


@pytest.mark.campaign
@settings(max_examples=80)
@given(cases(streams=st.integers(3, 7), late=True) | crowds(streams=st.integers(4, 5)), SEEDS)
def test_oracle_inner_boxes_at_random_thoroughly(history: History, seed: int) -> None:
    run_at_random(history, seed)


@pytest.mark.parametrize("seed", range(4))
def test_oracle_one_after_the_other(seed: int) -> None:
    """A long history, so that tracks end and the next ones begin on what remained."""
    history = lagging_history(chain(5), batches=24, rows=2, seed=seed, keys=2)
    run_at_random(history, seed, often=0.3)


# --- written down, and after crashes -------------------------------------------------------------


def written(engine: Engine) -> Engine:
    """The engine that another process would go on with."""
    return engine_from_state(engine.query, engine_to_state(engine))


@pytest.mark.parametrize("which", PAIRS)
def test_differential_engines_that_are_written_after_every_batch(which: str) -> None:
    shapes = PAIRS[which]
    size = len(set(shapes[0]) & set("abcdef"))
    history = lagging_history(clique(size), batches=12, rows=3, seed=1, keys=2)
    query = history.query
    old, new = (parse_shape(query, shape) for shape in shapes)
    kept, read = (LocalRun(query, old, tuning=history.tuning) for _ in range(2))
    for number, batch in enumerate(history.tables()):
        if number == 4:
            for run in (kept, read):
                run.migrate(new, "parallel-track")
        assert multiset(kept.push(batch)) == multiset(read.push(batch))
        read.node.engine = written(read.engine)
        assert read.engine.migration == _without_pause(kept, read)
        assert [c.to_state() for c in read.engine.counters] == [
            c.to_state() for c in written(kept.engine).counters
        ]
        assert read.engine.sizes() == written(kept.engine).sizes()
    assert not kept.engine.migrating and not read.engine.migrating


def _without_pause(kept: LocalRun, read: LocalRun) -> object:
    """The record of the one, with the time that the other took."""
    if kept.engine.migration is None or read.engine.migration is None:
        return None
    mine = kept.engine.migration
    return type(mine)(**{
        name: getattr(read.engine.migration if name == "pause" else mine, name)
        for name in mine.__slots__
    })  # fmt: skip


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(streams=st.integers(4, 5), late=True), st.integers(1, 2), SEEDS)
def test_oracle_crashes(history: History, processors: int, seed: int) -> None:
    check_crashes(history, processors, seed)


def test_oracle_crashes_in_the_middle_of_a_track() -> None:
    for seed in range(3):
        check_crashes(lagging_history(clique(4), batches=7, rows=3, seed=seed, keys=2), 1, seed)


def check_crashes(history: History, processors: int, seed: int) -> None:
    random, query = Random(seed), history.query
    plan = sample_plan(query, random)
    cluster = Cluster(query, plan, processors, tuning=history.tuning)
    found: Counter[Result] = Counter()
    epoch: Epoch | None = None
    for number, batch in enumerate(history.tables()):
        if random.random() < 0.5:
            plan = changed_inside(cluster.processor.setup.query, plan, random)
            epoch = Epoch(number + 1, plan, "parallel-track")
        found += multiset(
            cluster.run(
                batch,
                worker_of=lambda _: random.randrange(2),
                die=lambda _processor, _step: random.random() < 0.2,
                epoch=epoch,
            )
        )
    wanted = oracle(query, split_late(query, history.batches)[0])
    assert found == wanted, f"{difference(found, wanted)}\n{history!r}"
