"""Headers are read as they were written, also those of earlier versions."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.errors import CheckpointDamaged, CheckpointMismatch
from plait.node.durable.header import VERSION, Header, stored_plan
from plait.node.epochs import Epoch, Followed
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Teddies
from plait.testing.examples import clique

QUERY = clique(3)
TREE = parse_shape(QUERY, "((a b) c)")
FULL = Header(
    newest=(1, 2, BEFORE_ALL_TIMES),
    batch=4,
    token="state 4",
    heard=(10, 20, 30),
    total={"results": 7, "rows": {"a": 3}},
    followed=Followed().after(Epoch(3, TREE, origin="here")),
    plan=stored_plan(TREE),
    asked=stored_plan(mjoin(QUERY)),
    loop={"batches": 4},
    checksum=99,
    unwritten={"reports": 1},
    notes=("a note",),
    floors=(1, BEFORE_ALL_TIMES, 3),
)


def test_every_field_survives() -> None:
    assert Header.from_json(FULL.to_json(), QUERY) == FULL
    new = Header.new(QUERY)
    assert Header.from_json(new.to_json(), QUERY) == new
    assert new.newest == (BEFORE_ALL_TIMES,) * 3 and not new.token


def test_a_header_of_version_1_is_read() -> None:
    """What it does not say is as it was meant then."""
    text = json.dumps({"batch": 2, "token": "t", "newest": [5, 6, 7], "epoch": 4, "plan": None})
    header = Header.from_json(text, QUERY)
    assert (header.batch, header.token, header.newest) == (2, "t", (5, 6, 7))
    assert header.heard is None and header.checksum is None
    assert header.followed.last == 4 and header.followed.held is None
    assert header.goes_on(TREE) and header.goes_on(mjoin(QUERY)), "it did not say what was asked"


def test_a_later_version_is_refused() -> None:
    given = json.loads(FULL.to_json()) | {"version": VERSION + 1}
    with pytest.raises(CheckpointMismatch, match="written by a later version"):
        Header.from_json(json.dumps(given), QUERY)


@pytest.mark.parametrize(
    "spoil",
    [
        lambda h: h.pop("newest"),
        lambda h: h.update(newest="soon"),
        lambda h: h.update(newest=[1, 2]),
        lambda h: h.update(batch=None),
        lambda h: h.update(version="two"),
        lambda h: h.update(heard=[1, "x", 3]),
        lambda h: h.update(floors=[1, 2]),
        lambda h: h.update(floors=5),
    ],
)
def test_damage_is_named(spoil: Any) -> None:
    given = json.loads(FULL.to_json())
    spoil(given)
    with pytest.raises(CheckpointDamaged, match="header in the state"):
        Header.from_json(json.dumps(given), QUERY)
    for text in ("", "[]", '{"newest": [1', "null"):
        with pytest.raises(CheckpointDamaged, match="header in the state"):
            Header.from_json(text, QUERY)


def test_the_plan_that_ran_goes_on_unless_another_one_is_asked_for() -> None:
    assert FULL.goes_on(mjoin(QUERY)) and FULL.running(QUERY, mjoin(QUERY)) == TREE
    other = parse_shape(QUERY, "(a (b c))")
    assert not FULL.goes_on(other) and FULL.running(QUERY, other) == other
    routed = replace(FULL, plan=None, asked=None)
    assert routed.running(QUERY, Teddies()) == Teddies()
