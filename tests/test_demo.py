"""The demo, on a short stretch of its market."""

from __future__ import annotations

import importlib.util
import re

import pytest

from plait.cli import main
from plait.cli.market import market, specs


def test_the_demo_proves_its_answer(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--seconds", "3", "--seed", "7"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert "mjoin → results" in out
    assert "Late rows: 0." in out
    assert "5 of the results" in out
    figures = dict(re.findall(r"^(Plait|DuckDB) +([\d,]+ +[0-9a-f]{16}) ", out, re.MULTILINE))
    assert figures["Plait"] == figures["DuckDB"]
    assert not figures["Plait"].startswith("0 ")
    assert "The same results, every one of them." in out


def test_the_demo_without_duckdb(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def find_spec(name: str, package: str | None = None) -> None:
        assert name == "duckdb"

    monkeypatch.setattr(importlib.util, "find_spec", find_spec)
    assert main(["demo", "--seconds", "1"]) == 0
    assert "DuckDB is not installed" in capsys.readouterr().out


def test_the_market_is_the_same_every_time() -> None:
    first, second = market(1, 3), market(1, 3)
    assert first == second
    assert first != market(1, 4)
    assert list(first) == [spec.name for spec in specs()]
    assert first["quotes"].column_names == ["ts", "sym", "bid", "ask"]
    assert set(first["orders"].column("side").to_pylist()) == {"buy", "sell"}
