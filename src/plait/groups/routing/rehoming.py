"""New places for partition groups, where other processors take part than before.

*Invariants.* Afterwards every group is on processors that take part, and the numbers of groups on
any two of them differ by one at most, not counting groups that are spread. No smaller number of
groups could be moved.

*Ties.* Of processors with too many groups, those with the greatest numbers leave.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection

from plait.groups.moves.move import Move
from plait.groups.routing.table import Table


def rehomed(table: Table, active: Collection[int]) -> list[Move]:
    """The moves by MSLB that bring all groups evenly to the processors that take part.

    >>> from plait.groups.routing.table import initial
    >>> moves = rehomed(initial([0, 0, 0, 0, 1, 1, 1, 1]), [0, 2])
    >>> [(m.groups, m.senders, m.receivers) for m in moves]
    [((4, 5, 6, 7), (1,), (2,))]
    """
    held: dict[int, list[int]] = {p: [] for p in active}
    homeless: list[int] = []
    for group, places in enumerate(table.places):
        if not held.keys() >= set(places):
            homeless.append(group)
        elif len(places) == 1:
            held[places[0]].append(group)
    least, more = divmod(len(homeless) + sum(map(len, held.values())), len(held))
    fullest = sorted(held, key=lambda p: (-len(held[p]), p))
    room = {p: least + (rank < more) for rank, p in enumerate(fullest)}
    for p, groups in held.items():
        homeless += groups[room[p] :]
        room[p] -= min(len(groups), room[p])
    chosen: dict[tuple[tuple[int, ...], int], list[int]] = defaultdict(list)
    to = (p for p in fullest for _ in range(room[p]))
    for group, receiver in zip(sorted(homeless), to, strict=True):
        chosen[table.places[group], receiver].append(group)
    return [
        Move(number, "MSLB", tuple(groups), senders, (receiver,))
        for number, ((senders, receiver), groups) in enumerate(chosen.items(), table.last + 1)
    ]
