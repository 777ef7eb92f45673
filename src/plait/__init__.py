"""Plait joins many live streams at once and re-plans itself while they flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plait.exports import lazy

if TYPE_CHECKING:
    from plait import errors as errors
    from plait import sites as sites
    from plait import spark as spark
    from plait import testing as testing
    from plait.adapt.policy import PlanPolicy as PlanPolicy
    from plait.api.question import Join as Join
    from plait.api.question import join as join
    from plait.api.question import sql as sql
    from plait.dashboard.serving import console as console
    from plait.dashboard.serving import metrics as metrics
    from plait.groups.balance.policy import BalancePolicy as BalancePolicy
    from plait.spark.balance.moves import move as move
    from plait.spark.checkpoint.why import why as why
    from plait.spark.control.joins import migrate as migrate
    from plait.spark.control.joins import release as release
    from plait.spark.control.progress import listen as listen
    from plait.spark.control.progress import progress as progress
    from plait.spark.environment.doctor import check as check
    from plait.spark.environment.java import provide_java as provide_java
    from plait.spark.environment.partitions import partitions as partitions
    from plait.spark.environment.requirements import check_environment as check_environment
    from plait.spark.environment.session import local_session as local_session
    from plait.spark.environment.settings import configure as configure
    from plait.spark.io.delta_vacuum import vacuum as vacuum
    from plait.spark.io.kafka import from_kafka as from_kafka
    from plait.spark.join.aside import each_batch as each_batch

__version__ = "0.1.0"
__all__ = [
    "BalancePolicy",
    "Join",
    "PlanPolicy",
    "__version__",
    "check",
    "check_environment",
    "configure",
    "console",
    "each_batch",
    "errors",
    "from_kafka",
    "join",
    "listen",
    "local_session",
    "metrics",
    "migrate",
    "move",
    "partitions",
    "progress",
    "provide_java",
    "release",
    "sites",
    "spark",
    "sql",
    "testing",
    "vacuum",
    "why",
]

_PLACES = {
    "errors": "plait.errors",
    "sites": "plait.sites",
    "spark": "plait.spark",
    "testing": "plait.testing",
    "BalancePolicy": "plait.groups.balance.policy",
    "Join": "plait.api.question",
    "PlanPolicy": "plait.adapt.policy",
    "join": "plait.api.question",
    "sql": "plait.api.question",
    "check": "plait.spark.environment.doctor",
    "check_environment": "plait.spark.environment.requirements",
    "console": "plait.dashboard.serving",
    "metrics": "plait.dashboard.serving",
    "configure": "plait.spark.environment.settings",
    "each_batch": "plait.spark.join.aside",
    "from_kafka": "plait.spark.io.kafka",
    "listen": "plait.spark.control.progress",
    "local_session": "plait.spark.environment.session",
    "migrate": "plait.spark.control.joins",
    "move": "plait.spark.balance.moves",
    "partitions": "plait.spark.environment.partitions",
    "progress": "plait.spark.control.progress",
    "provide_java": "plait.spark.environment.java",
    "release": "plait.spark.control.joins",
    "vacuum": "plait.spark.io.delta_vacuum",
    "why": "plait.spark.checkpoint.why",
}

__getattr__ = lazy(__name__, _PLACES)


def __dir__() -> list[str]:
    return sorted(__all__)
