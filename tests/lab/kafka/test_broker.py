"""What is missing for Kafka is named; `tests/integration` runs the broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from plait.errors import MissingRequirement
from plait_lab.kafka import broker


def test_a_part_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(broker, "_BROKER", tmp_path / "nowhere")
    assert broker.missing() == ("a Kafka broker is missing: ./dev setup --integration fetches it")
    with (
        pytest.raises(MissingRequirement, match="setup --integration"),
        broker.running_broker(tmp_path / "files"),
    ):
        pass
    assert not (tmp_path / "files").exists()
    monkeypatch.setattr(broker, "_BROKER", tmp_path)
    monkeypatch.setattr(broker, "CONNECTOR", tmp_path / "nowhere")
    assert broker.missing().startswith("Spark's Kafka connector is missing")


def test_it_listens_at_one_address_only(tmp_path: Path) -> None:
    lines = broker.properties(tmp_path, "127.0.0.1", 1, 2).splitlines()
    settings = dict(line.split("=", 1) for line in lines)
    assert settings["listeners"] == "PLAINTEXT://127.0.0.1:1,CONTROLLER://127.0.0.1:2"
    assert settings["advertised.listeners"] == "PLAINTEXT://127.0.0.1:1"
