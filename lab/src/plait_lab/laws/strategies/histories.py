"""Hypothesis strategies for histories: rows that arrive in batches, small and mean.

A history has few keys, ties, bursts, streams without rows, rows without an event time or with
null keys; streams run ahead of each other. Some rows come in *groups*, one row of each stream with
equal keys and event times at the very edge of what the bounds allow, give or take a tick: without
them a join of six streams would hardly ever have a result. Rows arrive in any order within their
stream's watermark delay, or, with `late=True`, in any order at all. Everything shrinks towards no
rows, one batch, the first key and instant 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from plait.query.query import Field, Query, Stream
from plait.tuning import USUAL, Tuning
from plait_lab.laws.strategies.key_types import FAMILIES, INTERNED, Family, disguises, values_of
from plait_lab.laws.strategies.queries import TICKS, plain_queries, queries
from plait_lab.laws.strategies.tunings import TUNINGS

Row = dict[str, object]
Batch = Mapping[str, Sequence[Row]]
GROUPS = {2: 5, 3: 4, 4: 3, 5: 2, 6: 2}
OTHERS = {2: 8, 3: 5, 4: 3, 5: 2, 6: 2}
"""The most groups, and further rows per stream, by the number of streams: results multiply."""
CROWD = {2: (6, 12), 3: (6, 9), 4: (4, 6), 5: (2, 4)}
"""The fewest and most rows per stream of a crowd."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


@dataclass(frozen=True)
class History:
    """A query and what arrives: in each batch, rows of some of its streams."""

    query: Query
    batches: tuple[Batch, ...]
    tuning: Tuning = USUAL
    """The sizes to run it with; the answer is the same for all."""

    def tables(self) -> list[dict[str, pa.Table]]:
        """The batches as tables, in forms that a source may hand out.

        They are slices of larger tables and may have several chunks; every second batch has an
        empty table, instead of none, for a stream without rows.
        """
        rows = self.rows()
        whole = {s.name: stream_table(s, rows[s.name]) for s in self.query.streams}
        begin = dict.fromkeys(whole, 0)
        found = []
        for number, batch in enumerate(self.batches):
            tables = {}
            for name, table in whole.items():
                size = len(batch.get(name, ()))
                if size or number % 2:
                    part, half = table.slice(begin[name], size), size // 2
                    tables[name] = pa.concat_tables([part.slice(0, half), part.slice(half)])
                begin[name] += size
            found.append(tables)
        return found

    def rows(self) -> dict[str, list[Row]]:
        """All rows of every stream."""
        found: dict[str, list[Row]] = {name: [] for name in self.query.names}
        for batch in self.batches:
            for name, rows in batch.items():
                found[name] += rows
        return found

    def __repr__(self) -> str:
        sizes = asdict(self.tuning).items() - asdict(USUAL).items()
        tuned = "".join(f"\ntuning {name} {value}" for name, value in sorted(sizes))
        return f"{show_query(self.query)}\n{show_batches(self.batches)}{tuned}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Keep Hypothesis from printing every field of every part of the query."""
        printer.text(f"History({self!r})")


def stream_table(stream: Stream, rows: Sequence[Mapping[str, object]]) -> pa.Table:
    """Rows as a table with the schema of their stream."""
    return pa.Table.from_pylist(list(rows), schema=stream.schema)


def show_query(query: Query) -> str:
    """A query on a few lines, for the report of a failing example."""
    streams = [f"  {s.signature} delay {s.delay}" for s in query.streams]
    conditions = [*map(str, query.equalities), *map(str, query.residuals)]
    selected = ", ".join(map(str, query.select))
    return "\n".join(
        [
            "streams",
            *streams,
            f"where {' AND '.join(conditions)}",
            f"within {query.bounds.matrix}",
            f"select {selected}",
            f"late by {query.lateness} watermark",
        ]
    )


def show_batches(batches: Sequence[Batch]) -> str:
    """Batches row by row, for the report of a failing example."""
    lines = []
    for number, batch in enumerate(batches):
        lines.append(f"batch {number}")
        lines += [f"  {name} {row}" for name, rows in batch.items() for row in rows]
    return "\n".join(lines)


@st.composite
def cases(
    draw: DrawFn,
    *,
    streams: st.SearchStrategy[int] | None = None,
    families: Sequence[Family] = FAMILIES,
    conditions: bool = True,
    late: bool = False,
    one_key: bool = False,
) -> History:
    """A query with a history for it."""
    query = draw(
        queries(streams=streams, families=families, conditions=conditions, one_key=one_key)
    )
    return draw(histories(query, late=late))


@st.composite
def crowds(
    draw: DrawFn, *, streams: st.SearchStrategy[int] | None = None, late: bool = False
) -> History:
    """A plain query with one key that all rows share, and many rows in many batches.

    What a state gets wrong about purging, and about rows that come out of order, shows here.
    """
    size = streams if streams is not None else st.integers(2, 4)
    query = draw(plain_queries(streams=size))
    batches, span = draw(st.integers(1, 10)), draw(st.sampled_from((24, 12, 6)))
    world = _World(query, 1, span, keys=1, nulls=False, batches=batches, epoch=0)
    few, many = CROWD.get(len(query.streams), (1, 3))
    few = min(few, draw(st.integers(0, 15)))
    rows = [
        draw(st.lists(_crowd_row(world, stream), min_size=few, max_size=many))
        for stream in query.streams
    ]
    return _arranged(world, rows, late, draw(TUNINGS))


@st.composite
def churns(draw: DrawFn, *, streams: st.SearchStrategy[int] | None = None) -> History:
    """Keys that are interned, and come and go over several batches, with results across them.

    What is forgotten too early shows here: the sizes are such that keys are forgotten all the time
    and batches are joined in pieces of a few rows.
    """
    size = streams if streams is not None else st.integers(2, 3)
    query = draw(queries(streams=size, families=INTERNED, conditions=False))
    world = _World(
        query, _tick(query), span=40, keys=6, nulls=False, batches=draw(st.integers(2, 5)), epoch=0
    )
    groups = draw(st.lists(_group(world), min_size=2, max_size=8))
    rows = [[group[i] for group in groups] for i in range(len(query.streams))]
    small = st.sampled_from((1, 1, 2, 3))
    tuning = replace(
        draw(TUNINGS),
        forget_keys=draw(small),
        slice_rows=draw(small),
        large_slices=1,
        piece_rows=1,
        pieces_per_window=1_000,
    )
    return _arranged(world, rows, False, tuning)


@st.composite
def histories(draw: DrawFn, query: Query, *, late: bool = False) -> History:
    """A history for a query; no row is late unless `late`."""
    size = len(query.streams)
    world = _World(
        query,
        tick=_tick(query),
        span=draw(st.sampled_from((4, 0, 12, 40))),
        keys=draw(st.sampled_from((1, 2, 3, 6))),
        nulls=draw(st.booleans()),
        batches=draw(st.integers(1, 6)),
        epoch=draw(st.sampled_from((0, -5_000_000, 1_700_000_000_000_000))),
    )
    least = min(draw(st.integers(0, 7)), 1)
    groups = draw(st.lists(_group(world), min_size=least, max_size=GROUPS.get(size, 1)))
    loose = [st.lists(_loose_row(world, s), max_size=OTHERS.get(size, 1)) for s in query.streams]
    rows = [[g[i] for g in groups] + draw(others) for i, others in enumerate(loose)]
    return _arranged(world, rows, late, draw(TUNINGS))


def _arranged(
    world: _World, drafts: Sequence[list[_DraftRow]], late: bool, tuning: Tuning
) -> History:
    """The rows of each stream in their batches, in an order within the watermark unless `late`."""
    batches: list[dict[str, list[Row]]] = [{} for _ in range(world.batches)]
    for stream, rows in zip(world.query.streams, drafts, strict=True):
        places = [row.batch for row in rows]
        if not late:
            rows.sort(key=lambda r: (r.tick or 0) + r.held_back)
            places.sort()
        for number, (place, row) in enumerate(zip(places, rows, strict=True)):
            values = {stream.time: _instant(stream, row, world), **row.values, "id": number}
            batches[place].setdefault(stream.name, []).append(values)
    return History(world.query, tuple(batches), tuning)


@dataclass(frozen=True)
class _World:
    """What all rows of a history have in common."""

    query: Query
    tick: int
    span: int
    keys: int
    nulls: bool
    batches: int
    epoch: int


@dataclass(frozen=True)
class _DraftRow:
    tick: int | None
    held_back: int
    batch: int
    nanos: int
    values: Row


@st.composite
def _group(draw: DrawFn, world: _World) -> list[_DraftRow]:
    """One row per stream, all of one key, at a corner of the bounds or just beyond it.

    Row k of a closed difference-bound matrix is a solution of it, and so is its negated column k.
    """
    bounds = world.query.bounds.matrix
    k, key, begin = (draw(st.integers(0, n)) for n in (len(bounds) - 1, world.keys - 1, world.span))
    early, faulty = draw(st.booleans()), draw(st.booleans())
    rows = []
    for j, stream in enumerate(world.query.streams):
        corner = -bounds[j][k] if early else bounds[k][j]
        off = draw(st.sampled_from((0, 0, 0, 0, 0, 0, 1, -1))) if faulty else 0
        tick = begin + corner // world.tick + off
        rows.append(draw(_row(world, stream, tick, key, exact=not faulty)))
    return rows


@st.composite
def _loose_row(draw: DrawFn, world: _World, stream: Stream) -> _DraftRow:
    tick, key = draw(st.integers(0, world.span)), draw(st.integers(0, world.keys - 1))
    return draw(_row(world, stream, tick, key, exact=False))


@st.composite
def _crowd_row(draw: DrawFn, world: _World, stream: Stream) -> _DraftRow:
    return draw(_row(world, stream, draw(st.integers(0, world.span)), 0, exact=True, bare=True))


@st.composite
def _row(
    draw: DrawFn,
    world: _World,
    stream: Stream,
    tick: int,
    key: int,
    *,
    exact: bool,
    bare: bool = False,
) -> _DraftRow:
    """A row; an `exact` one has this very key and time, a `bare` one no payload."""
    timeless = world.nulls and not exact and draw(st.integers(0, 11)) == 11
    batch = draw(st.integers(0, world.batches - 1))
    held_back = draw(st.integers(0, 6 if stream.unlimited else stream.delay // world.tick))
    fine = stream.type_of(stream.time).unit == "ns" and not bare
    nanos = draw(st.sampled_from((0, 0, 999))) if fine else 0
    values: Row = {}
    for f in stream.fields:
        if f.name in ("v", "x"):
            values[f.name] = None if bare else draw(_payload(f))
        elif f.name not in (stream.time, "id"):
            values[f.name] = draw(_key(f, key, exact, world.nulls))
    return _DraftRow(None if timeless else tick, held_back, batch, nanos, values)


def _key(field: Field, key: int, exact: bool, nulls: bool) -> st.SearchStrategy[object]:
    """The row's key, or now and then another one, or null."""
    values = values_of(field.type)
    if exact:
        return st.sampled_from(disguises(values[key % len(values)]))
    usual, other = values[key % len(values)], values[(key + 1) % len(values)]
    return st.sampled_from([usual] * 14 + [other] + [None] * nulls)


def _payload(field: Field) -> st.SearchStrategy[object]:
    if field.name == "v":
        return st.sampled_from((0, 1, 2, 3, -1, None, 2**62))
    return st.sampled_from((0.0, 1.0, 2.5, -1.0, None, float("nan"), -0.0, float("inf")))


def _instant(stream: Stream, draft: _DraftRow, world: _World) -> int | None:
    """The event time in the unit of its column; nanoseconds beyond microseconds do not count."""
    if draft.tick is None:
        return None
    micros = world.epoch + draft.tick * world.tick
    unit = _PER_SECOND[stream.type_of(stream.time).unit]
    return micros * 1000 + draft.nanos if unit == 10**9 else micros * unit // 10**6


def _tick(query: Query) -> int:
    """The grain of the query's times: that of its coarsest time column."""
    units = [str(s.type_of(s.time).unit) for s in query.streams]
    return max(TICKS.get(unit, 1) for unit in units)
