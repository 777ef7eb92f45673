"""The page on what reproduces: every experiment of the files is on it, also one nobody knows."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait.errors import PlaitError
from plait_lab.experiments import registry
from plait_lab.experiments.items import ITEMS, PAPERS
from plait_lab.experiments.reproduction import file_name, page, read_figures, summary
from plait_lab.reporting.comparisons import Same, Smaller
from plait_lab.reporting.report import Report, by_paper, by_project

TESTS = Path(__file__).parents[2]


def report(name: str, seed: str) -> Report:
    made = Report(name, {}, seed=seed)
    made.claims = [
        by_paper("a", "section 9", "less | than", Smaller([1.0], [2.0]), "no", theirs="half"),
        by_paper("b", "section 9", "fewer", Smaller([2.0], [1.0]), "it is more",
                 covers=("equation 3",)),
        by_project("c", "equal", Same([1, 1])),
    ]  # fmt: skip
    return made


def write(folder: Path, *reports: Report) -> list[str]:
    for made in reports:
        figures = made.to_dict() | {"took": {"wall": 2.0, "cpu": 1.0}}
        (folder / file_name(made.name, "json")).write_text(json.dumps(figures))
    return [made.name for made in reports]


def test_experiments_that_are_added_are_taken_in(tmp_path: Path) -> None:
    names = write(tmp_path, report("dcape/fig10", "002"), report("dcape/fig7", "002"),
                  report("sites/table3", "001"))  # fmt: skip
    figures = read_figures(tmp_path, [*names, "not/run"])
    assert [f["name"] for f in figures] == ["dcape/fig7", "dcape/fig10", "sites/table3"]
    text = page(figures, "images")
    assert PAPERS["001"] in text and PAPERS["002"] in text
    assert "![dcape/fig7](images/dcape-fig7.png)" in text
    assert r"| section 9 | less \| than | reproduced |" in text
    assert "| section 9 | fewer | contradicted | 2 against 1, ratio 2 |  | it is more |" in text
    assert "| equation 3 |  | contradicted: fewer" in text
    assert "- Ours, holds: equal: 1 (equal)" in text
    assert summary(figures) == "Of 6 sentences: 3 reproduced, 0 deviates, 3 contradicted."


def test_without_figures_there_is_no_page(tmp_path: Path) -> None:
    with pytest.raises(PlaitError, match="no figures"):
        read_figures(tmp_path, registry.names())


def test_items_of_a_paper_have_names_of_their_own() -> None:
    names = [(item.seed, item.name) for item in ITEMS]
    assert len(names) == len(set(names))


def test_every_item_is_tested_where_it_says() -> None:
    for item in ITEMS:
        assert (TESTS / item.test).is_file(), item
        assert item.seed in PAPERS


def test_the_page_in_the_documentation_covers_every_experiment() -> None:
    docs = TESTS.parent / "docs"
    text = (docs / "reproduction.md").read_text(encoding="utf-8")
    families = ("cape", "dcape", "qualified", "teddies")
    for name in (n for n in registry.names() if n.startswith(families)):
        assert f"### {name}\n" in text, "run `./dev experiment --all --json DIR --report`"
        assert (docs / "images" / file_name(name, "png")).is_file()
