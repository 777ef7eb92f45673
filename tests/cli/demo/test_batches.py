"""What the demo says of a hot spot: never that a move was not complete after it said it was."""

from __future__ import annotations

import pytest

from plait.adapt.events import Event
from plait.cli.demo.batches import DemoBatch, moves_of
from plait.cli.demo.story import moves_summary

MOVE = {"groups": [3], "senders": [0], "receivers": [0, 1], "protocol": "MSLB"}
DECIDED = moves_of(
    [Event("weighed", 1, 0, {"decision": {"moves": [MOVE], "reasons": ["one group is divided"]}})]
)
SPREAD = moves_of([Event("relocated", 2, 0, {"done": True, "move": MOVE})])


def hot(*moves: tuple[str, ...]) -> list[DemoBatch]:
    return [
        DemoBatch(
            number=number,
            rows=10,
            results=5,
            late=0,
            seconds=0.1,
            routed=(9, 1) if number < 2 else (5, 5),
            loads=(9.0, 1.0) if number < 2 else (5.0, 5.0),
            moves=told,
        )
        for number, told in enumerate(moves)
    ]


@pytest.mark.parametrize(
    ("moves", "said"),
    [
        (((), (), ()), "no groups moved"),
        (((), DECIDED, ()), "ended before the move was complete"),
        (((), DECIDED, SPREAD), "complete with the last batch"),
        (((), DECIDED, SPREAD, SPREAD), "90% of the rows and 90% of the CPU time before, and 50%"),
        (((), DECIDED, SPREAD, ()), "90% of the rows and 90% of the CPU time before, and 50%"),
    ],
)
def test_the_summary_fits_what_was_told(moves: tuple[tuple[str, ...], ...], said: str) -> None:
    assert said in moves_summary(hot(*moves))
