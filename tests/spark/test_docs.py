"""The code of the documentation that wants Spark, in one session."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import plait
from plait.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

DOCS = Path(__file__).parents[2] / "docs"


def code(page: str) -> str:
    text = (DOCS / page).read_text(encoding="utf-8")
    return "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))


def test_from_sparks_joins(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = code("how-to/from-spark.md").replace('parquet("in/', f'parquet("{tmp_path}/in/')
    for name in ("trades", "quotes", "news"):
        (tmp_path / "in" / name).mkdir(parents=True)
    names = {"spark": spark, "plait": plait}
    exec(compile(text, "from-spark.md", "exec"), names)
    results = names["results"]
    assert results.isStreaming and results.columns == ["sym", "price", "bid", "story"]  # type: ignore[attr-defined]


def test_the_tutorial(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    made = ["generate", "--preset", "market", "--seconds", "3", "--seed", "1"]
    assert main([*made, "--out", str(tmp_path / "data")]) == 0
    text = re.sub(r'"(data/|tutorial-)', rf'"{tmp_path}/\1', code("tutorial.md"))
    text = text.replace('f"data/', f'f"{tmp_path}/data/')
    monkeypatch.setattr(plait.spark, "session", lambda: spark, raising=False)
    names: dict[str, object] = {}
    exec(compile(text, "tutorial.md", "exec"), names)
    told = capsys.readouterr().out
    found = re.search(r"([\d,]+) results in", told)
    assert found is not None, told
    assert int(found[1].replace(",", "")) == names["results"].table.num_rows > 0  # type: ignore[attr-defined]
