"""New places for groups: even, with as few moves as possible, and none that makes no sense."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from random import Random

import pytest

from plait.groups.routing.rehoming import rehomed
from plait.groups.routing.table import Table, initial


def after(table: Table, active: list[int]) -> tuple[Table, int]:
    """The table when all moves have ended, and how many groups have moved."""
    moves, processors = rehomed(table, active), 1 + max([*active, 9])
    begun = table.changed(1, processors, begin=moves)
    return begun.changed(2, end=[m.number for m in moves]), sum(len(m.groups) for m in moves)


@pytest.mark.parametrize("seed", range(50))
def test_groups_are_even_where_processors_take_part_and_few_move(seed: int) -> None:
    chance = Random(seed)
    groups = chance.choice((1, 2, 7, 128))
    before = initial([chance.randrange(chance.choice((1, 2, 10))) for _ in range(groups)])
    active = chance.sample(range(10), chance.randint(1, 10))
    found, moved = after(before, active)
    counts = Counter(place[0] for place in found.places)
    assert set(counts) <= set(active)
    held = sorted((counts[p] for p in active), reverse=True)
    assert held[0] - held[-1] <= 1
    # Of no processor can more stay than there is room for, where the fullest ones get the most.
    stay = sorted((sum(p == (a,) for p in before.places) for a in active), reverse=True)
    assert moved == groups - sum(map(min, stay, held))


def test_a_group_that_is_spread_stays_spread_unless_one_of_its_processors_leaves() -> None:
    table = replace(initial([0, 0, 1]), places=((0, 1), (0,), (1,)), spread=((0, 2),))
    assert rehomed(table, [0, 1]) == []
    [move] = rehomed(table, [0])[:1]
    assert (move.groups, move.senders, move.receivers) == ((0,), (0, 1), (0,))
    found, _ = after(table, [0])
    assert found.places == ((0,),) * 3 and not found.spread
