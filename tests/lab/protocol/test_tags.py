from __future__ import annotations

from itertools import product

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.tags import Tag, finds, is_old, placed


def test_oracle_every_result_is_reported_by_exactly_one_of_two_processors() -> None:
    """Two rows of a group during PTLB move 3 from 0 to 1; each is old, flagged by an earlier move
    that was given up, or new: then the receiver has a copy."""
    at_sender = {"old": Tag(), "given up": Tag(flag=2), "new": Tag(flag=3)}
    for kinds in product(at_sender, repeat=3):
        sender = finds([at_sender[kind] for kind in kinds])
        receiver = finds([Tag(since=3)] * 3) if set(kinds) == {"new"} else False
        # What consists of rows of move 2 alone was reported by the receiver of that move.
        assert sender + receiver == (0 if set(kinds) == {"given up"} else 1)


def test_dead_rows_make_no_result() -> None:
    assert not finds([Tag(since=1), Tag(since=2)])
    assert not finds([Tag(since=1, flag=5), Tag(since=2, flag=5)])
    assert finds([Tag(since=2), Tag(since=2, flag=5)])


def test_a_sender_waits_for_all_that_only_it_has() -> None:
    """That is what can still be in a result which the receiver does not find."""
    for since, flag in product((0, 1), (0, 2, 3)):
        assert is_old(Tag(since, flag), 0, 3) == (since == 0 and flag != 3)


def test_after_a_move_its_groups_are_at_the_receivers() -> None:
    assert placed(Move(7, "PTLB", (1,), (0,), (1,))) == Place((1,), None, 7)
    assert placed(Move(8, "MSLB", (1,), (1,), (2, 0), 1)) == Place((2, 0), 1, 8)
