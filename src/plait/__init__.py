"""Plait joins many live streams at once and re-plans itself while they flow.

What users import is here, and is loaded when it is asked for: `join` and `sql` ask a question,
`attach` controls a running query, `spark` looks after sessions, `sites` places joins over sites,
`testing` has the definition of an answer. The packages below are in the order of the import
contracts: a lower one never imports a higher one. Begin with `api/join.py` for what users
touch, with `engine/driver.py` for how rows are joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.exports import lazy

if TYPE_CHECKING:
    from plait import errors as errors
    from plait import sites as sites
    from plait import spark as spark
    from plait import testing as testing
    from plait.adapt.events import Event as Event
    from plait.adapt.policy import PlanPolicy as PlanPolicy
    from plait.api.join import Join as Join
    from plait.api.join import join as join
    from plait.api.running import Running as Running
    from plait.api.running import attach as attach
    from plait.api.sql import Sql as Sql
    from plait.api.sql import sql as sql
    from plait.dashboard.server import Console as Console
    from plait.dashboard.serving import MetricsServer as MetricsServer
    from plait.groups.balance.policy import BalancePolicy as BalancePolicy
    from plait.local.host import Counts as Counts
    from plait.local.run import Execution as Execution
    from plait.local.run import Results as Results
    from plait.node.reports.progress import BatchCounts as BatchCounts
    from plait.node.reports.progress import BatchProgress as BatchProgress
    from plait.node.reports.progress import Progress as Progress
    from plait.optimize.planning import Planned as Planned
    from plait.plan.migration import Migration as Migration
    from plait.plan.routed import Plan as Plan
    from plait.query.query import Query as Query

__version__ = "0.1.0"
__all__ = [
    "BalancePolicy",
    "BatchCounts",
    "BatchProgress",
    "Console",
    "Counts",
    "Event",
    "Execution",
    "Join",
    "MetricsServer",
    "Migration",
    "Plan",
    "PlanPolicy",
    "Planned",
    "Progress",
    "Query",
    "Results",
    "Running",
    "Sql",
    "__version__",
    "attach",
    "errors",
    "join",
    "sites",
    "spark",
    "sql",
    "testing",
]

_PLACES = {
    "BalancePolicy": "plait.groups.balance.policy",
    "BatchProgress": "plait.node.reports.progress",
    "Console": "plait.dashboard.server",
    "BatchCounts": "plait.node.reports.progress",
    "Counts": "plait.local.host",
    "Event": "plait.adapt.events",
    "Execution": "plait.local.run",
    "Join": "plait.api.join",
    "MetricsServer": "plait.dashboard.serving",
    "Migration": "plait.plan.migration",
    "Plan": "plait.plan.routed",
    "PlanPolicy": "plait.adapt.policy",
    "Planned": "plait.optimize.planning",
    "Progress": "plait.node.reports.progress",
    "Query": "plait.query.query",
    "Results": "plait.local.run",
    "Running": "plait.api.running",
    "Sql": "plait.api.sql",
    "attach": "plait.api.running",
    "errors": "plait.errors",
    "join": "plait.api.join",
    "sites": "plait.sites",
    "spark": "plait.spark",
    "sql": "plait.api.sql",
    "testing": "plait.testing",
}

__getattr__ = lazy(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
