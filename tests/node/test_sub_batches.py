from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.adapt.conftest import POLICY, QUERY, batches

from plait.adapt.setting import Setting
from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.node.sub_batches import SubBatch, sub_batches
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import mjoin
from plait.tuning import Tuning

SETTING = Setting(QUERY, POLICY, Budget(), DEFAULT)


def given(tuning: Tuning, seconds: int = 1) -> tuple[Engine, dict[int, Arrivals], int]:
    engine = Engine(QUERY, mjoin(QUERY), tuning=tuning)
    (batch,) = batches(1, lambda _: "k")
    rows = {s: batch[name].to_batches()[0] for s, name in enumerate(QUERY.names)}
    arrivals = {s: engine.admit(s, r, BEFORE_ALL_TIMES).arrivals for s, r in rows.items()}
    return engine, arrivals, max(int(a.times[-1]) for a in arrivals.values())


def check_whole(found: list[SubBatch], arrivals: dict[int, Arrivals], newest: int) -> None:
    """Together they are the batch, in the order of time, and each says what is to come."""
    for s, rows in arrivals.items():
        parts = [piece.arrivals[s].times for piece in found if s in piece.arrivals]
        assert np.array_equal(np.concatenate(parts), rows.times)
    left = sum(map(len, arrivals.values()))
    for piece in found:
        left -= sum(map(len, piece.arrivals.values()))
        assert piece.waiting == left
    assert found[-1].newest == newest and found[-1].watermarks == [newest] * 3
    reached = [piece.newest for piece in found]
    assert reached == sorted(reached)


def test_a_usual_batch_is_one_piece() -> None:
    engine, arrivals, newest = given(Tuning())
    assert sub_batches(SETTING, engine, arrivals, [newest] * 3, newest) == [
        SubBatch(arrivals, [newest] * 3, newest)
    ]


@pytest.mark.parametrize(("most", "per_window"), [(16, 16), (2, 1000), (16, 1000)])
def test_a_large_batch_has_several(most: int, per_window: int) -> None:
    tuning = Tuning(slice_rows=100, large_slices=4, pieces=most, pieces_per_window=per_window)
    engine, arrivals, newest = given(tuning)
    found = sub_batches(SETTING, engine, arrivals, [newest] * 3, newest)
    assert 1 < len(found) <= most + 1
    check_whole(found, arrivals, newest)


def test_where_memory_is_short_a_small_batch_has_several() -> None:
    tuning = Tuning(piece_rows=10)
    engine, arrivals, newest = given(tuning)
    list(engine.push(arrivals, [0] * 3))
    _, more, newest = given(tuning)
    for memory, several in ((1e12, False), (1.5 * engine.nbytes, True)):
        setting = replace(SETTING, budget=Budget(memory=memory))
        found = sub_batches(setting, engine, more, [newest] * 3, newest)
        assert (len(found) > 1) is several
        check_whole(found, more, newest)
