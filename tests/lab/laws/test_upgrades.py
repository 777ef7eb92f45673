"""The definition of answers of questions that change: watermarks, windows and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from plait.query.bounds import Bounds
from plait.query.query import Query
from plait.testing.examples import clique
from plait.testing.oracle.answer import oracle, split_late
from plait.testing.oracle.fates import LATE
from plait_lab.laws.strategies.histories import Batch
from plait_lab.laws.strategies.questions import drawn_questions
from plait_lab.laws.upgrades import Answer, Asked, full_answers, phases_of

SECOND = 1_000_000


def asked(within: int, delay: int) -> Query:
    """Two streams with one key."""
    query = clique(2)
    streams = tuple(replace(stream, delay=delay * SECOND) for stream in query.streams)
    width = within * SECOND
    return replace(query, streams=streams, bounds=Bounds(((0, width), (width, 0))))


def answers(asked: Sequence[Asked], batches: Sequence[Batch]) -> list[Answer]:
    return full_answers(phases_of(asked, batches))


def row(second: int) -> dict[str, object]:
    return {"ts": second * SECOND, "k": 1}


@pytest.mark.parametrize(
    ("delays", "late"),
    [
        ((10, 10, 10), [0, 0, 1]),
        ((10, 60, 60), [0, 0, 0]),
        ((10, 60, 10), [0, 0, 1]),
        ((60, 10, 60), [0, 1, 1]),
    ],
)
def test_watermarks_stand_still_and_never_go_back(delays: tuple[int, ...], late: list[int]) -> None:
    """At 100 s, rows of 90 s and 85 s come, then 105 s, then 93 s."""
    a, b = clique(2).names
    batches: list[Batch] = [
        {a: [row(100)], b: [row(100)]},
        {a: [row(90), row(105)] if late[1] == 0 else [row(85), row(105)]},
        {a: [row(93)]},
    ]
    questions = [Asked(n, asked(5, delay)) for n, delay in enumerate(delays)]
    found = [len(answer.aside[a][LATE]) for answer in answers(questions, batches)]
    assert found == late


def test_one_question_asked_again_and_again_is_one_question() -> None:
    query, chance = asked(5, 3), Random(1)
    batches: list[Batch] = [
        {name: [row(chance.randrange(8 * b, 8 * b + 12)) for _ in range(4)] for name in query.names}
        for b in range(6)
    ]
    found = answers([Asked(n, query) for n in range(6)], batches)
    on_time, late = split_late(query, batches)
    assert sum(answer.results.total() for answer in found) == oracle(query, on_time).total() > 0
    for name in query.names:
        assert [r for answer in found for r in answer.aside[name][LATE]] == late[name]


def test_rows_that_a_narrow_window_needs_no_longer_are_gone() -> None:
    a, b = clique(2).names
    batches: list[Batch] = [{a: [row(100)]}, {b: [row(110)]}, {b: [row(111)]}]
    wide, narrow = asked(20, 0), asked(1, 0)
    found = answers([Asked(0, wide), Asked(1, wide), Asked(2, wide)], batches)
    assert [answer.results.total() for answer in found] == [0, 1, 1]
    found = answers([Asked(0, wide), Asked(1, narrow), Asked(2, wide)], batches)
    assert [answer.results.total() for answer in found] == [0, 0, 0]


def test_drawn_questions_change_everything_that_may_change() -> None:
    query = asked(5, 3)
    drawn = [drawn_questions(query, 8, Random(seed)) for seed in range(40)]
    assert all(one[0].since == 0 and 2 <= len(one) <= 4 for one in drawn)
    assert any(one[0].query == one[-1].query for one in drawn), "back to the first"
    every = [question for one in drawn for _, question in one]
    assert len({question.bounds for question in every}) > 2
    assert len({question.streams[0].delay for question in every}) > 2
    assert len({question.select for question in every}) > 5
