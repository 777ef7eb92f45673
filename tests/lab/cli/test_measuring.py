"""`./dev experiment`: verdicts are shown and counted, and only claims of the project fail."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer

from plait.errors import PlaitError
from plait_lab.cli import main, measuring
from plait_lab.experiments import registry
from plait_lab.reporting.comparisons import Smaller
from plait_lab.reporting.report import Report, Series, by_paper, by_project


def register(monkeypatch: pytest.MonkeyPatch, ours: Smaller) -> None:
    """One experiment, with a claim of a paper that is contradicted and one of the project."""

    def run(name: str, options: object, note: object) -> Report:
        del options, note
        report = Report(name, {}, seed="000")
        report.series = [Series("line", [1.0, 2.0], [1.0, 2.0], "s")]
        report.claims = [
            by_paper("less", "section 6", "it is less", Smaller([2.0], [1.0]), "it is more"),
            by_project("ours", "ours is less", ours),
        ]
        return report

    monkeypatch.setattr(registry, "names", lambda: ["cape/fig9"])
    monkeypatch.setattr(registry, "run", run)


def test_a_contradicted_paper_is_shown_and_does_not_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register(monkeypatch, Smaller([1.0], [2.0]))
    measuring.measure("experiment", "cape/fig9", False, None, None, [])
    shown = capsys.readouterr().out
    assert "contradicted  section 6: it is less" in shown
    assert "why: it is more" in shown
    assert "0 reproduced, 0 deviates, 1 contradicted" in shown


@pytest.mark.slow
def test_a_claim_of_the_project_that_the_run_contradicts_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    register(monkeypatch, Smaller([2.0], [1.0]))
    with pytest.raises(typer.Exit):
        measuring.measure("experiment", "cape/fig9", False, None, None, [])
    assert "FAILS  ours is less" in capsys.readouterr().out
    with pytest.raises(typer.Exit):
        measuring.measure_all(tmp_path, run=True, report=False)
    assert "cape/fig9: ours" in capsys.readouterr().out


@pytest.mark.slow
def test_all_write_their_figures_and_the_page(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    register(monkeypatch, Smaller([1.0], [2.0]))
    monkeypatch.chdir(tmp_path)
    figures = tmp_path / "figures"
    measuring.measure_all(figures, run=True, report=False)
    data = json.loads((figures / "cape-fig9.json").read_text())
    assert [c["origin"] for c in data["claims"]] == ["paper", "project"]
    assert set(data["took"]) == {"wall", "cpu"}
    assert (figures / "images" / "cape-fig9.png").is_file()
    assert "it is more" in (figures / "reproduction.md").read_text()
    with pytest.raises(PlaitError, match="docs/"):
        measuring.measure_all(figures, run=False, report=True)
    (tmp_path / "docs").mkdir()
    measuring.measure_all(figures, run=False, report=True)
    assert (tmp_path / "docs" / "images" / "cape-fig9.png").is_file()
    assert "cape/fig9" in (tmp_path / "docs" / "reproduction.md").read_text()
    with pytest.raises(PlaitError, match="where"):
        measuring.measure_all(None, run=True, report=False)


@pytest.mark.slow
def test_what_there_is_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    for command, noun in (("bench", "benchmark"), ("experiment", "experiment")):
        assert main([command, "--list"]) == 0
        names = capsys.readouterr().out.splitlines()
        assert names and (names == sorted(names) or command == "experiment")
        assert main([command, "nonsense"]) == 2
        error = capsys.readouterr().err
        assert f"there is no {noun} 'nonsense'" in error and names[0] in error
        assert main([command]) == 2
        assert f"which {noun}?" in capsys.readouterr().err
    assert main(["bench", "kernel-ways", "--option", "="]) == 2
    assert "--option" in capsys.readouterr().err


def test_json_to_standard_output_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    register(monkeypatch, Smaller([1.0], [2.0]))
    measuring.measure("experiment", "cape/fig9", False, Path("-"), None, [])
    assert json.loads(capsys.readouterr().out)["name"] == "cape/fig9"
