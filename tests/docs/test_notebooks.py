"""The notebooks of the documentation run from the first cell to the last, and show pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"
ON_SPARK = (pytest.mark.integration, pytest.mark.xdist_group("spark"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "first-join.ipynb",
        "drift-and-replan.ipynb",
        pytest.param("skew-and-rebalance.ipynb", marks=ON_SPARK),
    ],
)
def test_a_notebook_runs(name: str, tmp_path: Path) -> None:
    book: Any = nbformat.reads((NOTEBOOKS / name).read_text(), as_version=4)  # type: ignore[no-untyped-call]
    assert not any(cell.get("outputs") for cell in book.cells), "outputs are not kept"
    run = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(book, timeout=300, kernel_name="python3", resources=run).execute()
    shown = [output for cell in book.cells for output in cell.get("outputs", [])]
    assert any("<svg" in str(output.get("data", {}).get("text/html")) for output in shown)


def test_every_notebook_is_run() -> None:
    named = {"first-join", "drift-and-replan", "skew-and-rebalance"}
    assert {path.stem for path in NOTEBOOKS.glob("*.ipynb")} == named
