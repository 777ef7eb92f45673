"""The README's example runs as it stands: over what `plait generate` makes, in a plain session."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plait.cli import main

README = Path(__file__).parents[1] / "README.md"


def blocks() -> list[str]:
    """The Python in the README, in order."""
    return re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's first command was run."""
    where = tmp_path_factory.mktemp("readme")
    made = ["generate", "--preset", "market", "--seconds", "10", "--seed", "1"]
    assert main([*made, "--out", str(where / "data")]) == 0
    return where


def run(text: str, folder: Path, zone: str) -> str:
    """What a program prints that is run in a process of its own, in a time zone."""
    quiet = {"PYSPARK_SUBMIT_ARGS": "--master local[2] --conf spark.ui.enabled=false pyspark-shell"}
    local = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "TZ": zone}
    done = subprocess.run(
        [sys.executable, "-c", text],
        cwd=folder,
        env={**os.environ, **local, **quiet},
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "execution of UDF" not in done.stderr, "the steps of Spark's workers are not shown"
    return done.stdout


def test_there_is_one_example_and_it_fits_on_a_screen() -> None:
    (text,) = blocks()
    assert "SparkSession" in text
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 100


def test_what_the_readme_links_to_is_there() -> None:
    linked = re.findall(r"\]\(([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert len(linked) > 15
    assert [name for name in linked if not (README.parent / name).exists()] == []


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_example_on_spark_in_a_plain_session_in_berlin(folder: Path) -> None:
    """The zone of the machine is that of the session; the tutorial asks the same over tables."""
    told = run(blocks()[0], folder, "Europe/Berlin")
    found = re.search(r"([\d,]+) results in", told)
    assert found is not None, told
    tutorial = (README.parent / "docs" / "tutorial.md").read_text(encoding="utf-8")
    local = re.findall(r"```python\n(.*?)```", tutorial, re.DOTALL)[:2]
    said = run("\n".join(local), folder, "UTC")
    assert found[1].replace(",", "") in said.split()
