"""Flags of PTLB: a result is kept back exactly if all its rows are flagged by one move."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.saved import engine_from_state, engine_to_state
from plait.plan.jtree import mjoin
from plait.tuning import Tuning
from plait_lab.workloads.keyed import keyed_query

QUERY = keyed_query([["k"]] * 2, 10)
Flagged = list[tuple[int, int]]
"""(time, flag) of each row."""


def push(
    engine: Engine, rows: list[Flagged], watermark: int = BEFORE_ALL_TIMES
) -> set[tuple[int, int]]:
    """The times of the results of a batch."""
    arrivals = {}
    for stream, given in enumerate(rows):
        times = [t for t, _ in given]
        table = pa.record_batch(
            {
                "k": pa.array([1] * len(times), pa.int64()),
                "ts": pa.array(times, pa.timestamp("us")),
                "v": pa.array(times, pa.int64()),
            }
        )
        flags = np.array([flag for _, flag in given], np.int64)
        admitted = engine.admit(stream, table, BEFORE_ALL_TIMES, flags if flags.any() else None)
        arrivals[stream] = admitted.arrivals
    found = [row for part in engine.push(arrivals, [watermark] * 2) for row in part.to_pylist()]
    return {(row["s0_v"], row["s1_v"]) for row in found}


def wanted(left: Flagged, right: Flagged) -> set[tuple[int, int]]:
    return {
        (a, b) for (a, f), (b, g) in product(left, right) if abs(a - b) <= 10 and not (f == g and f)
    }


def test_only_results_of_one_move_are_kept_back() -> None:
    left, right = [(0, 0), (1, 3), (2, 4)], [(0, 0), (1, 3), (2, 4)]
    assert push(Engine(QUERY, mjoin(QUERY)), [left, right]) == wanted(left, right)
    assert (1, 1) not in wanted(left, right) and (1, 2) in wanted(left, right)


@pytest.mark.parametrize("seed", range(20))
def test_oracle_over_many_batches_that_expire(seed: int) -> None:
    """Rows out of order, rings that wrap around, and an engine that is written and read again.

    Rows of one batch meet those of the next, so flags must survive in between.
    """
    chance = Random(seed)
    engine = Engine(
        QUERY, mjoin(QUERY), tuning=Tuning(ring_rows=1, first_id=2**32 - 3, slice_rows=1)
    )
    left: Flagged = []
    right: Flagged = []
    found: set[tuple[int, int]] = set()
    for number in range(12):
        batch = [
            [(12 * number + 2 * i + side, chance.choice((0, 0, 1, 2))) for i in range(5)]
            for side in (0, 1)
        ]
        for rows in batch:
            chance.shuffle(rows)
        left, right = left + batch[0], right + batch[1]
        found |= push(engine, batch, watermark=12 * number)
        if chance.random() < 0.3:
            engine = engine_from_state(QUERY, engine_to_state(engine))
    assert found == wanted(left, right)
    assert len(found) < len({(a, b) for (a, _), (b, _) in product(left, right) if abs(a - b) <= 10})


def test_flags_of_rows_that_have_gone_are_forgotten() -> None:
    engine = Engine(QUERY, mjoin(QUERY))
    push(engine, [[(0, 1)], [(0, 1)]])
    assert engine.flags and engine.flags.nbytes
    push(engine, [[(100, 0)], [(100, 0)]], watermark=100)
    assert not engine.flags
