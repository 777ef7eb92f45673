"""The experiments of seed 002 on small clusters: that they run, and what holds even then."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from plait_lab.experiments import registry
from plait_lab.experiments.dcape.adaptations import Options
from plait_lab.experiments.dcape.scaling import Options as ScaleOptions
from plait_lab.experiments.dcape.scaling import StatisticalCluster
from plait_lab.experiments.dcape.settings import NONE, Adaptation, Phase, Run, Scenario

SMALL = Scenario(
    6.0, (Phase(0.0, (40.0,) * 3), Phase(3.0, (40.0, 4.0, 4.0))), 18.0, 1e-3, 3, 6, 0.5
)


def test_section_5_1() -> None:
    scenario = Options().scenario
    homes = np.bincount(scenario.homes, minlength=scenario.machines)
    assert len(scenario.homes) == 100 and homes[0] == 50
    assert homes[1:].min() >= 8 and homes[1:].max() <= 9
    tables = scenario.tables(1)
    assert tables["A"].num_rows == pytest.approx(100 * scenario.seconds, rel=0.05)
    slow = 100 * 30 + 5 * (scenario.seconds - 30)
    assert tables["B"].num_rows == pytest.approx(slow, rel=0.05)
    assert len(scenario.query.equalities) == 2 and len(scenario.query.residuals) == 2


@pytest.mark.slow
def test_every_adaptation_finds_the_same_results() -> None:
    tables = SMALL.tables(1)
    found = set()
    for adaptation in (
        NONE,
        Adaptation(local=True, every=1.0),
        Adaptation(local=True, every=1.0, strategy="parallel-track"),
        Adaptation("PTLB", every=1.0),
        Adaptation("MSLB", local=True, every=1.0),
    ):
        run = Run(SMALL, adaptation, tables).through()
        found.add(run.worked_off())
        if adaptation.balance is not None:
            assert any(record.done for record in run.cluster.moves.values())
        if run.local is not None:
            assert run.local.changes
    assert len(found) == 1


@pytest.mark.slow
def test_ptlb_takes_2w_on_machines_that_keep_up() -> None:
    scenario = replace(SMALL, phases=(Phase(0.0, (40.0,) * 3),), seconds=30.0, speed=1.0)
    run = Run(scenario, Adaptation("PTLB", every=2.0, rounds=1), scenario.tables(2)).through()
    assert run.lengths("PTLB") and max(run.lengths("PTLB")) == pytest.approx(12.0, abs=2.0)
    assert run.lengths("MSLB") == []


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dcape/fig13", "dcape/fig9"])
def test_a_figure_is_data(name: str) -> None:
    options = {"machines": "2", "groups": "4", "seeds": "1", "slices": "5", "every": "2"}
    if name == "dcape/fig13":
        options |= {"window": "5", "change": "3", "windows": "3", "compared": "2", "bin": "1",
                    "fast": "30", "slow": "3", "balance": "4"}  # fmt: skip
    else:
        options |= {"shortest": "3", "longest": "4", "points": "2"}
    report = registry.run(name, options)
    data = json.loads(json.dumps(report.to_dict(), allow_nan=False))
    assert (data["seed"], data["runtime"]) == ("002", "virtual")
    assert {claim["origin"] for claim in data["claims"]} <= {"paper", "project"}
    assert report.holds or name == "dcape/fig9"


def test_a_move_takes_as_many_messages_in_every_cluster() -> None:
    options = ScaleOptions(groups=12, most=60.0)
    per_move = set()
    for machines in (10, 30):
        made = StatisticalCluster(options, machines, "MSLB")
        before = made.imbalance
        made.run()
        assert made.imbalance < before / 2
        per_move.add(sum(made.network.sent.values()) / len(made.lengths))
    assert per_move == {26.0}
