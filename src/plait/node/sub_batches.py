"""Cut a large batch into sub-batches, between which the plan may change."""

from __future__ import annotations

import math
from typing import NamedTuple

from plait.adapt.setting import Setting
from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import as_batches, cut, cut_rows

_GROWTH = 12.0
"""How many times faster than with the rows so far a state may grow with those of a piece, before
it takes what is left of the memory."""


class SubBatch(NamedTuple):
    """A batch, or a part of one along event time."""

    arrivals: dict[int, Arrivals]
    watermarks: list[int]
    """After it."""
    newest: int
    """The newest event time of all streams so far."""
    waiting: int = 0
    """Rows of the batch that come after it."""


def sub_batches(
    setting: Setting,
    engine: Engine,
    arrivals: dict[int, Arrivals],
    watermarks: list[int],
    newest: int,
) -> list[SubBatch]:
    """The pieces of a batch, mostly one.

    A large batch has several: a wrong plan need not join all of it. Where memory comes to an
    end, a smaller one too: then it matters how soon the loop notices. `newest` is the newest
    event time of all streams, this batch included.
    """
    tuning = engine.windows.tuning
    rows = sum(map(len, arrivals.values()))
    slices = []
    if setting.limited and setting.crowded(engine.nbytes):
        memory = setting.budget.memory or 0.0
        held = engine.nbytes
        growth = _GROWTH * held * rows / max(1, sum(map(len, engine.bases)))
        count = min(tuning.pieces, math.ceil(growth / max(1.0, memory - held)))
        slices = cut_rows(arrivals, max(tuning.piece_rows, -(-rows // max(1, count))))
    elif rows >= tuning.large_slices * tuning.slice_rows:
        step = setting.query.bounds.widest // tuning.pieces_per_window
        larger = -(-rows // (tuning.pieces * tuning.slice_rows))
        slices = cut(arrivals, step, larger * tuning.slice_rows)
    if len(slices) < 2:
        return [SubBatch(arrivals, watermarks, newest)]
    found = list[SubBatch]()
    for part, marks in as_batches(slices, arrivals, watermarks):
        rows -= sum(map(len, part.values()))
        reached = max(int(a.times[-1]) for a in part.values())
        found.append(SubBatch(part, marks, reached if rows else newest, rows))
    return found
