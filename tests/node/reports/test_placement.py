"""Where groups are, and what they take, in words and figures that people can check."""

from __future__ import annotations

import json

import pytest

from plait.adapt.events import Event
from plait.groups.balance.cluster import ClusterSnapshot, GroupSnapshot, ProcessorSnapshot
from plait.groups.moves.move import Move
from plait.groups.routing.table import initial
from plait.node.reports.placement import GroupShare, Placement, balance_line, placement

TABLE = initial([0, 0, 1])


def snapshot(seconds: float | None = 3.0) -> ClusterSnapshot:
    return ClusterSnapshot(
        10.0,
        10.0,
        (ProcessorSnapshot(0, seconds, matches=0), ProcessorSnapshot(1, 1.0, matches=0)),
        (
            GroupSnapshot(0, (0,), (20, 0), (30, 5), 350.0),
            GroupSnapshot(1, (0,), (10, 0), (10, 5), 150.0),
            GroupSnapshot(2, (1,), (5, 5), (5, 5), 100.0),
        ),
    )


def test_the_work_of_a_processor_is_divided_among_its_groups() -> None:
    found = placement(snapshot(), TABLE)
    assert [g.work for g in found.groups] == pytest.approx([2.0, 1.0, 1.0])
    assert found.groups[0] == GroupShare(0, (0,), 20, 35, 350.0, found.groups[0].work)
    assert found.lines() == [
        "3 groups: 2 on processor 0 (75% of the work), 1 on processor 1 (25% of the work)",
        "the most work is in group 0: 50%, 20 rows, 350 bytes",
    ]
    json.dumps(found.to_dict())


def test_what_nobody_measured_is_not_shown() -> None:
    found = placement(snapshot(None), TABLE)
    assert [g.work for g in found.groups] == [None, None, pytest.approx(1.0)]
    assert found.lines() == ["3 groups: 2 on processor 0, 1 on processor 1"]


def test_groups_that_are_spread_and_groups_that_move() -> None:
    moves = (Move(3, "PTLB", tuple(range(1, 12)), (0,), (1,)),)
    groups = (GroupShare(0, (0, 1), 6, 9, None, 4.0), GroupShare(1, (0,), 6, 9, None, 1.0))
    assert Placement(4, 17, groups, moves).lines() == [
        "2 groups: 2 on processor 0 (60% of the work), 1 on processor 1 (40% of the work)",
        "the most work is in group 0: 80%, 6 rows",
        "group 0 is spread over processors 0, 1",
        "groups 1, 2, 3, 4, 5, 6, 7, 8, ... are moving from processor 0 to 1 by PTLB",
    ]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            Event("weighed", 3, 0, {"decision": {"reasons": ["a", "b"]}}),
            "balance after batch 3: a; b",
        ),
        (Event("unbalanced", 4, 0, {"reasons": ["too hot"]}), "balance after batch 4: too hot"),
        (
            Event("relocated", 5, 0, {
                "done": True, "why": "",
                "move": {"groups": [1, 2], "senders": [0], "receivers": [1], "protocol": "MSLB"},
            }),
            "balance after batch 5: 2 groups went from processor 0 to 1 by MSLB",
        ),
        (
            Event("relocated", 6, 0, {
                "done": False, "why": "it was called off",
                "move": {"groups": [1], "senders": [0], "receivers": [1], "protocol": "MSLB"},
            }),
            "balance after batch 6: moving 1 group from processor 0 to 1 by MSLB failed: it was "
            "called off",
        ),
    ],
)  # fmt: skip
def test_every_decision_is_a_line(event: Event, line: str) -> None:
    assert balance_line(event) == line
