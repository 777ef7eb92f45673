"""Public names that are imported when they are asked for: `import plait` alone costs nothing."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping

_SPARK = ("pyspark", "pandas", "google", "py4j")
"""Packages that come with `plait[spark]` only."""


def lazy(package: str, places: Mapping[str, str]) -> Callable[[str], object]:
    """Make the `__getattr__` of a package from the modules that its public names are in.

    A name may also be that of a subpackage. A name that needs Spark, where Spark is not installed,
    is a function that says so.

    >>> lazy("plait", {"join": "plait.api"})("join").__name__
    'join'
    """

    def get(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        try:
            module = importlib.import_module(places[name])
            return module if module.__name__ == f"{package}.{name}" else getattr(module, name)
        except ModuleNotFoundError as error:
            if str(error.name).partition(".")[0] not in _SPARK:
                raise
            return _without_spark(f"{package}.{name}", str(error.name))

    return get


def _without_spark(name: str, missing: str) -> object:
    """Stand in for a function that needs Spark where Spark is not installed."""

    def needs_spark(*arguments: object, **named: object) -> None:
        from plait.errors import MissingRequirement

        raise MissingRequirement(
            f"{name} needs Spark, and {missing} is not installed",
            remedy="install Plait with its Spark packages: pip install 'plait[spark]'",
        )

    needs_spark.__name__ = needs_spark.__qualname__ = name.rpartition(".")[2]
    needs_spark.__doc__ = "Not available here: pip install 'plait[spark]' brings what it needs."
    return needs_spark
