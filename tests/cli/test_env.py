"""`plait env`: the machine that Plait runs on; `java` is in tests/spark/environment."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import pytest

from plait.cli import main
from plait.optimize.costs import DEFAULT, load
from plait.spark.environment.doctor import Finding, Findings, Verdict


@pytest.mark.slow
def test_calibrate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "costs.json"
    assert main(["env", "calibrate", "--out", str(path), "--repeats", "1"]) == 0
    out = capsys.readouterr().out
    assert f"written: {path}" in out
    found = load(path)
    assert found != DEFAULT, "something was measured"
    for name, cost in json.loads(path.read_text()).items():
        assert getattr(found, name) == cost
        assert f"{name:<8} {1e9 * cost:12.2f} ns" in out


@pytest.mark.slow
def test_warm_compiles_the_kernels_in_silence(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["env", "warm"]) == 0
    assert capsys.readouterr().out == ""


def test_doctor_prints_a_line_for_each_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cases: list[tuple[Verdict, int]] = [("ok", 0), ("wrong", 1)]
    for verdict, code in cases:
        found = Findings((Finding("Java", verdict, "it fits"),))
        monkeypatch.setattr(
            "plait.spark.environment.doctor.doctor", partial(Findings, found.findings)
        )
        assert main(["env", "doctor"]) == code
        assert capsys.readouterr().out.split() == ["Java", verdict, "it", "fits"]
