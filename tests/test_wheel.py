"""A release, installed into an empty environment with what it says that it needs, and no more."""

from __future__ import annotations

import email
import os
import re
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib.metadata import Distribution, PathDistribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import plait

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
EXAMPLE = """
import pyarrow as pa, plait
ts = pa.array([1_000_000, 2_000_000, 9_000_000], pa.timestamp("us"))
a = pa.table({"ts": ts, "k": ["x", "y", "x"]})
b = pa.table({"ts": ts, "k": ["x", "x", "y"]})
q = plait.join(a=a, b=b).on("k").within("5 s").select("a.k", "b.ts")
"""


BUILD_SDIST = "import sys; from setuptools.build_meta import build_sdist; build_sdist(sys.argv[1])"


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built as a release is, from a copy of the source: nothing is left in the tree."""
    work = tmp_path_factory.mktemp("wheel")
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        if (ROOT / name).is_file():
            (work / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
            (work / "tree" / name).write_bytes((ROOT / name).read_bytes())
    run([sys.executable, "-c", BUILD_SDIST, str(work)], cwd=work / "tree")
    (found,) = work.glob("*.tar.gz")
    return found


@pytest.fixture(scope="module")
def wheel(sdist: Path) -> Path:
    """Built from the source distribution, so that both are tried."""
    made = ["--no-deps", "--no-build-isolation", "--no-index", "-w", str(sdist.parent), str(sdist)]
    run([sys.executable, "-m", "pip", "wheel", *made])
    (found,) = sdist.parent.glob("*.whl")
    return found


def run(command: list[str], cwd: Path | None = None, **environment: str) -> str:
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**kept, **environment}, check=False, cwd=cwd
    )
    assert done.returncode == 0, f"{command} failed:\n{done.stdout}\n{done.stderr}"
    return done.stdout


def installed(wheel: Path, where: Path, *extras: str) -> Path:
    """An environment with the wheel and what it requires, which is linked from this one."""
    venv.create(where, with_pip=False, symlinks=True)
    (packages,) = where.glob("lib/python*/site-packages")
    target = ["--no-deps", "--no-index", "--target", str(packages), str(wheel)]
    run([sys.executable, "-m", "pip", "install", "--no-compile", *target])
    (metadata,) = packages.glob("plait-*.dist-info")
    needed: dict[str, Distribution] = {}
    for extra in ("", *extras):
        required(PathDistribution(metadata), extra, needed)
    for found in needed.values():
        for top in {file.parts[0] for file in found.files or () if ".." not in file.parts}:
            if not (packages / top).exists():
                (packages / top).symlink_to(Path(str(found.locate_file(top))).resolve())
    return where / "bin" / "python"


def required(
    one: Distribution, extra: str, seen: dict[str, Distribution]
) -> dict[str, Distribution]:
    """What a distribution requires, and what that requires."""
    for text in one.requires or ():
        wanted = Requirement(text)
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": extra}):
            continue
        name = re.sub(r"[-_.]+", "-", wanted.name).lower()
        if name not in seen:
            seen[name] = distribution(name)
            required(seen[name], "", seen)
    return seen


def test_a_release_has_one_version_and_says_what_it_needs(sdist: Path, wheel: Path) -> None:
    assert sdist.name == f"plait-{plait.__version__}.tar.gz"
    with zipfile.ZipFile(wheel) as files:
        (named,) = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        metadata = email.message_from_bytes(files.read(named))
    assert metadata["Version"] == plait.__version__
    assert {"java", "spark", "testing"} <= set(metadata.get_all("Provides-Extra", []))
    assert metadata["License-Expression"] == "Apache-2.0"
    assert "Operating System :: POSIX :: Linux" in metadata.get_all("Classifier", [])
    newest = re.search(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest is not None
    assert "unreleased" in newest[1] or newest[1].startswith(plait.__version__)


def test_a_release_has_the_product_and_no_laboratory(sdist: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as files:
        held = files.namelist()
        (scripts,) = [name for name in held if name.endswith("entry_points.txt")]
        assert files.read(scripts).decode().split() == [
            "[console_scripts]",
            "plait",
            "=",
            "plait.cli:main",
        ]
    tops = {name.partition("/")[0] for name in held}
    assert tops == {"plait", f"plait-{plait.__version__}.dist-info"}
    modules = {name for name in held if name.endswith(".py")}
    assert modules == {
        path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/plait").rglob("*.py")
    }
    assert {"plait/py.typed", "plait/dashboard/style.css"} <= set(held)
    with tarfile.open(sdist) as archive:
        within = {name.partition("/")[2] for name in archive.getnames()} - {""}
    assert {name.partition("/")[0] for name in within} == {
        "LICENSE",
        "MANIFEST.in",
        "PKG-INFO",
        "README.md",
        "pyproject.toml",
        "setup.cfg",
        "src",
    }
    assert {f"src/{name}" for name in modules} <= within


def test_without_spark(wheel: Path, tmp_path: Path) -> None:
    python = str(installed(wheel, tmp_path / "env"))
    assert "joins many live streams" in run([python, "-c", "import plait; help(plait)"])
    assert run([python, "-m", "plait", "--version"]) == f"plait {plait.__version__}\n"
    missing = "import importlib.util as u; print([u.find_spec(n) for n in ('pyspark', 'pandas')])"
    assert run([python, "-c", missing]) == "[None, None]\n"
    told = run([python, "-c", "from plait import *; import plait; print(hasattr(plait, 'attach'))"])
    assert told == "True\n"
    assert run([python, "-c", EXAMPLE + "print(q.run().table.num_rows)"]) == "2\n"
    refusals = """
for ask in (q.to_df, lambda: plait.attach(None), plait.spark.doctor):
    try:
        ask()
    except plait.errors.PlaitError as error:
        print(type(error).__name__, error)
"""
    said = run([python, "-c", EXAMPLE + refusals]).splitlines()
    assert len(said) == 3 and "not a DataFrame" in said[0], said
    assert all("pip install 'plait[spark]'" in line for line in said[1:]), said
    command = str(python).removesuffix("python") + "plait"
    assert "rebalance" in run([python, "-m", "plait", "query", "--help"])
    assert not Path(command).exists() or "run" in run([command, "--help"])
    failed = subprocess.run(
        [python, "-m", "plait", "bench", "kernel-output"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert failed.returncode == 2 and "bench" in failed.stderr, failed.stderr
    assert "Traceback" not in failed.stderr
    lab = "import importlib.util as u; print(u.find_spec('plait_lab'))"
    assert run([python, "-c", lab]) == "None\n"


def without_java(where: Path) -> str:
    """A PATH with everything that this one has, except for Java."""
    where.mkdir()
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).glob("*"):
            if not program.name.startswith("java") and not (where / program.name).is_symlink():
                (where / program.name).symlink_to(program)
    return str(where)


@pytest.mark.integration
def test_with_spark_and_nothing_but_python(wheel: Path, tmp_path: Path) -> None:
    """`pip install 'plait[spark,java]'` on a machine that has no Java."""
    python = str(installed(wheel, tmp_path / "env", "spark", "java"))
    on_spark = """
import shutil; print("installed", shutil.which("java"))
from pyspark.sql import SparkSession
plait.spark.provide_java()
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.sparkContext.setLogLevel("OFF")
frames = [spark.createDataFrame(t.to_pandas()) for t in (a, b)]
q = plait.join(a=frames[0], b=frames[1]).on("k").within("5 s").select("a.k", "b.ts")
print("results", q.to_df().count())
print("bad", [line for line in str(plait.spark.doctor(spark)).splitlines() if "wrong" in line])
version = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.version')")
print("Java", version.first()[0])
"""
    said = run(
        [python, "-c", EXAMPLE + on_spark],
        PATH=without_java(tmp_path / "bin"),
        JAVA_HOME="",
        XDG_CACHE_HOME=str(tmp_path / "cache"),
        PYSPARK_PYTHON=python,
        SPARK_LOCAL_IP="127.0.0.1",
        SPARK_LOCAL_DIRS=str(tmp_path / "scratch"),
    )
    assert "installed None\n" in said and "Java 21." in said, said
    assert "results 2\n" in said and "bad []" in said, said
