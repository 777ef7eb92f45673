"""What was counted, in the terms of the cost model."""

from __future__ import annotations

from random import Random

import pytest

from plait.local.host import LocalRun
from plait.local.observe import tree_of
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import mjoin
from plait.plan.routed import Eddies
from plait_lab.bench.cost_model import Options, compare
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.workloads.stationary import random_setting


@pytest.mark.slow
@pytest.mark.parametrize("window", ["global", "per stream", "intervals"])
@pytest.mark.parametrize("graph", ["chain", "clique", "cycle"])
def test_predictions_are_near_what_is_counted(graph: str, window: str) -> None:
    random = Random(3)
    setting = random_setting(random, 4, graph=graph, window=window, work=40_000)
    options = Options(counting=4.0, repeats=1)
    tables = setting.tables(6 * setting.window, 1)
    for plan in (mjoin(setting.query), sample_plan(setting.query, random)):
        found = compare(setting, plan, tables, DEFAULT, options)
        assert abs(found.operations_error) < 0.25
        assert abs(found.tuples_error) < 0.15
        if found.predicted.results > 1_000:
            assert found.counted.results == pytest.approx(found.predicted.results, rel=0.35)


def test_only_trees_are_observed() -> None:
    setting = random_setting(Random(1), 3, work=10_000)
    with pytest.raises(TypeError, match="no tree of joins"):
        tree_of(LocalRun(setting.query, Eddies()))
