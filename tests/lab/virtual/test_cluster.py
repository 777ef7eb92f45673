"""Virtual clusters: what moves bring, in which messages, and how long it takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from plait.groups.moves.move import Protocol
from plait.optimize.costs import PAPER
from plait.plan.text import read_tree
from plait.query.query import Query
from plait.testing.examples import chain
from plait_lab.engine.lemma import PurgeByLemma
from plait_lab.virtual.cluster import ClusterSetting, VirtualCluster, cut_by_time
from plait_lab.virtual.gates import by_hash, by_value
from plait_lab.virtual.machines import Link, Machine
from plait_lab.workloads.keyed import keyed_query, keyed_tables

pytestmark = pytest.mark.slow

WINDOW = 1_000_000
LEFT, RIGHT = "((s0 s1) s2)", "(s0 (s1 s2))"


def query() -> Query:
    return keyed_query([["k"]] * 3, WINDOW)


def setting(plans: tuple[str, ...] = (LEFT, RIGHT), speed: float = 1.0) -> ClusterSetting:
    asked = query()
    return ClusterSetting(
        asked,
        tuple(read_tree(asked, plan) for plan in plans),
        (0,) * 6 + (1,) * 2,
        by_value("k", 8),
        quantum=0.1,
        machine=Machine(speed),
        link=Link(0.01, 1e6),
        costs=PAPER,
        purge=PurgeByLemma,
        keep=True,
    )


def cluster(given: ClusterSetting, rows: int = 5000) -> VirtualCluster:
    tables = keyed_tables(given.query, rows, 400, seed=1)
    return VirtualCluster(given, cut_by_time(given.query, tables, given.quantum))


def moved(protocol: Protocol, given: ClusterSetting) -> VirtualCluster:
    made = cluster(given)
    made.run(2.05)
    made.begin(protocol, [0, 1], [1])
    made.run(100.0)
    return made


def test_the_messages_of_ptlb_are_those_of_the_paper() -> None:
    made = cluster(setting())
    made.run(2.05)
    made.ask("PTLB", 0, 1, made.processors[0].nbytes / 3)
    made.run(100.0)
    sent = made.network.sent
    assert sent["ComputePartitionsToMove"] == sent["PartitionsToMove"] == 1
    assert sent["DuplicatePartitions"] == 3 + 1, "every split, and the sender"
    assert sent["AllOldPurged"] == 1
    assert sent["EndOfPartitions"] == 3
    (record,) = made.moves.values()
    assert record.done and record.length == pytest.approx(2.0, abs=0.3), "2W"
    assert 1 <= len(record.move.groups) < 6
    assert [made.manager.places[g].processors for g in record.move.groups] == [(1,)] * len(
        record.move.groups
    )


def test_the_messages_of_mslb_are_those_of_the_paper() -> None:
    made = moved("MSLB", setting())
    sent = made.network.sent
    assert sent["DeactivatePartitions"] == sent["Deactivated"] == 4
    assert sent["EndOfPartitionInputFlag"] == 3
    assert sent["SendPartitions"] == sent["ReceivePartitions"] == sent["Received"] == 1
    assert sent["ReactivatePartitions"] == 5
    (record,) = made.moves.values()
    assert record.done and record.length is not None and record.length < 1.0
    assert record.moved.rows == pytest.approx(2 * 3 * 1000 / 8, rel=0.3), "a window of two groups"


@pytest.mark.slow
def test_only_states_that_match_are_moved_as_they_are() -> None:
    (different,) = moved("MSLB", setting()).moves.values()
    (alike,) = moved("MSLB", setting((LEFT, LEFT))).moves.values()
    assert different.moved.recomputed > 100 and not different.moved.matched
    assert alike.moved.matched > 100 and not alike.moved.recomputed
    assert alike.moved.work < different.moved.work


@pytest.mark.slow
def test_a_sender_keeps_nothing_of_the_groups_that_have_left() -> None:
    protocols: tuple[Protocol, ...] = ("PTLB", "MSLB")
    for protocol in protocols:
        made = moved(protocol, setting())
        stored = np.sum(made.processors[0].store.by_group(), axis=0)
        assert stored[:2].tolist() == [0, 0] and stored[2:6].min() > 0
        assert {g for g, _ in made.processors[0].party.held} == {2, 3, 4, 5}


@pytest.mark.slow
def test_all_results_come_out_whatever_moves() -> None:
    protocols: tuple[Protocol, ...] = ("PTLB", "MSLB")
    totals = {sum(b.num_rows for b in moved(p, setting()).kept) for p in protocols}
    alone = cluster(setting())
    alone.run(100.0)
    assert totals == {sum(b.num_rows for b in alone.kept)}
    assert alone.done


def test_a_slow_machine_falls_behind_and_rows_wait() -> None:
    made = cluster(setting(speed=1e-3))
    made.run(4.0)
    slow, quick = made.processors
    assert slow.queued > 3 * quick.queued
    assert made.traces[0].busy([1.0, 4.0])[0] > 0.9
    assert made.tuples == sum(p.tuples for p in made.processors)
    made.run(1000.0)
    assert made.done and made.results_by([1000.0])[0] > 0


@pytest.mark.slow
def test_the_same_run_twice_is_the_same() -> None:
    first, second = (moved("MSLB", setting(speed=1e-3)) for _ in range(2))
    assert [t.slices for t in first.traces] == [t.slices for t in second.traces]


def test_groups_by_hash_need_a_key_that_all_streams_have() -> None:
    with pytest.raises(Exception, match="share no key"):
        by_hash(chain(3), 8)
    groups = by_hash(query(), 8)(0, pa.record_batch({"k": [1, 2, 1]}))
    assert groups[0] == groups[2] and groups.max() < 8


@pytest.mark.slow
def test_a_network_that_is_slow_delays_what_is_moved() -> None:
    (quick,) = moved("MSLB", setting()).moves.values()
    (slow,) = moved("MSLB", replace(setting(), link=Link(0.01, 1e4))).moves.values()
    assert quick.length is not None and slow.length is not None
    assert slow.length > quick.length + 1.0
