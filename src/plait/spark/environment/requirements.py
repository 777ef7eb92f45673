"""What queries on Spark need: versions of packages and of Spark itself; Java is in `java`.

Each check is a function of what was found, so that it can be tried with versions that are not
installed here. Importing this module imports neither pyspark nor pandas.
"""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Callable

from plait.errors import MissingRequirement

NEEDED = {
    "pyspark": ((4, 3), None, "results may be wrong or lost before 4.3 (SPARK-57003)"),
    "pandas": ((2, 2), (3,), "Spark hands batches over as its frames"),
    "pyarrow": ((24,), None, "packets are its record batches"),
    "protobuf": ((6, 30), None, "Spark speaks to state stores through it"),
}
"""Packages: the first version that will do, the first that will not, and what they are for."""

_PACKAGES = {"pyspark": ("pyspark", "pyspark-client")}
"""What brings a module under another name: clients of Spark Connect need no jars."""
_REMEDY = "install Plait with its Spark packages: pip install 'plait[spark]'"


def check_packages(installed: Callable[[str], str | None] | None = None) -> None:
    """Refuse Python packages that are missing or of a wrong version.

    >>> check_packages({"pyspark": "4.3.0", "pandas": "2.2.3", "pyarrow": "24.0"}.get)
    Traceback (most recent call last):
    plait.errors.MissingRequirement: protobuf is not installed: Spark speaks to state stores ...
    """
    look = _installed if installed is None else installed
    for name, (first, beyond, purpose) in NEEDED.items():
        found = look(name)
        if found is None:
            raise MissingRequirement(f"{name} is not installed: {purpose}", remedy=_REMEDY)
        if version(found) < first:
            raise MissingRequirement(
                f"{name} is {found}, but must be {_dotted(first)} or newer: {purpose}",
                remedy=_REMEDY,
            )
        if beyond is not None and version(found) >= beyond:
            raise MissingRequirement(
                f"{name} is {found}, but must be older than {_dotted(beyond)}: {purpose}",
                remedy=_REMEDY,
            )


def check_spark(running: str) -> None:
    """Refuse a Spark, as a session tells its version, that is too old.

    >>> check_spark("4.3.0")
    >>> check_spark("4.2.1")
    Traceback (most recent call last):
    plait.errors.MissingRequirement: this session runs on Spark 4.2.1, ...
    """
    first = NEEDED["pyspark"][0]
    if version(running) < first:
        raise MissingRequirement(
            f"this session runs on Spark {running}, but must run on {_dotted(first)} or newer",
            remedy="connect to a newer Spark, or upgrade the cluster",
        )


def version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> version("4.3.0.dev1"), version("4.3-SNAPSHOT")
    ((4, 3, 0), (4, 3))
    """
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _installed(name: str) -> str | None:
    for package in _PACKAGES.get(name, (name,)):
        try:
            return importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return _pyspark_of_spark() if name == "pyspark" else None


def _pyspark_of_spark() -> str | None:
    """The PySpark that `spark-submit` puts on the path from Spark's own folder: no package."""
    try:
        from pyspark.version import __version__
    except ImportError:
        return None
    return str(__version__)


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
