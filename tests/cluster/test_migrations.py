"""A processor follows the driver's decisions, and refuses what cannot be done without stopping."""

from __future__ import annotations

import pyarrow as pa

from plait.cluster.epochs import Epoch
from plait.plan.examples import clique
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Teddies
from plait.testing.processors import Cluster

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
