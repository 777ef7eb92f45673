"""The joins of this driver, and changes of their plans while a query runs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from plait.errors import MigrationError
from plait.groups.balance.policy import BalancePolicy
from plait.plan.jtree import Join, Leaf
from plait.plan.migration import Strategy
from plait.plan.text import Given, read_plan
from plait.query.query import Query
from plait.spark.control.directory import Control

if TYPE_CHECKING:  # whoever only reads needs neither Spark nor an engine
    from pyspark.sql.streaming.query import StreamingQuery

    from plait.adapt.setting import Setting
    from plait.groups.routing.routing import Routing


@dataclass(frozen=True, slots=True)
class RegisteredJoin:
    """A join that `to_df` has made a DataFrame of in this driver."""

    query: Query
    name: str | None
    control: Control
    routing: Routing
    balance: BalancePolicy | None = None
    """How its partition groups are balanced; None: they stay."""
    active: frozenset[int] | None = None
    """The processors that take part since the checkpoint was rebalanced; None: all."""
    plan: str = ""
    """The plan that it begins with, as text."""
    setting: Setting | None = None
    """How its processors choose their plans; None: they keep the one they have."""
    interval: int = 0
    """After how many batches the session's file sinks compact their logs; 0: unknown."""


_REGISTERED: list[RegisteredJoin] = []


def register(join: RegisteredJoin) -> None:
    """Remember where decisions about a join go and where its reports are.

    Two joins of one query that share a folder would write over each other's reports.
    """
    control = join.control
    shared = any(j.control.folder == control.folder and j.query != join.query for j in _REGISTERED)
    if shared and not control.temporary:
        called = "no name" if join.name is None else f"the name {join.name!r}"
        warnings.warn(
            f"another join was made for the same checkpoint with {called}: if both are in one "
            "query, plait.attach(query) cannot tell them apart; give each a name of its own: "
            "to_df(name='...')",
            stacklevel=2,
        )
    _REGISTERED.append(join)


def joins_of(query: str) -> list[RegisteredJoin]:
    """The joins that have reported for a query, by its id, the last one made first."""
    return [join for join in reversed(_REGISTERED) if join.control.reports(query).exist()]


def registered_names() -> list[str]:
    """The names of all joins that this driver has made."""
    return sorted({join.name for join in _REGISTERED if join.name is not None})


def find_join(query: str, name: str | None) -> RegisteredJoin | None:
    """The join of that name in a running query, by the query's id."""
    return next((join for join in joins_of(query) if join.name == name), None)


def migrate(
    query: StreamingQuery,
    plan: Given,
    strategy: Strategy | Literal["auto"] = "moving-state",
    *,
    name: str | None = None,
) -> int:
    """Change a running query to another plan (`Running.migrate`); return the epoch's number."""
    join = running(query, name, f"it cannot go on with {plan}")
    return pin(join, str(query.id), plan, strategy)


def pin(join: RegisteredJoin, query: str, plan: Given, strategy: Strategy | Literal["auto"]) -> int:
    """Add an epoch with a plan for a running query, by its id; the epoch's number."""
    from plait.engine.migrate.strategy import check_request

    if plan is None:
        raise MigrationError(
            "no plan is given", remedy="give one; release() lets the processors choose"
        )
    wanted = read_plan(join.query, plan)
    if not isinstance(wanted, Join | Leaf):
        raise MigrationError(
            f"on Spark a query cannot go over to {wanted} while it runs",
            remedy="give a tree of joins, or start the query with this router",
        )
    check_request(join.query, wanted, wanted, strategy, "any")
    followed = join.control.reports(query).newest_epoch()
    return join.control.epochs.add(wanted, strategy, followed).number


def release(query: StreamingQuery, *, name: str | None = None) -> int:
    """Let processors choose their plans again (`Running.release`); return the epoch's number."""
    join = running(query, name, "its plans cannot change")
    return unpin(join, str(query.id))


def unpin(join: RegisteredJoin, query: str) -> int:
    """Add an epoch that lets processors choose their plans again; the epoch's number."""
    followed = join.control.reports(query).newest_epoch()
    return join.control.epochs.add(None, "auto", followed).number


def running(query: StreamingQuery, name: str | None, so: str) -> RegisteredJoin:
    """The join of that name in a query that runs, or a MigrationError that says what follows."""
    if not query.isActive:
        raise MigrationError(
            f"the query {query.name or query.id} has stopped, so {so}",
            remedy="start it again with this plan: to_df(plan=...)",
        )
    join = find_join(str(query.id), name)
    if join is None:
        raise MigrationError(
            f"no join of the query {query.name or query.id} has reported a batch yet, at least "
            "not where this driver can see it",
            remedy="ask again after its first batch; on a cluster, tell to_df(checkpoint=...) a "
            "folder that driver and executors share, and with Spark Connect the client too",
        )
    return join
