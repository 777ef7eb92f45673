"""Law 4 in virtual time: machines with plans of their own, and messages that take their time.

Groups move by the messages of both protocols, at any instant: while rows wait in queues, while
plans are migrated, while other moves are under way. Machines differ in their plans and fall behind;
rows come out of order and late. The union of what the machines find is the answer of the oracle.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.flags import Flags
from plait.engine.purging import PurgeByWatermarks
from plait.errors import MoveError
from plait.groups.moves.move import Protocol
from plait.optimize.costs import PAPER
from plait.plan.migration import STRATEGIES
from plait.testing.oracle.answer import multiset
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import difference
from plait_lab.laws.hosts import HostAnswer, definition
from plait_lab.laws.strategies.histories import History, Row, cases, crowds
from plait_lab.laws.strategies.tunings import drawn_tuning
from plait_lab.virtual.cluster import ClusterSetting, VirtualCluster
from plait_lab.virtual.gates import Gate, by_hash
from plait_lab.virtual.machines import Link, Machine
from plait_lab.workloads.keyed import keyed_query

pytestmark = pytest.mark.slow

SEEDS = st.integers(0, 2**32)
LATER = 1e9
PROTOCOLS: tuple[Protocol, ...] = ("PTLB", "MSLB")


class Unrest:
    """Asks a cluster for moves and plans at random instants, and gives some moves up."""

    def __init__(self, cluster: VirtualCluster, chance: Random, often: float) -> None:
        self.cluster, self.chance = cluster, chance
        for _ in range(int(often * cluster.end) + 2):
            cluster.line.plan(chance.uniform(0, cluster.end), self._disturb)

    def _disturb(self, now: float) -> None:
        del now
        wishes = (self._move, self._ask, self._spread, self._give_up, self._migrate)
        with suppress(MoveError):
            self.chance.choices(wishes, (5, 2, 1, 1, 3))[0]()

    def _some_groups(self) -> list[int]:
        places = self.cluster.manager.places
        first = self.chance.randrange(len(places))
        same = [g for g, place in enumerate(places) if place.processors == places[first].processors]
        return sorted(self.chance.sample(same, self.chance.randint(1, len(same))))

    def _move(self) -> None:
        receiver = self.chance.randrange(len(self.cluster.processors))
        self.cluster.begin(self.chance.choice(PROTOCOLS), self._some_groups(), [receiver])

    def _ask(self) -> None:
        sender, receiver = (self.chance.randrange(len(self.cluster.processors)) for _ in range(2))
        amount = self.chance.uniform(1, 2000)
        self.cluster.ask(self.chance.choice(PROTOCOLS), sender, receiver, amount)

    def _spread(self) -> None:
        machines = range(len(self.cluster.processors))
        several = self.chance.sample(machines, self.chance.randint(2, len(machines)))
        stream = self.chance.randrange(len(self.cluster.query.streams))
        self.cluster.begin("MSLB", self._some_groups(), several, stream)

    def _give_up(self) -> None:
        if moving := self.cluster.manager.moving:
            self.cluster.give_up(self.chance.choice(moving).move.number)

    def _migrate(self) -> None:
        machine = self.chance.randrange(len(self.cluster.processors))
        plan = sample_plan(self.cluster.query, self.chance)
        self.cluster.migrate(machine, plan, self.chance.choice(STRATEGIES))


def one_group(stream: int, rows: pa.RecordBatch) -> npt.NDArray[np.int64]:
    del stream
    return np.zeros(rows.num_rows, np.int64)


def check(
    history: History, machines: int, seed: int, purge: type[PurgeByWatermarks] = PurgeByWatermarks
) -> VirtualCluster:
    """Run a history on a restless cluster; the answer is that of the definition."""
    chance, query = Random(seed), history.query
    shared = any(len(c.streams) == len(query.streams) for c in query.graph.classes)
    groups = chance.choice((1, 2, 3, 8)) if shared else 1
    setting = ClusterSetting(
        query,
        tuple(sample_plan(query, chance) for _ in range(machines)),
        tuple(chance.randrange(machines) for _ in range(groups)),
        by_hash(query, groups, seed) if shared else one_group,
        machine=Machine(chance.choice((1.0, 3e-6, 3e-7))),
        link=Link(chance.choice((0.0, 0.3, 2.5)), chance.choice((float("inf"), 500.0))),
        costs=PAPER,
        purge=purge,
        tuning=history.tuning,
        keep=True,
    )
    cluster = VirtualCluster(setting, history.tables())
    Unrest(cluster, chance, chance.choice((0.3, 1.0, 3.0)))
    cluster.run(cluster.end + LATER)
    for moving in cluster.manager.moving:
        # Without rows to come, nothing old is ever purged.
        assert moving.move.protocol == "PTLB" and moving.step == "DuplicatePartitions"
        cluster.give_up(moving.move.number)
    cluster.run(2 * LATER)
    assert cluster.done
    answer = HostAnswer(filtered=+cluster.filtered)
    answer.results = multiset(pa.Table.from_batches(cluster.kept, query.schema))
    for rows in cluster.aside:
        answer.set_aside(query, rows)
    wanted = definition(query, history.batches)
    about = f"{cluster.moves}\n{history!r}"
    assert answer.results == wanted.results, (
        f"{difference(answer.results, wanted.results)}\n{about}"
    )
    assert answer == wanted, about
    return cluster


def long_history(seed: int, *, in_order: bool = False) -> History:
    """Three streams, few keys, and windows of some ticks out of many, so that moves end."""
    chance = Random(seed)
    keys, delay = chance.choice((1, 2, 5)), 0 if in_order else chance.choice((0, 5, 30))
    query = keyed_query([["k"]] * 3, chance.choice((20, 40, 80)), delay)
    batches: list[dict[str, list[Row]]] = []
    for number in range(chance.choice((15, 40))):
        batch: dict[str, list[Row]] = {}
        for name in query.names:
            times = [10 * number + chance.randint(-delay, 9) for _ in range(chance.randint(0, 3))]
            times = sorted(times) if in_order else times
            batch[name] = [{"ts": t, "k": chance.randrange(keys), "v": t} for t in times]
        batches.append(batch)
    return History(query, tuple(batches), drawn_tuning(chance))


@settings(max_examples=15)
@given(cases(streams=st.integers(2, 4), late=True, one_key=True), st.integers(2, 4), SEEDS)
def test_oracle_machines_that_exchange_groups(history: History, machines: int, seed: int) -> None:
    check(history, machines, seed)


@settings(max_examples=15)
@given(crowds(streams=st.integers(2, 4), late=True), st.integers(2, 3), SEEDS)
def test_oracle_a_crowded_group_between_machines(
    history: History, machines: int, seed: int
) -> None:
    check(history, machines, seed)


@pytest.mark.parametrize("seed", range(12))
def test_oracle_moves_on_machines_that_fall_behind(seed: int) -> None:
    check(long_history(seed), 2 + seed % 3, seed)


@pytest.mark.parametrize("seed", range(8))
def test_oracle_machines_that_purge_by_the_lemma(seed: int) -> None:
    check(long_history(seed, in_order=True), 2 + seed % 3, seed, PurgeByLemma)


@pytest.mark.campaign
def test_oracle_moves_between_machines_thoroughly() -> None:
    ended: Counter[tuple[str, bool]] = Counter()
    for seed in range(100, 180):
        lemma = seed % 4 == 0
        history = long_history(seed, in_order=lemma)
        cluster = check(history, 2 + seed % 3, seed, PurgeByLemma if lemma else PurgeByWatermarks)
        ended.update((r.move.protocol, r.done) for r in cluster.moves.values())
    assert min(ended[p, done] for p in ("PTLB", "MSLB") for done in (True, False)) > 20, ended


@pytest.mark.campaign
@settings(max_examples=60)
@given(crowds(streams=st.integers(2, 4), late=True), st.integers(2, 4), SEEDS)
def test_oracle_crowded_groups_between_machines_thoroughly(
    history: History, machines: int, seed: int
) -> None:
    check(history, machines, seed)


def test_the_law_would_find_results_that_are_found_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sender that does not hold back what the receiver finds."""
    monkeypatch.setattr(Flags, "emitted", lambda _flags, tuples: tuples)
    with pytest.raises(AssertionError, match="too many"):
        for seed in range(12):
            check(long_history(seed), 2 + seed % 3, seed)


def test_the_law_would_find_partners_that_are_purged_too_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gate whose progress does not wait for the rows that it buffers."""
    monkeypatch.setattr(Gate, "_oldest", lambda _gate, _rows: LATER)
    with pytest.raises(AssertionError, match="results missing"):
        for seed in range(100, 200):
            check(long_history(seed), 2 + seed % 3, seed)


def test_the_law_would_find_combinations_that_the_lemma_purges_too_early(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An engine that purges by what has entered, although rows are held back behind it."""
    purged_before = PurgeByLemma.purged_before
    monkeypatch.setattr(
        PurgeByLemma, "purged_before", lambda rule, join, c, _=None: purged_before(rule, join, c)
    )
    with pytest.raises(AssertionError, match="results missing"):
        for seed in (133, 135):
            check(long_history(seed, in_order=True), 2 + seed % 3, seed, PurgeByLemma)
