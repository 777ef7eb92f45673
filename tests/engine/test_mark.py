"""Old and new by arrival, through rings that wrap, grow and drop."""

from __future__ import annotations

from random import Random

import numpy as np

from plait.engine.intake.ingest import Arrivals
from plait.engine.mark import Mark
from plait.engine.states import BaseWindow
from plait.kernels.ring import ids_of, last_positions
from plait.testing.examples import clique


def store(base: BaseWindow, n: int, time: int) -> None:
    base.append(Arrivals(np.full(n, time), {0: np.zeros(n, np.int64)}, {}), 0, n)


def test_oracle_rows_are_old_if_they_were_there() -> None:
    query = clique(2)
    random = Random(1)
    for _ in range(20):
        bases = [BaseWindow(query, s, [(0,)], 64) for s in range(2)]
        time = 0
        for _ in range(random.randint(0, 40)):
            store(bases[0], random.randint(1, 9), time)
            time += 1
        mark = Mark(bases)
        first_new = bases[0].window.ring.next_id
        assert mark.passed == (len(bases[0]) == 0)
        for _ in range(30):
            n = random.randint(1, 30)
            time += 5_000_000
            store(bases[0], n, time)
            mark.arrived(0, time)
            reached = bases[0].cutoff([time, time - random.randint(0, 50) * 10**6])
            mark.dropped(0, bases[0].drop_before(reached))
            positions = last_positions(bases[0].window.ring.header, len(bases[0]))
            ids = ids_of(bases[0].window.ring.header, positions)
            expected = ids < first_new
            assert mark.old_tuples({0: positions}).astype(bool).tolist() == expected.tolist()
            assert mark.old[0] == expected.sum()
        assert mark.earliest_new[0] <= time


def test_a_combination_is_new_only_if_all_parts_are() -> None:
    query = clique(2)
    bases = [BaseWindow(query, s, [(0,)], 64) for s in range(2)]
    store(bases[0], 1, 0)
    mark = Mark(bases)
    store(bases[0], 1, 1)
    store(bases[1], 2, 1)
    tuples = {0: np.array([0, 1], np.int32), 1: np.array([0, 1], np.int32)}
    assert mark.old_tuples(tuples).tolist() == [1, 0]
    mark.dropped(0, 1)
    assert mark.old_tuples(tuples).tolist() == [0, 0]
    assert mark.passed
