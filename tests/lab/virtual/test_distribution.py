"""The distribution manager and local re-optimisation of a virtual cluster."""

from __future__ import annotations

import pytest

from plait.groups.balance.policy import BalancePolicy
from plait.groups.balance.proposal import BalanceSetting
from plait.groups.moves.move import Protocol
from plait.optimize.costs import PAPER, Costs
from plait.plan.text import read_tree
from plait_lab.virtual.cluster import ClusterSetting, VirtualCluster, cut_by_time
from plait_lab.virtual.distribution import Balancing, Distribution
from plait_lab.virtual.gates import by_value
from plait_lab.virtual.local_plans import LocalPlans, LocalPolicy, better_plan
from plait_lab.workloads.keyed import keyed_query, keyed_tables

pytestmark = pytest.mark.slow

QUERY = keyed_query([["k"]] * 3, 1_000_000)
LEFT = read_tree(QUERY, "((s0 s1) s2)")
SELECTIVITIES = {str(e): 1 / 400 for e in QUERY.equalities}


def cluster() -> VirtualCluster:
    setting = ClusterSetting(
        QUERY, (LEFT,) * 3, (0,) * 10 + (1, 2), by_value("k", 12), quantum=0.1, costs=PAPER
    )
    return VirtualCluster(setting, cut_by_time(QUERY, keyed_tables(QUERY, 6000, 400, 1), 0.1))


@pytest.mark.parametrize("protocol", ["PTLB", "MSLB"])
def test_the_manager_balances_memory(protocol: Protocol) -> None:
    made = cluster()
    policy = BalancePolicy(by="memory", least_bytes=640, spread=False)
    balancing = Balancing(BalanceSetting(1.0, policy), 0.5, protocol)
    managed = Distribution(made, balancing)
    managed.begin()
    made.run(6.0)
    assert managed.decisions and all(record.done for record in made.moves.values())
    held = [sum(p.processors == (m,) for p in made.manager.places) for m in range(3)]
    assert max(held) <= 6 and min(held) >= 3, held
    assert {r.move.protocol for r in made.moves.values()} == {protocol}
    assert made.network.sent["ComputePartitionsToMove"] == len(made.moves)


def test_the_manager_may_be_limited_to_one_decision() -> None:
    made = cluster()
    policy = BalancePolicy(by="memory", least_bytes=640, spread=False)
    managed = Distribution(made, Balancing(BalanceSetting(1.0, policy), 0.5, "MSLB", rounds=1))
    managed.begin()
    made.run(6.0)
    assert len(managed.decisions) == 1


def test_a_machine_changes_its_plan_when_rates_change() -> None:
    policy = LocalPolicy(Costs(visit=1e-6), SELECTIVITIES)
    rates = {"s0": 100.0, "s1": 5.0, "s2": 5.0}
    assert str(better_plan(QUERY, LEFT, rates, policy).plan) == "(s0 (s1 s2))"
    assert better_plan(QUERY, LEFT, dict.fromkeys(rates, 9.0), policy).plan is None
    assert "not been seen" in better_plan(QUERY, LEFT, rates | {"s1": 0.0}, policy).reason


def test_only_the_machines_that_may_change_their_plans_do() -> None:
    made = cluster()
    eager = LocalPolicy(PAPER, SELECTIVITIES, every=0.5, margin=-1.0, only=frozenset({1}))
    plans = LocalPlans(made, eager)
    plans.begin()
    made.run(3.0)
    assert {machine for _, machine, _ in plans.changes} == {1}
