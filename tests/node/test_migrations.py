"""A processor follows the driver's decisions, and refuses what cannot be done without stopping."""

from __future__ import annotations

import json

import pyarrow as pa

from plait.adapt.policy import PlanPolicy
from plait.node.epochs import Epoch
from plait.plan.jtree import Node, mjoin, parse_shape
from plait.plan.routed import Teddies
from plait.testing.examples import clique
from plait_lab.laws.processors import Cluster

QUERY = clique(3)
TREE = parse_shape(QUERY, "((a b) c)")


def rows(second: int) -> dict[str, pa.Table]:
    """One row of each stream."""
    return {
        s.name: pa.table(
            [pa.array([second * 1_000_000 if f.name == s.time else 1], pa.int64()).cast(f.type)
             for f in s.fields],
            names=[f.name for f in s.fields],
        )
        for s in QUERY.streams
    }  # fmt: skip


def test_a_request_that_cannot_be_met_is_reported_and_the_query_runs_on() -> None:
    cluster = Cluster(QUERY, Teddies(policy="random"), 1)
    cluster.run(rows(1))
    impossible = Epoch(1, TREE, "parallel-track")
    assert cluster.run(rows(2), epoch=impossible).num_rows == 7
    (report,) = cluster.reports
    assert report.epoch == 1 and report.plan == "teddies (random)"
    (refused,) = report.migrations
    assert refused["status"] == "refused" and "cannot run beside" in refused["reason"]
    cluster.run(rows(3), epoch=impossible)
    assert not cluster.reports[0].migrations, "it was answered"
    cluster.run(rows(4), epoch=Epoch(2, TREE, "moving-state"))
    assert cluster.reports[0].plan == str(TREE)
    assert cluster.reports[0].migrations[0]["status"] == "done"


def test_a_decision_waits_until_the_one_before_is_done() -> None:
    cluster = Cluster(QUERY, mjoin(QUERY), 1)
    cluster.run(rows(1))
    cluster.run(rows(2), epoch=Epoch(1, TREE, "parallel-track"))
    assert cluster.reports[0].migrations[0]["status"] == "under way"
    other = Epoch(2, parse_shape(QUERY, "(a (b c))"), "moving-state")
    cluster.run(rows(3), epoch=other)
    assert (cluster.reports[0].epoch, cluster.reports[0].plan) == (1, str(TREE))
    cluster.run(rows(60), epoch=other)
    cluster.run(rows(61), epoch=other)
    assert (cluster.reports[0].epoch, cluster.reports[0].plan) == (2, str(other.plan))


def test_a_decision_is_obeyed_after_a_restart_with_a_new_directory() -> None:
    """Numbering starts at 1 again there, and the header knows a later epoch."""
    cluster = Cluster(QUERY, mjoin(QUERY), 2, adapt=PlanPolicy())
    cluster.run(rows(1))
    for number, shape in ((1, "((a b) c)"), (2, "(a (b c))"), (3, "((a b) c)")):
        cluster.run(rows(number + 1), epoch=Epoch(number, parse_shape(QUERY, shape), origin="old"))
    again = restarted(cluster)
    knew = learnt(again)
    again.run(rows(5))
    assert {r.plan for r in again.reports} == {str(TREE)}, "the plan stays until it is released"
    assert learnt(again) == knew, "nobody else may change it"
    new = Epoch(1, parse_shape(QUERY, "(a (b c))"), origin="new")
    again.run(rows(6), epoch=new)
    assert {(r.epoch, r.plan) for r in again.reports} == {(1, str(new.plan))}
    assert {r.migrations[0]["status"] for r in again.reports} == {"done"}
    back = restarted(again)
    back.run(rows(7), epoch=Epoch(3, TREE, origin="old"))
    assert {(r.epoch, r.plan) for r in back.reports} == {(1, str(new.plan))}, "it was followed once"
    back.run(rows(8), epoch=Epoch(4, None, "auto", origin="old"))
    assert {r.epoch for r in back.reports} == {4}
    assert learnt(back) != knew, "released: the loop is there again"


def test_a_refused_decision_leaves_the_loop_on() -> None:
    cluster = Cluster(QUERY, mjoin(QUERY), 1, adapt=PlanPolicy())
    cluster.run(rows(1))
    cluster.run(rows(2), epoch=Epoch(1, TREE, "parallel-track"))
    teddies = Cluster(QUERY, Teddies(policy="random"), 1)
    teddies.run(rows(1))
    teddies.run(rows(2), epoch=Epoch(1, TREE, "parallel-track"))
    header = json.loads(teddies.stores[0].header or "")
    assert (header["epoch"], header["held"]) == (1, False)
    assert json.loads(cluster.stores[0].header or "")["held"] is True


def test_a_plan_given_at_a_restart_ends_what_was_decided_before() -> None:
    cluster = Cluster(QUERY, mjoin(QUERY), 1, adapt=PlanPolicy())
    decided = Epoch(1, TREE, origin="old")
    cluster.run(rows(1), epoch=decided)
    other = parse_shape(QUERY, "(a (b c))")
    again = restarted(cluster, plan=other)
    knew = learnt(again)
    again.run(rows(2), epoch=decided)
    assert again.reports[0].plan == str(other) and learnt(again) != knew


def test_headers_of_earlier_versions_go_on() -> None:
    cluster = Cluster(QUERY, mjoin(QUERY), 1, adapt=PlanPolicy())
    cluster.run(rows(1), epoch=Epoch(2, TREE))
    header = json.loads(cluster.stores[0].header or "")
    del header["followed"], header["held"]
    cluster.stores[0].header = json.dumps(header)
    again = restarted(cluster)
    knew = learnt(again)
    again.run(rows(2), epoch=Epoch(2, TREE))
    assert (again.reports[0].epoch, again.reports[0].plan) == (2, str(TREE))
    assert not again.reports[0].migrations and learnt(again) == knew
    again.run(rows(3), epoch=Epoch(1, parse_shape(QUERY, "(a (b c))"), origin="new"))
    assert again.reports[0].plan == "(a (b c))"


def learnt(cluster: Cluster) -> list[object]:
    """What the loops of the processors know: it changes in every batch in which they are on."""
    return [json.loads(store.header or "{}").get("adapt") for store in cluster.stores]


def restarted(cluster: Cluster, plan: Node | None = None) -> Cluster:
    """The same stores, no engines."""
    again = Cluster(QUERY, plan or mjoin(QUERY), len(cluster.stores), adapt=PlanPolicy())
    again.stores = cluster.stores
    return again
