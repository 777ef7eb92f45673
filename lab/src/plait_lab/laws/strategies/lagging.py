"""Histories whose windows pass in a few batches, with one stream that lags behind the others."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from plait.query.query import Query
from plait_lab.laws.strategies.histories import History

WINDOW, DELAY, TICKS = 4, 2, 3


def lagging_history(
    graph: Query, *, batches: int, rows: int, seed: int, keys: int = 2, disorder: int = DELAY
) -> History:
    """Few keys, ties, disorder up to the delay, a last stream that lags; windows of a few ticks.

    So the last old tuple is gone a few batches after any instant.
    """
    random = Random(seed)
    size = len(graph.streams)
    matrix = tuple(tuple(0 if i == j else WINDOW for j in range(size)) for i in range(size))
    streams = tuple(replace(s, delay=disorder) for s in graph.streams)
    query = replace(graph, streams=streams, bounds=replace(graph.bounds, matrix=matrix))
    found: list[dict[str, list[dict[str, object]]]] = []
    for batch in range(batches):
        found.append({})
        for number, stream in enumerate(query.streams):
            begin = TICKS * batch - (TICKS if number == size - 1 else 0)
            for _ in range(random.randint(1, rows)):
                tick = begin + random.randint(-disorder, TICKS - 1)
                row: dict[str, object] = {f.name: random.randrange(keys) for f in stream.fields}
                found[-1].setdefault(stream.name, []).append(row | {stream.time: tick})
    return History(query, tuple(found))
