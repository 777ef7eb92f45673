"""Costs: kept, read back, refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import StatisticsError
from plait.optimize.costs import DEFAULT, PAPER, Costs, costs_path, from_mapping, load, save


def test_kept_and_read_back(tmp_path: Path) -> None:
    save(PAPER, tmp_path / "deep" / "costs.json")
    assert load(tmp_path / "deep" / "costs.json") == PAPER
    assert load(tmp_path / "missing.json") == DEFAULT


def test_where_they_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PLAIT_COSTS", str(tmp_path / "mine.json"))
    assert costs_path() == tmp_path / "mine.json"
    monkeypatch.delenv("PLAIT_COSTS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert costs_path() == tmp_path / "plait" / "costs.json"


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StatisticsError, match="cost of 'match' is -1"):
        Costs(match=-1)
    with pytest.raises(StatisticsError, match="no cost 'join'"):
        from_mapping({"join": 1.0})
    with pytest.raises(StatisticsError, match="not a number"):
        from_mapping({"match": "1"})
    (tmp_path / "bad.json").write_text("[")
    with pytest.raises(StatisticsError, match="no JSON"):
        load(tmp_path / "bad.json")
