"""The tactic that runs a plan."""

from __future__ import annotations

import pytest

from plait.engine.tactics.eddy import EddyTactic
from plait.engine.tactics.make import make_tactic
from plait.engine.tactics.teddy import TeddyTactic
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.plan.jtree import mjoin
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.examples import clique

QUERY = clique(3)


@pytest.mark.parametrize(
    ("plan", "kind"), [(mjoin(QUERY), TreeTactic), (Eddies(), EddyTactic), (Teddies(), TeddyTactic)]
)
def test_each_plan_has_its_tactic(plan: Plan, kind: type[object]) -> None:
    windows = Windows(QUERY, {})
    tactic = make_tactic(windows, plan, None)
    assert isinstance(tactic, kind) and tactic.plan == plan
    assert all(base.window.indexes for base in windows.bases), "the indexes that it needs are there"
