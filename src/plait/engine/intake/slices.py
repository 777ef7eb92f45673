"""Cut a batch into slices of event time.

Any split into batches gives the same answer, so the engine is free to cut a batch further. It cuts
along event time, all streams at the same instants: then a large batch of many windows' worth of
rows is joined with indexes that stay the size of a window, and what has expired goes at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plait.engine.intake.ingest import Arrivals

Slice = dict[int, tuple[int, int]]
"""For each stream, the rows `start` to `stop` of its sorted arrivals."""


def cut(arrivals: Mapping[int, Arrivals], step: int, least: int) -> list[tuple[int, Slice]]:
    """Cut into slices in ascending time, each with the earliest time of all later rows.

    A slice spans at least `step` microseconds and has at least `least` rows on average.
    """
    present = {s: a for s, a in arrivals.items() if len(a)}
    if not present:
        return []
    first = min(int(a.times[0]) for a in present.values())
    last = max(int(a.times[-1]) for a in present.values())
    rows = sum(len(a) for a in present.values())
    pieces = min(rows // least, (last - first) // max(step, 1))
    if pieces <= 1:
        return [(last + 1, {s: (0, len(a)) for s, a in present.items()})]
    ends = first + (last + 1 - first) * np.arange(1, pieces + 1, dtype=object) // pieces
    ends = ends.astype(np.int64)
    stops = {s: np.searchsorted(a.times, ends) for s, a in present.items()}
    starts = dict.fromkeys(present, 0)
    slices = []
    for piece, end in enumerate(ends):
        part: Slice = {}
        for s, stop in stops.items():
            if stop[piece] > starts[s]:
                part[s] = (starts[s], int(stop[piece]))
                starts[s] = int(stop[piece])
        if part:
            slices.append((int(end), part))
    return slices


def cut_rows(arrivals: Mapping[int, Arrivals], rows: int) -> list[tuple[int, Slice]]:
    """Cut into slices of exactly `rows` rows; the last one may have fewer."""
    present = {s: a for s, a in arrivals.items() if len(a)}
    if not present:
        return []
    times = np.concatenate([a.times for a in present.values()])
    owners = np.repeat(list(present), [len(a) for a in present.values()])
    order = np.argsort(times, kind="stable")
    ends = np.arange(rows, len(times) + rows, rows).clip(max=len(times))
    stops = {s: np.searchsorted(np.flatnonzero(owners[order] == s), ends) for s in present}
    starts = dict.fromkeys(present, 0)
    slices = []
    for piece, end in enumerate(ends):
        part: Slice = {}
        for s, stop in stops.items():
            if stop[piece] > starts[s]:
                part[s] = (starts[s], int(stop[piece]))
                starts[s] = int(stop[piece])
        reached = times[order[end]] if end < len(times) else times[order[-1]] + 1
        slices.append((int(reached), part))
    return slices


def as_batches(
    slices: Sequence[tuple[int, Slice]], arrivals: Mapping[int, Arrivals], watermarks: Sequence[int]
) -> list[tuple[dict[int, Arrivals], list[int]]]:
    """Turn the slices of a batch into smaller batches, each with its watermarks."""
    found = [
        (
            {s: arrivals[s].part(*span) for s, span in part.items()},
            [min(w, reached) for w in watermarks],
        )
        for reached, part in slices
    ]
    return [*found[:-1], (found[-1][0], list(watermarks))]
