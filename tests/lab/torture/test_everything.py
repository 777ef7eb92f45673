"""All kinds in turn: each has its share of the time and a line, and a failure stops no other."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from plait_lab.cli import main
from plait_lab.torture import everything
from plait_lab.torture.campaign import KINDS, Failure
from plait_lab.torture.everything import Kind, Outcome, kinds, run_all
from plait_lab.torture.tally import Tally


def _kind(name: str, share: float, ran: list[tuple[str, float]], *, wrong: bool = False) -> Kind:
    def run(seconds: float, seed: int, say: Callable[[str], None]) -> tuple[Tally, list[Failure]]:
        ran.append((name, seconds))
        return Tally(queries=seed), [Failure("7/1", "1 results lost")] if wrong else []

    def repeat(case: str, say: Callable[[str], None]) -> tuple[Tally, list[Failure]]:
        raise AssertionError(f"nobody repeats {case}")

    return Kind(name, share, run, repeat)


def test_every_kind_runs_for_its_share_of_the_time() -> None:
    ran: list[tuple[str, float]] = []
    told: list[Outcome] = []
    chosen = [_kind("a", 1.0, ran, wrong=True), _kind("b", 3.0, ran)]
    run_all(100.0, 5, lambda _: None, told.append, chosen)
    assert ran == [("a", 25.0), ("b", 75.0)]
    assert [outcome.text() for outcome in told] == [
        "a: 5 queries, 1 FAILURES",
        "b: 5 queries, no answer was wrong",
    ]


def test_all_kinds_are_there() -> None:
    names = [kind.name for kind in kinds()]
    assert names == [*KINDS, "spark-local", "spark-cluster", "spark", "spark-sites"]


@pytest.mark.parametrize("wrong", [False, True])
def test_the_command(
    wrong: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    ran: list[tuple[str, float]] = []
    both = [_kind("simulated", 1.0, ran), _kind("spark-sites", 1.0, ran, wrong=wrong)]
    monkeypatch.setattr(everything, "kinds", lambda *_: both)
    path = tmp_path / "found.json"
    command = ["torture", "--all", "--seconds", "10", "--seed", "3", "--json", str(path)]
    assert main(command) == int(wrong)
    said = capsys.readouterr().out
    assert "simulated: 3 queries" in said
    assert ("./dev torture --host spark-sites --case 7/1" in said) == wrong
    assert ("No answer was wrong." in said) == (not wrong)
    found = json.loads(path.read_text())["kinds"]
    assert [kind["host"] for kind in found] == ["simulated", "spark-sites"]
    assert len(found[1]["failures"]) == int(wrong)


def test_who_interrupts_it_keeps_what_was_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> tuple[Tally, list[Failure]]:
        raise KeyboardInterrupt

    last = Kind("spark-sites", 1.0, interrupted, interrupted)
    monkeypatch.setattr(everything, "kinds", lambda *_: [_kind("local", 1.0, []), last])
    path = tmp_path / "found.json"
    assert main(["torture", "--all", "--seconds", "1", "--seed", "3", "--json", str(path)])
    assert "local: 3 queries" in capsys.readouterr().out
    assert [kind["host"] for kind in json.loads(path.read_text())["kinds"]] == ["local"]
