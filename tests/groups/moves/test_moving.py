"""What a processor does about groups that come and go, and whole moves on simulated processors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from random import Random

import pyarrow as pa
import pytest

from plait.errors import CheckpointDamaged, TransferDamaged
from plait.groups.moves.move import Move, Protocol
from plait.groups.moves.moving import Moving, enter, exported_groups
from plait.groups.routing.table import initial
from plait.node.durable.store import OwnEngines
from plait.plan.text import read_plan
from plait.testing.oracle.answer import Result, multiset, oracle
from plait.tuning import USUAL
from plait_lab.laws.processors import Cluster
from plait_lab.workloads.keyed import keyed_query

TABLE = initial([0, 1])
PTLB, MSLB = (Move(1, protocol, (0,), (0,), (1,)) for protocol in ("PTLB", "MSLB"))
QUERY = keyed_query([["k"]] * 3, 35)


def test_a_move_by_ptlb_seen_by_sender_and_receiver() -> None:
    begun = TABLE.begin(PTLB, 5, 2)
    sender = enter(Moving(), begun, 0, 10)
    assert sender.watch == (PTLB,) and sender.moving.begun == {1: 10}
    receiver = enter(Moving(), begun, 1, 10)
    assert not receiver.watch and not receiver.clean, "nothing was left behind here"
    ended = begun.end(1, 9)
    assert enter(sender.moving, ended, 0, 14).moving.gone == {0: 14}
    assert enter(receiver.moving, ended, 1, 14).take_in == (), "it has the rows already"


def test_a_move_by_mslb_seen_by_sender_and_receiver() -> None:
    begun = TABLE.begin(MSLB, 5, 2)
    sender, receiver = enter(Moving(), begun, 0, 10), enter(Moving(), begun, 1, 10)
    assert sender.export == (MSLB,) and receiver.check == (), "nothing is exported yet"
    again = enter(receiver.moving, begun, 1, 11)
    assert again.check == (MSLB,)
    done = replace(again.moving, checked=frozenset({1}))
    assert enter(done, begun, 1, 12).check == (), "once is enough"
    ended = begun.end(1, 9)
    assert enter(done, ended, 1, 13).take_in == (MSLB,)
    assert enter(sender.moving, ended, 0, 13).moving.gone == {0: 13}


def test_a_group_that_comes_back_meets_what_it_left_behind() -> None:
    here = Moving(2, gone={0: 13})
    back = replace(TABLE, number=2).begin(Move(2, "PTLB", (0,), (0,), (1,)), 20, 2)
    assert enter(here, back, 1, 20).clean == {0}
    assert here.purged([13, 14]).gone == {} and here.purged([12, 14]).gone == {0: 13}
    assert here.dead(12) == {0} and here.dead(13) == frozenset()


def test_a_receiver_of_a_move_that_is_given_up_keeps_nothing() -> None:
    begun = TABLE.begin(PTLB, 5, 2)
    receiver = enter(Moving(), begun, 1, 10)
    assert enter(receiver.moving, begun.give_up(1, 7), 1, 12).moving.gone == {0: 12}


def test_tables_that_no_batch_went_by_are_gone_through_with_the_next() -> None:
    begun = TABLE.begin(MSLB, 5, 2)
    ended = begun.end(1, 9)
    on = ended.begin(Move(2, "PTLB", (0,), (1,), (0,)), 10, 2)
    receiver = enter(enter(Moving(), begun, 1, 10).moving, on, 1, 12, [ended])
    assert receiver.take_in == (MSLB,) and receiver.moving.begun == {2: 12}
    sender = enter(enter(Moving(), begun, 0, 10).moving, on, 0, 12, [ended])
    assert sender.moving.gone == {0: 12} and sender.clean == {0}


def test_a_table_that_does_not_follow_is_refused() -> None:
    enter(Moving(1), replace(TABLE, number=2), 0, 1)
    enter(Moving(1), replace(TABLE, number=3), 0, 1, [replace(TABLE, number=2)])
    for number in (0, 3):
        refused = f"table 1, and this batch is routed by table {number}"
        with pytest.raises(CheckpointDamaged, match=refused):
            enter(Moving(1), replace(TABLE, number=number), 0, 1)


def test_copies_are_exported_by_one_sender() -> None:
    spread = TABLE.begin(Move(1, "MSLB", (0,), (0,), (0, 1), 2), 5, 2).end(1, 6)
    back = Move(2, "MSLB", (0,), (0, 1), (0,))
    assert [exported_groups(spread, back, p, 2) for p in (0, 1)] == [(0,), (0,)]
    assert [exported_groups(spread, back, p, 0) for p in (0, 1)] == [(0,), ()]


# -- whole moves

Rows = dict[str, list[dict[str, object]]]


class Story:
    """Random rows of few keys, and what a manager does between the batches."""

    def __init__(self, processors: int = 3, seed: int = 1) -> None:
        self.chance = Random(seed)
        plan = read_plan(QUERY, "((s0 s1) s2)")
        tuning = replace(USUAL, groups=2)
        self.cluster = Cluster(QUERY, plan, processors, tuning=tuning, seed=7)
        self.given: dict[str, list[dict[str, object]]] = {name: [] for name in QUERY.names}
        self.found: Counter[Result] = Counter()

    def batches(self, n: int) -> None:
        for _ in range(n):
            now, batch = 10 * self.cluster.batch, {}
            for s in QUERY.streams:
                times = [now + self.chance.randrange(10) for _ in range(3)]
                rows = [{"k": self.chance.randrange(3), "ts": t, "v": t} for t in sorted(times)]
                self.given[s.name] += rows  # type: ignore[arg-type]  # dict is invariant
                batch[s.name] = pa.Table.from_pylist(rows, s.schema)
            self.found += multiset(self.cluster.run(batch))

    def pause(self) -> None:
        """A batch in which no input has a partition."""
        before = self.cluster.batch
        assert not len(self.cluster.run({})) and not self.cluster.reports
        assert self.cluster.batch == before + 1

    def begin(self, move: Move) -> None:
        cluster = self.cluster
        cluster.table = cluster.table.begin(move, cluster.batch, cluster.routing.processors)

    def end(self, number: int) -> None:
        self.cluster.table = self.cluster.table.end(number, self.cluster.batch)

    def give_up(self, number: int) -> None:
        self.cluster.table = self.cluster.table.give_up(number, self.cluster.batch)

    def said(self) -> set[tuple[int, int, str]]:
        return {(a["move"], r.processor, a["what"]) for r in self.cluster.reports for a in r.moves}

    def check(self) -> None:
        self.batches(5)
        assert self.found == oracle(QUERY, self.given)
        assert self.found.total() > 50


@pytest.mark.slow
def test_oracle_a_move_that_is_given_up_and_begun_again() -> None:
    """Rows flagged by both moves make results that neither receiver finds."""
    story = Story()
    story.batches(3)
    story.begin(Move(1, "PTLB", (0,), (0,), (1,)))
    story.batches(2)
    story.give_up(1)
    story.batches(1)
    story.begin(Move(2, "PTLB", (0,), (0,), (2,)))
    story.batches(2)
    story.check()


@pytest.mark.slow
def test_oracle_rows_that_come_while_groups_are_exported() -> None:
    story = Story()
    story.batches(3)
    story.begin(Move(1, "MSLB", (0,), (0,), (1,)))
    story.batches(3)
    assert (1, 1, "received") in story.said()
    story.end(1)
    story.check()
    assert not story.cluster.reports[0].groups.get("s0", {}).get(0)


@pytest.mark.slow
def test_oracle_a_group_that_is_spread_and_put_together_elsewhere() -> None:
    story = Story()
    story.batches(3)
    story.begin(Move(1, "MSLB", (0,), (0,), (0, 1, 2), 1))
    story.batches(2)
    story.end(1)
    story.batches(3)
    story.begin(Move(2, "MSLB", (0,), (0, 1, 2), (2,)))
    story.batches(2)
    story.end(2)
    story.check()


@pytest.mark.slow
def test_oracle_there_and_back_while_rows_are_alive() -> None:
    story = Story()
    story.batches(2)
    story.begin(Move(1, "MSLB", (0,), (0,), (1,)))
    story.batches(2)
    story.end(1)
    story.batches(1)
    story.begin(Move(2, "MSLB", (0,), (1,), (0,)))
    story.batches(2)
    story.end(2)
    story.check()


@pytest.mark.slow
def test_oracle_two_moves_that_arrive_with_one_batch_are_both_durable() -> None:
    """The rows of both are in the state, from which a worker rebuilds an engine that it forgot."""
    story = Story()
    story.batches(3)
    cluster = story.cluster
    homes = [place[0] for place in cluster.table.places]
    others = [g for g in range(len(homes)) if homes[g] != 2][:2]
    moves = [Move(n, "MSLB", (g,), (homes[g],), (2,)) for n, g in enumerate(others, start=1)]
    processors = cluster.routing.processors
    cluster.table = cluster.table.changed(cluster.batch, processors, begin=moves)
    story.batches(2)
    cluster.table = cluster.table.changed(cluster.batch, processors, end=[1, 2])
    story.batches(1)
    cluster.workers = (OwnEngines(), OwnEngines())
    story.check()


def test_a_processor_that_joins_in_knows_what_is_late() -> None:
    query = keyed_query([["k"]] * 2, 1000, delay=0)
    cluster = Cluster(query, read_plan(query, "mjoin"), 1, aside=True)

    def run(ts: int, *names: str) -> int:
        rows = {name: pa.table({"k": [1], "ts": [ts], "v": [ts]}) for name in names}
        typed = {n: t.cast(query.streams[query.index(n)].schema) for n, t in rows.items()}
        return len(cluster.run(typed))

    assert run(100, *query.names) == 1
    cluster.add_processor()
    move = Move(1, "MSLB", tuple(range(len(cluster.table.places))), (0,), (1,))
    cluster.table = cluster.table.begin(move, cluster.batch, 2)
    assert run(80, query.names[0]) == 0, "the only rows that the new one hears of are late"
    cluster.table = cluster.table.end(1, cluster.batch)
    assert run(90, query.names[0]) == 0
    assert [sum(report.late.values()) for report in cluster.reports] == [0, 1]
    assert run(110, query.names[0]) == 1, "it has taken in what was before it"


@pytest.mark.slow
def test_oracle_ptlb_ends_when_nothing_old_is_left() -> None:
    story = Story()
    story.batches(3)
    story.begin(Move(1, "PTLB", (0,), (0,), (1,)))
    for _ in range(20):
        story.batches(1)
        if (1, 0, "all old purged") in story.said():
            break
    else:
        raise AssertionError("the sender never said so")
    story.end(1)
    story.check()


def damage(change: Callable[[bytes], bytes]) -> Story:
    story = Story()
    story.batches(2)
    story.begin(Move(1, "MSLB", (0,), (0,), (1,)))
    story.batches(1)
    transfers = story.cluster.transfers
    for key, raw in transfers.written.items():
        transfers.written[key] = change(raw)
    return story


@pytest.mark.slow
def test_damage_is_told_and_the_move_can_be_given_up() -> None:
    story = damage(lambda raw: raw[:-1])
    story.batches(1)
    assert (1, 1, "damaged") in story.said()
    story.give_up(1)
    story.check()


@pytest.mark.slow
def test_damage_that_comes_too_late_is_named_and_loses_nothing() -> None:
    story = damage(lambda raw: raw)
    story.batches(1)
    good = dict(story.cluster.transfers.written)
    story.cluster.transfers.written = {key: raw[:9] for key, raw in good.items()}
    story.end(1)
    with pytest.raises(TransferDamaged, match="what was exported is damaged"):
        story.batches(1)
    for name, rows in story.given.items():
        story.given[name] = rows[:-3]  # that batch was never committed
    story.cluster.transfers.written = good
    story.check()


# -- batches in which no processor runs


@pytest.mark.slow
def test_oracle_mslb_over_batches_in_which_no_processor_runs() -> None:
    """They had made it look as if something that was exported was missing."""
    story = Story()
    story.batches(3)
    story.begin(Move(1, "MSLB", (0,), (0,), (1,)))
    story.pause()
    story.batches(1)
    story.pause()
    story.batches(2)
    assert (1, 1, "received") in story.said()
    story.end(1)
    story.pause()
    story.check()


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["PTLB", "MSLB"])
def test_oracle_a_group_that_arrives_and_moves_on_at_once(protocol: Protocol) -> None:
    """No batch went by the table that ended the first move: its rows still come along."""
    story = Story()
    story.batches(3)
    story.begin(Move(1, "MSLB", (0,), (0,), (1,)))
    story.batches(2)
    story.end(1)
    story.pause()
    story.begin(Move(2, protocol, (0,), (1,), (2,)))
    story.batches(1)
    assert (2, 1, "all old purged") not in story.said()
    story.batches(1)
    if protocol == "MSLB":
        story.end(2)
    story.check()


@pytest.mark.slow
def test_oracle_tables_that_no_batch_went_by() -> None:
    story = Story()
    story.batches(3)
    protocols: tuple[Protocol, ...] = ("PTLB", "MSLB", "PTLB")
    for number, protocol in enumerate(protocols, start=1):
        story.begin(Move(number, protocol, (0,), (0,), (number % 2 + 1,)))
        story.pause()
        story.give_up(number)
        story.pause()
    story.begin(Move(4, "MSLB", (0,), (0,), (1,)))
    story.batches(2)
    story.end(4)
    story.check()
