"""What a join on Spark is asked to do, besides its query and its DataFrames."""

from __future__ import annotations

from dataclasses import dataclass

from plait.adapt.policy import PlanPolicy
from plait.groups.balance.policy import BalancePolicy
from plait.optimize.budget import Budget
from plait.plan.routed import Plan
from plait.tuning import USUAL, Tuning


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinOptions:
    """The options of one join on Spark."""

    plan: Plan
    """The plan that processors begin with."""
    processors: int | None = None
    """The number of processors; None: one per shuffle partition, or as in the checkpoint."""
    late: bool | str = False
    """Whether rows set aside are returned too, or the name of their column (see `aside`)."""
    checkpoint: str | None = None
    """The checkpoint that the query will be started with; it is checked beforehand."""
    name: str | None = None
    """The name under which reports appear; needed where one query has several joins."""
    policy: PlanPolicy | None = None
    """The policy by which each processor changes its plan; None: plans stay."""
    budget: Budget | None = None
    """The limits of all processors together; each gets an equal share."""
    balance: BalancePolicy | None = None
    """The policy by which partition groups move between processors; None: they stay."""
    upgrade: str | None = None
    """The code of an agreed change of the query since the checkpoint (see `upgrades`)."""
    table: str | None = None
    """The location of a Delta table: processors write its files, and return their names."""
    tuning: Tuning = USUAL
    """Sizes that results do not depend on."""
