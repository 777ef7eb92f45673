"""The pages of the documentation: their code runs, their pictures are right, the site is built."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import plait
from plait.cli import main
from plait.plan.picture import plan_svg

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
ON_SPARK = {"tutorial.md", "how-to/from-spark.md", "how-to/kafka-to-delta.md", "sites.md"}
"""Pages whose code wants Spark; `tests/spark/test_docs.py` and `test_sites.py` run it.

The one that wants Kafka too is run by `tests/integration/test_kafka_to_delta.py`.
"""


def blocks(page: str) -> list[str]:
    """The Python of a page, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def pages_with_code() -> set[str]:
    every = (path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    return {page for page in every if blocks(page)}


@pytest.mark.slow
@pytest.mark.parametrize("page", sorted(pages_with_code() - ON_SPARK))
def test_the_code_of_a_page_runs(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    log = logging.getLogger("plait")
    before = log.level
    try:
        exec(compile("\n".join(blocks(page)), page, "exec"), {"__name__": page})
    finally:
        log.setLevel(before)  # a page turns it up


@pytest.mark.slow
def test_the_tutorial_runs_in_one_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (DOCS / "tutorial.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^plait (generate .*)$", text, re.MULTILINE)
    assert main(command.split()) == 0
    code = [block for block in blocks("tutorial.md") if "spark" not in block]
    assert len(code) == 3
    exec(compile("\n".join(code), "tutorial.md", "exec"), {"__name__": "tutorial"})
    assert "plan (trades quotes news)" in capsys.readouterr().out


def test_what_wants_spark_is_run_elsewhere() -> None:
    assert {"how-to/late-rows.md", "how-to/budgets.md", *ON_SPARK} <= pages_with_code()


def test_the_pictures_of_plans_are_those_that_plait_draws() -> None:
    row = pa.schema([("sym", pa.string()), ("ts", pa.timestamp("us"))])
    q = plait.join(trades=row, quotes=row, news=row).on("sym").within("5 seconds")
    text = (DOCS / "concepts.md").read_text(encoding="utf-8")
    drawn = re.findall(r"<!-- plan (.*) -->\n(.*)\n", text)
    assert len(drawn) == 3
    for shape, picture in drawn:
        plan = q.plan(shape)
        assert picture == plan_svg(plan)


@pytest.mark.slow
def test_the_site_is_built_strictly_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    api = (tmp_path / "api.html").read_text()
    documented = set(re.findall(r'id="plait\.[\w.]*?(\w+)"', api))
    packages = {"errors", "sites", "spark", "testing"}
    assert set(plait.__all__) - {"__version__", *packages} <= documented
    for page in tmp_path.rglob("*.html"):
        text = page.read_text()
        assert not re.search(r'<(?:script|img|iframe)[^>]*src="(?:https?:)?//', text), page
        assert not re.search(r'<link[^>]*rel="stylesheet"[^>]*href="(?:https?:)?//', text), page
