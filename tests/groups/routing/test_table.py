"""Routing tables: what may move, and what the next table says."""

from __future__ import annotations

import json

import pytest

from plait.errors import MoveError, SourceError
from plait.groups.moves.move import Move, Protocol
from plait.groups.routing.table import Table, initial

TABLE = initial([0, 0, 1, 1])


def move(
    *groups: int,
    number: int = 6,
    protocol: Protocol = "MSLB",
    senders: tuple[int, ...] = (0,),
    receivers: tuple[int, ...] = (1,),
    spread: int | None = None,
) -> Move:
    return Move(number, protocol, groups, senders, receivers, spread)


def test_a_move_is_two_tables() -> None:
    begun = TABLE.begin(move(0, 1, number=1), 7, 2)
    assert (begun.number, begun.since, begun.places) == (1, 7, TABLE.places)
    assert begun.moving == {0, 1}
    ended = begun.end(1, 9)
    assert (ended.number, ended.since, ended.moving) == (2, 9, frozenset())
    assert ended.places == ((1,), (1,), (1,), (1,))
    assert ended.ended == begun.under_way
    assert ended.begin(move(2, number=2, senders=(1,), receivers=(0,)), 11, 2).ended == ()


def test_a_move_that_is_given_up_leaves_groups_where_they_were() -> None:
    begun = TABLE.begin(move(0, number=1), 7, 2)
    left = begun.give_up(1, 8)
    assert left.places == TABLE.places and left.given_up == begun.under_way and not left.moving


def test_a_group_is_spread_and_put_together() -> None:
    spread = TABLE.begin(move(0, number=1, receivers=(0, 1), spread=2), 5, 2).end(1, 6)
    assert spread.places[0] == (0, 1) and spread.spread == ((0, 2),)
    back = spread.begin(move(0, number=2, senders=(0, 1), receivers=(0,)), 7, 2).end(2, 8)
    assert back.places[0] == (0,) and back.spread == ()


def test_tables_follow_each_other_in_batches_too() -> None:
    begun = TABLE.begin(move(0, number=1), 7, 2)
    with pytest.raises(MoveError, match="table 1 holds from batch 7 on, the next one cannot"):
        begun.end(1, 7)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (move(), "names no group"),
        (move(9), "there is no group 9: there are 4, numbered from 0"),
        (move(-1), "there is no group -1"),
        (move(0, receivers=(2,)), "there is no processor 2: there are 2"),
        (move(0, receivers=(0,)), "group 0 is on processor 0 already"),
        (move(0, senders=(1,), receivers=(0,)), "group 0 is on processor 0, not on 1"),
        (move(3, senders=(1,), receivers=(0,)), "group 3 is moving already"),
        (move(0, number=5), "there was a move 5 already"),
        (move(0, 0), "named twice"),
        (move(0, receivers=(0, 1)), "needs the stream whose rows are divided"),
        (move(0, spread=1), "needs the stream whose rows are divided"),
        (move(0, protocol="PTLB", receivers=(0, 1), spread=1), "PTLB moves groups from one"),
    ],
)
def test_what_makes_no_sense_is_refused_by_name(wanted: Move, message: str) -> None:
    table = TABLE.begin(move(3, number=5, senders=(1,), receivers=(0,)), 1, 2)
    with pytest.raises(MoveError, match=message):
        table.begin(wanted, 2, 2)


def test_one_table_may_begin_and_end_several_moves() -> None:
    begun = TABLE.changed(3, 2, begin=[move(0, number=1), move(1, number=2)])
    assert begun.moving == {0, 1} and begun.last == 2
    after = begun.changed(
        4, 2, begin=[move(2, number=3, senders=(1,), receivers=(0,))], end=[1], give_up=[2]
    )
    assert after.places == ((1,), (0,), (1,), (1,)) and after.moving == {2}
    assert [m.number for m in (*after.ended, *after.given_up)] == [1, 2]


def test_a_group_that_arrives_does_not_leave_with_the_same_table() -> None:
    """What it takes in is stored with the batch, and what it exports is what was stored before."""
    begun = TABLE.begin(move(0, number=1), 3, 2)
    back = move(0, number=2, senders=(1,), receivers=(0,))
    with pytest.raises(MoveError, match="group 0 is moving already"):
        begun.changed(4, 2, begin=[back], end=[1])


def test_numbers_of_moves_that_have_ended_are_not_used_again() -> None:
    ended = TABLE.begin(move(0, number=1), 3, 2).end(1, 4)
    with pytest.raises(MoveError, match="there was a move 1 already"):
        ended.begin(move(1, number=1), 5, 2)


def test_a_move_that_is_not_under_way_cannot_end() -> None:
    with pytest.raises(MoveError, match="no move 3 is under way"):
        TABLE.end(3, 1)
    with pytest.raises(MoveError, match="no move 3 is under way"):
        TABLE.give_up(3, 1)


def test_json_brings_a_table_back() -> None:
    table = TABLE.begin(move(0, number=1, receivers=(0, 1), spread=2), 5, 2).end(1, 6)
    table = table.begin(move(1, number=2, protocol="PTLB"), 8, 2)
    assert Table.from_dict(json.loads(json.dumps(table.to_dict()))) == table


@pytest.mark.parametrize("damage", [{"places": 3}, {"number": "x"}, {"under_way": [{}]}])
def test_what_is_no_table_is_refused(damage: dict[str, object]) -> None:
    with pytest.raises(SourceError, match="it is no routing table"):
        Table.from_dict(TABLE.to_dict() | damage)
