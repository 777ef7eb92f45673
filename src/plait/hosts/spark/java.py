"""Which Java Spark would start, found out without Spark."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from importlib.util import find_spec

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""


def missing() -> str:
    """What is missing to run Spark here, with what to do about it; empty if nothing is."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; pip install 'plait[spark]' installs it"
    version = java_version()
    if version is not None and version >= OLDEST:
        return ""
    found = "no Java was found" if version is None else f"only Java {version} was found"
    return (
        f"Spark needs Java {OLDEST} or newer, and {found}; install one (for example apt-get "
        "install openjdk-17-jre-headless, or brew install openjdk@17), or set JAVA_HOME to it"
    )


def java_version() -> int | None:
    """The version of the Java that Spark would start; None where there is none.

    Spark takes the one in JAVA_HOME, else the one on the PATH.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    if java is None:
        return None
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return parse_java_version(said.stderr)


def parse_java_version(text: str) -> int | None:
    """The version that `java -version` tells.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_402"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if found is None else int(found[1])
