"""States against the definition: who is dead, who is dropped, and who can still be found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.states import BaseWindow, CombinedState
from plait.errors import WindowError
from plait.kernels.index import new_cursor
from plait.kernels.jit import Positions
from plait.kernels.ring import first_positions, ids_of
from plait.query.bounds import Bounds, Constraint, close, global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Query, Stream, make_query
from plait.tuning import USUAL, Tuning

FAR = 2**62
NAMES = "abcd"


def query_of(bounds: Sequence[Constraint], streams: int = 3, **payload: pa.DataType) -> Query:
    """Streams with one integer key and perhaps further columns, within the given bounds."""
    fields = [Field("ts", pa.timestamp("us")), Field("k", pa.int64())]
    fields += [Field(name, type_) for name, type_ in payload.items()]
    names = NAMES[:streams]
    keys = [Call("eq", (Column("a", "k"), Column(other, "k"))) for other in names[1:]]
    return make_query([Stream(name, tuple(fields), "ts") for name in names], keys, bounds)


def uneven(entries: Sequence[int], streams: int = 3) -> list[Constraint]:
    """Bounds between neighbours in both directions; contradictions are thrown away."""
    bounds = []
    for i, (ahead, back) in enumerate(zip(entries[::2], entries[1::2], strict=True)):
        bounds += [Constraint(i, i + 1, ahead), Constraint(i + 1, i, back)]
    try:
        close(NAMES[:streams], bounds)
    except WindowError:
        assume(False)
    return bounds


BOUNDS = st.one_of(
    st.sampled_from((0, 1, 5)).map(lambda width: list(global_window(3, width))),
    st.lists(st.integers(-2, 8), min_size=4, max_size=4).map(uneven),
)


def hopeless(bounds: Bounds, times: dict[int, int], watermarks: Sequence[int]) -> bool:
    """The definition: every stream to come is past the time up to which it could join."""
    return all(
        min(t + bounds.matrix[i][k] for i, t in times.items()) < watermark
        for k, watermark in enumerate(watermarks)
        if k not in times
    )


def arrivals(times: Sequence[int]) -> Arrivals:
    """Tuples of one key."""
    return Arrivals(np.array(times, np.int64), {0: np.zeros(len(times), np.int64)}, {})


# --- base windows ---------------------------------------------------------------------------------


@given(
    BOUNDS,
    st.lists(st.tuples(st.lists(st.integers(0, 12), max_size=6), st.integers(0, 4)), max_size=6),
    st.integers(0, 2),
)
def test_oracle_a_base_row_is_dropped_when_it_and_all_before_it_are_dead(
    bounds: list[Constraint], rounds: list[tuple[list[int], int]], stream: int
) -> None:
    query = query_of(bounds)
    base = BaseWindow(query, stream, [(0,)], 64)
    rows: list[int] = []
    watermarks = [0, 0, 0]
    for times, step in rounds:
        base.append(arrivals(sorted(times)), 0, len(times))
        rows += sorted(times)
        watermarks[step % 3] += step
        dead = takewhile(lambda t: hopeless(query.bounds, {stream: t}, watermarks), rows)
        wanted = len(list(dead))
        assert base.drop_before(base.cutoff(watermarks)) == wanted
        rows = rows[wanted:]
        positions = first_positions(base.window.ring.header, 0, len(base))
        assert base.window.latest[positions].tolist() == rows


def test_a_row_lives_until_the_last_instant_at_which_a_partner_may_come() -> None:
    """b is at most 3 after a, c at most 5 after a; nothing of b is needed once c is past."""
    bounds = [Constraint(0, 1, 3), Constraint(1, 0, 0), Constraint(0, 2, 5), Constraint(2, 0, 0)]
    base = BaseWindow(query_of(bounds), 0, [(0,)], 64)
    base.append(arrivals([10]), 0, 1)
    assert base.drop_before(base.cutoff([99, 14, 15])) == 0, "c may still come at 15"
    assert base.drop_before(base.cutoff([99, 13, 16])) == 0, "b may still come at 13"
    assert base.cutoff([99, 14, 16]) == 11
    assert base.drop_before(base.cutoff([0, 14, 16])) == 1


def test_a_silent_stream_keeps_every_row_alive() -> None:
    base = BaseWindow(query_of(global_window(3, 5)), 0, [(0,)], 64)
    base.append(arrivals([-FAR // 2, 0, FAR // 2]), 0, 3)
    assert base.drop_before(base.cutoff([FAR, FAR, BEFORE_ALL_TIMES])) == 0


def test_columns_of_a_base_window() -> None:
    """Times and integer keys are not stored twice; all come back with their types."""
    base = BaseWindow(query_of(global_window(3, 5), s=pa.string()), 0, [(0,)], 64)
    times, keys = np.array([9, 1, 2, 3, 4]), np.array([0, 5, 6, 7, 8])
    texts = pa.array(["", "p", "q", None, "r"])
    positions = base.append(Arrivals(times, {0: keys}, {"s": texts}), 1, 4)
    assert base.gather("ts", positions).cast(pa.int64()).to_pylist() == [1, 2, 3]
    assert base.gather("ts", positions).type == pa.timestamp("us")
    assert base.gather("k", positions).to_pylist() == [5, 6, 7]
    assert base.gather("s", positions[::-1].copy()).to_pylist() == [None, "q", "p"]
    assert base.live_codes(0).tolist() == [5, 6, 7]
    assert base.row_bytes == 16 + 16 + 1, "time and code; where a string is, how long; null or not"
    assert base.nbytes > base.window.nbytes, "the bytes of strings count"


# --- combined states ------------------------------------------------------------------------------


@dataclass
class Pairs:
    """The combinations of streams a and b as an engine would store them, and as a plain list.

    Stream c, and d if there is one, is to come. All rows have the same key.
    """

    query: Query
    watermarks: list[int] = field(default_factory=list)
    times: tuple[dict[int, int], dict[int, int]] = field(default_factory=lambda: ({}, {}))
    """Per stream, the event time of each tuple by its id, also of dropped ones."""
    stored: set[tuple[int, int]] = field(default_factory=set)
    dropped: int = 0
    tuning: Tuning = USUAL

    def __post_init__(self) -> None:
        self.bases = [BaseWindow(self.query, s, [(0,)], 64, tuning=self.tuning) for s in (0, 1)]
        self.state = CombinedState(self.query, frozenset({0, 1}), self.bases, [(0,)], 64)
        self.watermarks = self.watermarks or [0] * len(self.query.streams)

    def add(self, stream: int, time: int) -> None:
        """A tuple arrives: it is stored, and so is what it combines to."""
        base, other = self.bases[stream], self.bases[1 - stream]
        (position,) = base.append(arrivals([time]), 0, 1)
        (own,) = ids_of(base.window.ring.header, np.array([position], np.int32)).tolist()
        self.times[stream][own] = time
        partners = first_positions(other.window.ring.header, 0, len(other))
        ahead, back = (self.query.bounds.matrix[i][1 - i] for i in (stream, 1 - stream))
        distance = other.window.latest[partners] - time
        partners = partners[(distance <= ahead) & (distance >= -back)]
        if not len(partners):
            return
        mine: Positions = np.full(len(partners), position, np.int32)
        self.state.insert({stream: mine, 1 - stream: partners})
        for id_ in ids_of(other.window.ring.header, partners).tolist():
            self.stored.add((own, id_) if stream == 0 else (id_, own))

    def expire(self) -> None:
        self.dropped += self.state.expire(self.watermarks)
        for base in self.bases:
            base.drop_before(base.cutoff(self.watermarks))

    def times_of(self, pair: tuple[int, int]) -> dict[int, int]:
        return {s: self.times[s][id_] for s, id_ in enumerate(pair)}

    def alive(self) -> set[tuple[int, int]]:
        """By definition."""
        return {
            pair
            for pair in self.stored
            if not hopeless(self.query.bounds, self.times_of(pair), self.watermarks)
        }

    def found(self) -> Counter[tuple[int, int]]:
        """What a probe of the state finds, as far as the parts are still there."""
        everything = np.array([-FAR]), np.array([FAR])
        _, rows, _ = self.state.window.probe(
            (0,), np.zeros(1, np.int64), *everything, new_cursor(), 10**6
        )
        parts = self.state.parts(rows)
        there = (parts[0] >= 0) & (parts[1] >= 0)
        ids = [ids_of(self.bases[s].window.ring.header, parts[s][there]).tolist() for s in (0, 1)]
        return Counter(zip(*ids, strict=True))

    def check(self) -> None:
        found, alive = self.found(), self.alive()
        assert set(found.values()) <= {1}, "a combination twice"
        assert alive <= set(found), f"lost: {[self.times_of(p) for p in alive - set(found)]}"
        assert set(found) <= self.stored, "a combination that never was"
        assert len(self.state) == len(self.stored) - self.dropped

    def check_dead(self) -> None:
        """`dead` is the definition, row by row."""
        rows = first_positions(self.state.window.ring.header, 0, len(self.state))
        parts = self.state.parts(rows)
        verdicts = self.state.dead(rows, self.watermarks)
        for i, verdict in enumerate(verdicts.tolist()):
            places = {s: int(parts[s][i]) for s in (0, 1)}
            if min(places.values()) < 0:
                assert verdict == 1, "a part is gone, so nothing can join"
                continue
            times = {s: int(self.bases[s].window.latest[p]) for s, p in places.items()}
            assert verdict == hopeless(self.query.bounds, times, self.watermarks)


EVENTS = st.lists(
    st.tuples(st.integers(0, 1), st.integers(0, 9), st.sampled_from((0, 0, 1)), st.integers(0, 3)),
    min_size=4,
    max_size=25,
)
"""A tuple of stream 0 or 1 so much after its watermark; then steps of its and the others'."""

Events = list[tuple[int, int, int, int]]


def play(pairs: Pairs, events: Events) -> None:
    for stream, offset, step, others in events:
        watermarks = pairs.watermarks
        pairs.add(stream, watermarks[stream] + offset)
        pairs.check()
        watermarks[stream] += step
        watermarks[2:] = [w + others for w in watermarks[2:]]
        pairs.check_dead()
        pairs.expire()
        pairs.check()


@given(BOUNDS, EVENTS)
def test_oracle_what_is_alive_is_found(bounds: list[Constraint], events: Events) -> None:
    play(Pairs(query_of(bounds)), events)


@given(BOUNDS, EVENTS, st.integers(1, 3))
def test_oracle_what_is_alive_is_found_after_any_compaction(
    bounds: list[Constraint], events: Events, block: int
) -> None:
    """With blocks of a few rows, compaction is due all the time."""
    play(Pairs(query_of(bounds), tuning=Tuning(compact_rows=block)), events)


@given(
    st.lists(st.integers(-1, 6), min_size=6, max_size=6).map(lambda e: uneven(e, 4)),
    EVENTS,
)
def test_oracle_what_is_alive_is_found_while_two_streams_are_to_come(
    bounds: list[Constraint], events: Events
) -> None:
    play(Pairs(query_of(bounds, 4)), events)


@pytest.mark.slow
@settings(max_examples=40)
@given(BOUNDS, EVENTS)
def test_a_base_row_outlives_its_combinations(bounds: list[Constraint], events: Events) -> None:
    pairs = Pairs(query_of(bounds))
    play(pairs, events)
    pairs.expire()
    for pair in pairs.alive():
        for s in (0, 1):
            header = pairs.bases[s].window.ring.header
            live = ids_of(header, first_positions(header, 0, len(pairs.bases[s])))
            assert pair[s] in live


def test_a_dead_combination_does_not_hide_a_live_one_of_the_same_key() -> None:
    """a0-b10 ends later than a8-b8 and dies earlier: c at 12 is too far from a0."""
    pairs = Pairs(query_of(global_window(3, 10)))
    for stream, time in ((1, 8), (1, 10), (0, 0), (0, 8)):
        pairs.add(stream, time)
    pairs.watermarks = [8, 10, 11]
    assert {(t[0], t[1]) for t in map(pairs.times_of, pairs.alive())} == {(8, 8), (8, 10)}
    pairs.expire()
    pairs.check()


def test_a_combination_lives_until_the_last_instant_at_which_c_may_come() -> None:
    pairs = Pairs(query_of(global_window(3, 10)))
    pairs.add(0, 5)
    pairs.add(1, 5)
    pairs.watermarks = [99, 99, 15]
    pairs.expire()
    assert len(pairs.state) == 1
    pairs.watermarks = [99, 99, 16]
    pairs.expire()
    assert len(pairs.state) == 0
    assert len(pairs.bases[0]) == 0


def test_whatever_is_dead_is_gone_in_the_end() -> None:
    rng = np.random.default_rng(4)
    pairs = Pairs(query_of(uneven([4, 3, 5, 2])))
    for time in range(60):
        for stream in (0, 1):
            pairs.add(stream, time + int(rng.integers(0, 5)))
        pairs.watermarks = [time, time, time - 7]
        pairs.expire()
        pairs.check()
    pairs.watermarks = [200, 200, 200]
    pairs.expire()
    assert (len(pairs.state), [len(base) for base in pairs.bases]) == (0, [0, 0])


@pytest.mark.slow
def test_dead_rows_behind_a_live_one_are_compacted_away() -> None:
    """A pair far ahead stays alive at the front, while thousands of others come and die."""
    pairs = Pairs(query_of(global_window(3, 2)))
    pairs.add(0, 10**6)
    pairs.add(1, 10**6)
    sizes = []
    for time in range(1500):
        pairs.add(0, time)
        pairs.add(1, time)
        pairs.watermarks = [time, time, time]
        pairs.expire()
        sizes.append(len(pairs.state))
    pairs.check()
    assert len(pairs.stored) > 7000
    assert max(sizes) < 1000


def test_an_empty_state_expires_nothing() -> None:
    pairs = Pairs(query_of(global_window(3, 2)))
    pairs.watermarks = [FAR, FAR, FAR]
    pairs.expire()
    pairs.check()
    nowhere: Positions = np.empty(0, np.int32)
    assert {s: p.tolist() for s, p in pairs.state.parts(nowhere).items()} == {0: [], 1: []}
    assert pairs.state.row_bytes == 8 + 8 + 2 * 4, "two times and two ids"
