"""What queries on Spark need: versions of packages, of Spark itself, and of Java.

Each check is a function of what was found, so that it can be tried with versions that are not
installed here. This module imports neither pyspark nor pandas.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping

from plait.errors import MissingRequirement

NEEDED = {
    "pyspark": ((4, 3), None, "results may be wrong or lost before 4.3 (SPARK-57003)"),
    "pandas": ((2, 2), (3,), "Spark hands batches over as its frames"),
    "pyarrow": ((24,), None, "packets are its record batches"),
    "protobuf": ((6, 30), None, "Spark speaks to state stores through it"),
}
"""Packages: the first version that will do, the first that will not, and what they are for."""

JAVA = 17
"""The oldest Java that Spark 4.3 runs on."""

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


def check_java(
    environment: Mapping[str, str] | None = None, ask: Callable[[str], str] | None = None
) -> int:
    """The version of the Java that Spark would start, or the error that there is none, or too old.

    `ask` returns what `java -version` prints; raise FileNotFoundError where there is no such file.
    """
    where = os.environ if environment is None else environment
    home = where.get("JAVA_HOME")
    command = os.path.join(home, "bin", "java") if home else "java"
    remedy = f"install Java {JAVA} or newer, and let JAVA_HOME name its directory"
    try:
        said = (_ask if ask is None else ask)(command)
    except OSError as error:
        place = f"JAVA_HOME is {home!r}, but there is no bin/java" if home else "there is no java"
        raise MissingRequirement(f"Spark needs Java, and {place}", remedy=remedy) from error
    found = java_version(said)
    if found is None or found < JAVA:
        spoken = "tells no version" if found is None else f"is Java {found}"
        raise MissingRequirement(
            f"{command} {spoken}, but Spark needs {JAVA} or newer", remedy=remedy
        )
    return found


def check_environment() -> None:
    """Refuse an environment in which a Spark session cannot start or run Plait."""
    check_packages()
    check_java()


def java_version(text: str) -> int | None:
    """The feature version in what `java -version` prints.

    >>> java_version('openjdk version "17.0.15" 2025-04-15'), java_version('"1.8.0_292"')
    (17, 8)
    """
    found = re.search(r'"(\d+)(?:\.(\d+))?', text)
    if found is None:
        return None
    first = int(found[1])
    return int(found[2]) if first == 1 and found[2] else first


def version(text: str) -> tuple[int, ...]:
    """The leading numbers of a version.

    >>> version("4.3.0.dev1"), version("4.3-SNAPSHOT")
    ((4, 3, 0), (4, 3))
    """
    found = re.match(r"\d+(\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found else ()


def _installed(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _ask(command: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise FileNotFoundError(command)
    done = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    return done.stderr + done.stdout


def _dotted(numbers: tuple[int, ...]) -> str:
    return ".".join(map(str, numbers))
