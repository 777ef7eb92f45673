from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.parties import MovePart, ProcessorParty, Split, also
from plait_lab.protocol.tags import Tag

PLACES = (Place((0,)), Place((0, 1, 2), spread=1, since=2), Place((1,)))
SPLIT = Split(0, PLACES)


def move(number: int, *groups: int) -> Move:
    return Move(number, "PTLB", groups, (0,), (1,))


@given(st.integers(0, 2), st.integers(0, 10))
def test_a_row_of_a_divided_stream_goes_to_one_and_others_to_all(stream: int, pick: int) -> None:
    found = SPLIT.route(1, stream, pick)
    assert found is not None and all(tag == Tag(2) for _, tag in found)
    assert [p for p, _ in found] == ([pick % 3] if stream == 1 else [0, 1, 2])


def test_groups_that_do_not_move_are_routed_as_before() -> None:
    assert SPLIT.begun(move(3, 0)).route(2, 0, 0) == SPLIT.route(2, 0, 0)


def test_a_move_begins_and_ends_for_its_own_groups() -> None:
    split = SPLIT.begun(move(5, 2)).begun(move(4, 0))
    assert [m.number for m in split.open] == [4, 5], "in the order of their numbers"
    after = split.over(move(5, 2), Place((0,), since=5))
    assert after.places == (*PLACES[:2], Place((0,), since=5))
    assert [m.number for m in after.open] == [4] and after.is_open(move(4, 0))
    stayed = split.over(move(5, 2))
    assert stayed.places == PLACES and stayed.is_over(move(5, 2))


@given(st.lists(st.tuples(st.integers(1, 9), st.sets(st.integers(0, 3), min_size=1)), max_size=6))
def test_what_has_ended_is_known_whatever_came_before(
    ended: list[tuple[int, set[int]]],
) -> None:
    """Numbers of a group's moves increase, so one that is not newer than the last is late."""
    split, processor, last = SPLIT, ProcessorParty(0, 1), dict[int, int]()
    for number, groups in sorted(ended, key=lambda one: one[0]):
        one = move(number, *sorted(groups))
        split, processor = split.over(one), processor.over(one)
        last |= dict.fromkeys(groups, number)
    for number in range(11):
        for group in range(4):
            over = number <= last.get(group, -1)
            asked = move(number, group)
            assert split.is_over(asked) == processor.is_over(asked) == over
    assert len(split.ended) <= 4, "bounded by the groups"


def test_a_processor_holds_the_groups_of_its_places() -> None:
    assert ProcessorParty.of(0, 2, PLACES).held == ((0, 0), (1, 2))
    assert ProcessorParty.of(3, 2, PLACES).held == ()


def test_what_a_move_brought_is_told_from_what_was_there() -> None:
    processor = ProcessorParty.of(0, 2, PLACES).with_groups(move(7, 1, 2))
    assert processor.held == ((0, 0), (1, 2), (1, 7), (2, 7))
    assert processor.of_move(move(7, 1, 2), brought=True) == ((1, 7), (2, 7))
    assert processor.of_move(move(7, 1, 2), brought=False) == ((1, 2),)
    assert processor.over(move(7, 1, 2), ((1, 2),)).held == ((0, 0), (1, 7), (2, 7))


def test_knowledge_of_a_move_replaces_what_was_known_before() -> None:
    processor = ProcessorParty(0, 2).within(MovePart(move(4, 1))).within(MovePart(move(3, 0), (0,)))
    newer = processor.within(MovePart(move(3, 0), (0, 1)))
    assert [p.move.number for p in newer.open] == [3, 4]
    assert newer.part(move(3, 0)).started == (0, 1)
    assert newer.part(move(9, 2)) == MovePart(move(9, 2)), "of others nothing is known"
    assert newer.watching == (move(3, 0),)


@given(st.lists(st.integers(0, 9)))
def test_numbers_are_a_sorted_set(numbers: list[int]) -> None:
    found: tuple[int, ...] = ()
    for number in numbers:
        found = also(found, number)
    assert found == tuple(sorted(set(numbers)))
