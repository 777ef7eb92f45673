"""Plait joins many live streams at once and re-plans itself while they flow."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plait import errors as errors
    from plait.adapt.balance_policy import BalancePolicy as BalancePolicy
    from plait.adapt.placement import PlacementPolicy as PlacementPolicy
    from plait.adapt.policy import Policy as Policy
    from plait.api import Join as Join
    from plait.api import join as join
    from plait.api import sql as sql
    from plait.dashboard.serving import console as console
    from plait.dashboard.serving import metrics as metrics
    from plait.files.delta_vacuum import vacuum as vacuum
    from plait.hosts.spark.aside import each_batch as each_batch
    from plait.hosts.spark.examine import check as check
    from plait.hosts.spark.java import provide_java as provide_java
    from plait.hosts.spark.joins import migrate as migrate
    from plait.hosts.spark.joins import release as release
    from plait.hosts.spark.kafka import from_kafka as from_kafka
    from plait.hosts.spark.moves import move as move
    from plait.hosts.spark.partitions import partitions as partitions
    from plait.hosts.spark.progress import listen as listen
    from plait.hosts.spark.progress import progress as progress
    from plait.hosts.spark.requirements import check_environment as check_environment
    from plait.hosts.spark.session import local_session as local_session
    from plait.hosts.spark.settings import configure as configure
    from plait.hosts.spark.sites import sites as sites
    from plait.hosts.spark.why import why as why
    from plait.plan.sites import SiteLink as SiteLink

__version__ = "0.1.0"
__all__ = [
    "BalancePolicy",
    "Join",
    "PlacementPolicy",
    "Policy",
    "SiteLink",
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
    "sql",
    "vacuum",
    "why",
]

_SPARK = ("pyspark", "pandas", "google", "py4j")
"""Packages that come with `plait[spark]` only."""

_PLACES = {
    "BalancePolicy": "plait.adapt.balance_policy",
    "Join": "plait.api",
    "PlacementPolicy": "plait.adapt.placement",
    "Policy": "plait.adapt.policy",
    "SiteLink": "plait.plan.sites",
    "join": "plait.api",
    "sql": "plait.api",
    "check": "plait.hosts.spark.examine",
    "check_environment": "plait.hosts.spark.requirements",
    "console": "plait.dashboard.serving",
    "metrics": "plait.dashboard.serving",
    "configure": "plait.hosts.spark.settings",
    "each_batch": "plait.hosts.spark.aside",
    "from_kafka": "plait.hosts.spark.kafka",
    "listen": "plait.hosts.spark.progress",
    "local_session": "plait.hosts.spark.session",
    "migrate": "plait.hosts.spark.joins",
    "move": "plait.hosts.spark.moves",
    "partitions": "plait.hosts.spark.partitions",
    "progress": "plait.hosts.spark.progress",
    "provide_java": "plait.hosts.spark.java",
    "release": "plait.hosts.spark.joins",
    "sites": "plait.hosts.spark.sites",
    "vacuum": "plait.files.delta_vacuum",
    "why": "plait.hosts.spark.why",
}


def __getattr__(name: str) -> object:
    """Import what is asked for when it is asked for: `import plait` alone costs nothing."""
    import importlib

    if name == "errors":
        return importlib.import_module("plait.errors")
    if name in _PLACES:
        try:
            return getattr(importlib.import_module(_PLACES[name]), name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in _SPARK:
                raise
            return _without_spark(name, str(error.name))
    raise AttributeError(f"module 'plait' has no attribute {name!r}")


def _without_spark(name: str, package: str) -> object:
    """What stands for a function that needs Spark where Spark is not installed."""

    def needs_spark(*arguments: object, **named: object) -> None:
        from plait.errors import MissingRequirement

        raise MissingRequirement(
            f"plait.{name} needs Spark, and {package} is not installed",
            remedy="install Plait with its Spark packages: pip install 'plait[spark]'",
        )

    needs_spark.__name__ = needs_spark.__qualname__ = name
    needs_spark.__doc__ = "Not available here: pip install 'plait[spark]' brings what it needs."
    return needs_spark


def __dir__() -> list[str]:
    return sorted(__all__)
