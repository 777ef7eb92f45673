"""Agreeing to a question that has changed, without Spark; see `tests/spark` for running queries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.errors import CheckpointMismatch
from plait.groups.routing.routing import route
from plait.node.durable.contract import contract
from plait.node.durable.upgrade import code_of
from plait.query.expr import Column
from plait.query.query import Output
from plait.spark.checkpoint.upgrades import agree, agreed, is_agreed, refused_changes
from plait.spark.control.directory import Control
from plait.testing.examples import clique

QUERY = clique(2)
OTHER = replace(QUERY, select=(Output("t", Column("a", "ts")),))
ROUTING = route(QUERY.graph, 1)
STORED, ASKED = contract(QUERY, ROUTING).to_json(), contract(OTHER, ROUTING)


def test_a_change_waits_for_somebody_to_agree(tmp_path: Path) -> None:
    control = Control(str(tmp_path / "plait" / "join"), True)
    assert agreed(control, STORED, contract(QUERY, ROUTING), None) is None
    with pytest.raises(CheckpointMismatch, match=rf"plait query upgrade {tmp_path}, or to_df"):
        agreed(control, STORED, ASKED, None)
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    (tmp_path / "commits" / "0").touch()
    (tmp_path / "metadata").write_text("{}")
    (found, change) = refused_changes(str(tmp_path))["join"]
    assert change.code == code_of(STORED, ASKED) and not is_agreed(found, change)
    agree(found, change)
    assert is_agreed(found, change) and agreed(control, STORED, ASKED, None) == STORED


def test_in_an_object_store_the_code_agrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    control = Control("s3a://bucket/checkpoint/plait/join", True)
    with pytest.raises(CheckpointMismatch, match="from the next batch on: to_df") as refused:
        agreed(control, STORED, ASKED, None)
    assert "plait query upgrade" not in str(refused.value)
    assert agreed(control, STORED, ASKED, code_of(STORED, ASKED)) == STORED
    assert not list(tmp_path.iterdir()), "no folder of this machine is taken for the store"
