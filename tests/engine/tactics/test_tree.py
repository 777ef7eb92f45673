"""Jtrees at work on long histories: exact results, counters that add up, memory that stays flat."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.counters import InputCounters
from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.migrate.strategy import migrate
from plait.errors import PlanError
from plait.kernels.jit import Ints
from plait.plan.jtree import Join, Leaf, joins, parse_shape
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.tuning import Tuning
from plait_lab.exhaustive.plans import all_plans, sample_plan
from plait_lab.laws.strategies.histories import History, cases

SHAPES = ("(a b c)", "((a b) c)", "(a (b c))", "((a c) b)")
WINDOW = 20
UNEVEN = (
    Constraint(0, 1, 25), Constraint(1, 0, 4), Constraint(1, 2, 0), Constraint(2, 1, 15),
)  # fmt: skip
Batch = dict[str, pa.Table]
Ids = list[tuple[int, ...]]


def query_of(
    bounds: Sequence[Constraint] = global_window(3, WINDOW),
    *,
    delay: int = 0,
    key: pa.DataType | None = None,
) -> Query:
    """Streams a, b, c joined by one key; a result is the numbers of its three rows."""
    kind = pa.int64() if key is None else key
    fields = (Field("ts", pa.timestamp("us")), Field("k", kind), Field("id", pa.int64()))
    streams = [Stream(name, fields, "ts", delay) for name in "abc"]
    keys = [Call("eq", (Column(x, "k"), Column(y, "k"))) for x, y in ("ab", "bc")]
    return make_query(streams, keys, bounds, [Output(x, Column(x, "id")) for x in "abc"])


@dataclass
class Rows:
    """The rows of one stream in order of arrival; their number is their place."""

    times: Ints
    keys: Ints

    def table(self, start: int, stop: int, key: pa.DataType | None = None) -> pa.Table:
        keys = pa.array(self.keys[start:stop])
        return pa.table(
            {
                "ts": pa.array(self.times[start:stop]).cast(pa.timestamp("us")),
                "k": keys if key is None else keys.cast(key),
                "id": pa.array(np.arange(start, stop)),
            }
        )


def arriving(
    seed: int, rows: int, *, keys: int, disorder: int = 0, hot: float = 0.0, apart: int = 3
) -> list[Rows]:
    """Three streams, a row every `apart` instants, up to `disorder` out of order."""
    found = []
    for stream in range(3):
        rng = np.random.default_rng([seed, stream])
        times = np.sort(rng.integers(0, apart * rows, rows))
        times = times[np.argsort(times + rng.integers(0, disorder + 1, rows), kind="stable")]
        chosen = np.where(rng.random(rows) < hot, 0, rng.integers(0, keys, rows))
        found.append(Rows(times, chosen))
    return found


def batches(streams: Sequence[Rows], seed: int, count: int) -> Iterator[Batch]:
    """Cut each stream anywhere, so that they run ahead of each other."""
    rng = np.random.default_rng(seed)
    cuts = [
        [0, *np.sort(rng.integers(0, len(s.times) + 1, count - 1)).tolist(), len(s.times)]
        for s in streams
    ]
    for spans in zip(*map(pairwise, cuts), strict=True):
        yield {
            name: rows.table(start, stop)
            for name, rows, (start, stop) in zip("abc", streams, spans, strict=True)
        }


def brute(query: Query, streams: Sequence[Rows]) -> Ids:
    """Every combination of three rows, checked one by one."""
    shapes = [(-1, 1, 1), (1, -1, 1), (1, 1, -1)]
    times = [s.times.reshape(shape) for s, shape in zip(streams, shapes, strict=True)]
    keys = [s.keys.reshape(shape) for s, shape in zip(streams, shapes, strict=True)]
    good = (keys[0] == keys[1]) & (keys[1] == keys[2])
    for i, row in enumerate(query.bounds.matrix):
        for j, bound in enumerate(row):
            good &= times[j] - times[i] <= bound
    return sorted(map(tuple, np.argwhere(good).tolist()))


class Driver:
    """Feeds batches to an engine; watermarks follow the newest row of each stream."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.newest = [BEFORE_ALL_TIMES] * len(engine.query.streams)
        self.results: Ids = []
        self.batch_sizes: list[int] = []

    def watermarks(self) -> list[int]:
        delays = [s.delay for s in self.engine.query.streams]
        return [n - d for n, d in zip(self.newest, delays, strict=True)]

    def admit(self, batch: Mapping[str, pa.Table]) -> dict[int, Arrivals]:
        before, arrivals = self.watermarks(), {}
        for name, table in batch.items():
            stream = self.engine.query.index(name)
            for rows in table.combine_chunks().to_batches():
                admitted = self.engine.admit(stream, rows, before[stream])
                self.newest[stream] = max(self.newest[stream], admitted.newest)
                arrivals[stream] = admitted.arrivals
        return arrivals

    def push(self, batch: Mapping[str, pa.Table]) -> int:
        """How many results the batch completes."""
        arrivals, found = self.admit(batch), 0
        for results in self.engine.push(arrivals, self.watermarks()):
            assert results.schema == self.engine.query.schema
            self.batch_sizes.append(results.num_rows)
            found += results.num_rows
            columns = [column.to_pylist() for column in results.columns]
            self.results += list(zip(*columns, strict=True))
        return found

    def restore(self, batch: Mapping[str, pa.Table]) -> None:
        self.engine.restore(self.admit(batch), self.watermarks())

    def rows(self) -> dict[tuple[str, ...], int]:
        """How many rows each state holds."""
        return {size.streams: size.rows for size in self.engine.sizes()}


def drive(query: Query, shape: str = "(a b c)", *, hash_bits: int = 64) -> Driver:
    return Driver(Engine(query, parse_shape(query, shape), hash_bits=hash_bits))


# --- exact results --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bounds", [global_window(3, WINDOW), UNEVEN], ids=["global", "uneven"])
@pytest.mark.parametrize("hash_bits", [64, 0])
def test_oracle_long_histories(shape: str, bounds: Sequence[Constraint], hash_bits: int) -> None:
    """Many windows, few keys, rows out of order, streams ahead of each other."""
    query = query_of(bounds, delay=12)
    streams = arriving(1, 200, keys=3, disorder=12)
    wanted = brute(query, streams)
    assert len(wanted) > 400
    for count in (1, 7, 60):
        driver = drive(query, shape, hash_bits=hash_bits)
        for batch in batches(streams, count, count):
            driver.push(batch)
        assert sorted(driver.results) == wanted, f"{count} batches"


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_oracle_a_hot_key(shape: str) -> None:
    query = query_of(delay=12)
    streams = arriving(2, 200, keys=1000, disorder=12, hot=0.9, apart=6)
    driver = drive(query, shape)
    for batch in batches(streams, 3, 20):
        driver.push(batch)
    assert sorted(driver.results) == brute(query, streams)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("order", ["abc", "cab", "bca"])
def test_oracle_streams_that_lag_behind_by_all_their_windows(shape: str, order: str) -> None:
    """One stream comes as a whole, then the next one, in batches of their own."""
    query = query_of()
    streams = arriving(3, 200, keys=3)
    driver = drive(query, shape)
    for name in order:
        rows = streams["abc".index(name)]
        for start in range(0, 200, 40):
            driver.push({name: rows.table(start, start + 40)})
    assert sorted(driver.results) == brute(query, streams)


def test_a_lagging_stream_does_not_look_at_the_windows_ahead_of_it() -> None:
    """Rows looked at per lookup: the matches, and a logarithm of what lies ahead."""
    rows = 3000
    query = query_of()
    times = np.arange(rows) * 10
    same = Rows(times, np.zeros(rows, np.int64))
    driver = drive(query)
    driver.push({"a": same.table(0, rows), "b": same.table(0, rows)})
    driver.push({"c": same.table(0, rows)})
    (operator,) = driver.engine.counters
    for step in operator.inputs[2].steps:
        assert step.visited <= step.matches + step.probes * (2 + 4 * log2(rows))


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("bounds", [global_window(3, WINDOW), UNEVEN], ids=["global", "uneven"])
def test_oracle_a_batch_of_many_windows_is_cut_into_slices(
    shape: str, bounds: Sequence[Constraint]
) -> None:
    """What expires within the batch is dropped within it, and nothing else is."""
    query = query_of(bounds, delay=12)
    streams = arriving(9, 200, keys=3, disorder=12)
    for count in (1, 3):
        plan = parse_shape(query, shape)
        driver = Driver(Engine(query, plan, tuning=Tuning(slice_rows=20)))
        for batch in batches(streams, count, count):
            driver.push(batch)
        assert sorted(driver.results) == brute(query, streams)


def test_a_large_batch_never_needs_a_window_of_its_own_size() -> None:
    rows = 20_000
    same = Rows(np.arange(rows), np.arange(rows) % 1000)
    driver = drive(query_of())
    driver.push(dict.fromkeys("abc", same.table(0, rows)))
    assert max(base.window.ring.capacity for base in driver.engine.bases) < rows / 2


@pytest.mark.slow
@settings(max_examples=25)
@given(cases(), st.integers(0, 10**6), st.sampled_from((1, 2, 3)))
def test_differential_the_smallest_portions(history: History, seed: int, portion: int) -> None:
    """Results climb to the root in portions; how large they are changes nothing."""
    query = history.query
    plan = sample_plan(query, Random(seed))
    whole = Driver(Engine(query, plan))
    parts = Driver(Engine(query, plan, tuning=Tuning(portion_rows=portion)))
    for batch in history.tables():
        assert whole.push(batch) == parts.push(batch)
    assert sorted(map(repr, whole.results)) == sorted(map(repr, parts.results))


def test_results_come_in_portions() -> None:
    query = query_of()
    same = Rows(np.zeros(20, np.int64), np.zeros(20, np.int64))
    for shape in SHAPES:
        driver = Driver(Engine(query, parse_shape(query, shape), tuning=Tuning(portion_rows=50)))
        assert driver.push(dict.fromkeys("abc", same.table(0, 20))) == 8000
        assert max(driver.batch_sizes) < 100


@pytest.mark.slow
@settings(max_examples=25)
@given(cases(), st.integers(0, 10**6))
def test_differential_the_order_in_which_a_batch_names_its_streams(
    history: History, seed: int
) -> None:
    plan = sample_plan(history.query, Random(seed))
    one, other = (Driver(Engine(history.query, plan)) for _ in range(2))
    for batch in history.tables():
        assert one.push(batch) == other.push(dict(reversed(batch.items())))
    assert sorted(map(repr, one.results)) == sorted(map(repr, other.results))


def test_a_batch_without_rows() -> None:
    query = query_of()
    empty = Rows(np.empty(0, np.int64), np.empty(0, np.int64)).table(0, 0)
    for shape in SHAPES:
        driver = drive(query, shape)
        assert driver.push({}) == 0
        assert driver.push(dict.fromkeys("abc", empty)) == 0


def test_a_plan_of_another_query_is_refused() -> None:
    with pytest.raises(PlanError):
        Engine(query_of(), Join((Leaf("a"), Leaf("b")), ((1,), (0,))))


# --- another plan, the same windows ---------------------------------------------------------------


@pytest.mark.parametrize("bounds", [global_window(3, WINDOW), UNEVEN], ids=["global", "uneven"])
def test_oracle_an_engine_goes_on_from_the_windows_of_another(bounds: Sequence[Constraint]) -> None:
    """A different plan in every batch: combined states are computed from the base windows."""
    query = query_of(bounds, delay=12)
    streams = arriving(4, 200, keys=3, disorder=12)
    plans = list(all_plans(query, orders="default"))
    driver = Driver(Engine(query, plans[0]))
    for number, batch in enumerate(batches(streams, 5, 40)):
        driver.push(batch)
        following = plans[(number * 3 + 1) % len(plans)]
        migrate(driver.engine, following)
    assert sorted(driver.results) == brute(query, streams)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_oracle_a_restored_engine_finds_what_is_left_to_find(shape: str) -> None:
    query = query_of(delay=12)
    streams = arriving(5, 150, keys=3, disorder=12)
    history = list(batches(streams, 6, 12))
    wanted = brute(query, streams)
    for crash in (0, 1, 6, 11, 12):
        before, after = drive(query, shape), drive(query, shape)
        for batch in history[:crash]:
            before.push(batch)
            after.restore(batch)
        assert after.rows() == before.rows()
        for batch in history[crash:]:
            after.push(batch)
        assert sorted(before.results + after.results) == wanted


# --- counters -------------------------------------------------------------------------------------


def check_counters(driver: Driver, results: int) -> None:
    engine, query = driver.engine, driver.engine.query
    rows = driver.rows()
    assert isinstance(engine.plan, Join)
    by_name = {str(join): join for join in joins(engine.plan)}
    operators = [(counters, by_name.pop(counters.operator)) for counters in engine.counters]
    assert not by_name, "joins that nobody counted"
    outputs = {join.streams: counters.outputs for counters, join in operators}
    assert outputs[engine.plan.streams] == results, "what the root puts out are the results"
    for counters, join in operators:
        assert counters.outputs == sum(_last(i) for i in counters.inputs)
        for counted, child in zip(counters.inputs, join.children, strict=True):
            assert counted.arrivals == counted.inserts
            names = tuple(sorted(child.streams, key=query.index))
            assert counted.inserts - counted.deletes == rows[names]
            if isinstance(child, Join):
                assert counted.arrivals == outputs[child.streams]
            looked_up = counted.arrivals
            assert len(counted.steps) == len(join.children) - 1
            for step in counted.steps:
                assert step.probes == looked_up, "each match is looked up in the next state"
                assert step.visited >= step.matches
                looked_up = step.matches


def _last(counted: InputCounters) -> int:
    return counted.steps[-1].matches


@pytest.mark.slow
@settings(max_examples=30)
@given(cases(late=True), st.integers(0, 10**6), st.sampled_from((64, 0)))
def test_counters_add_up(history: History, seed: int, hash_bits: int) -> None:
    query = history.query
    engine = Engine(query, sample_plan(query, Random(seed)), hash_bits=hash_bits)
    driver, results = Driver(engine), 0
    for batch in history.tables():
        results += driver.push(batch)
        check_counters(driver, results)


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
def test_counters_add_up_over_many_windows(shape: str) -> None:
    query = query_of(UNEVEN, delay=12)
    driver = drive(query, shape)
    for batch in batches(arriving(7, 400, keys=2, disorder=12, apart=2), 8, 50):
        driver.push(batch)
        check_counters(driver, len(driver.results))
    (root, *_) = driver.engine.counters
    assert sum(counted.deletes for counted in root.inputs) > 0


# --- memory ---------------------------------------------------------------------------------------


def steady(number: int, rows: int, keys: str) -> pa.Table:
    """Batch `number` of a stream with a row per instant; keys repeat, or are new in each batch."""
    first = number * rows
    times = np.arange(first, first + rows)
    names = pa.array(10**9 + (times % 17 if keys == "few" else times // 5)).cast(pa.string())
    stamps = pa.array(times).cast(pa.timestamp("us"))
    return pa.table({"ts": stamps, "k": names, "id": pa.array(times)})


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "keys"), [*((shape, "few") for shape in SHAPES), *((s, "new") for s in SHAPES[:2])]
)
def test_memory_stays_flat_over_many_windows(shape: str, keys: str) -> None:
    """Also that of keys, of which 400 new ones come in each batch."""
    query, rows = query_of(key=pa.string()), 2000
    driver = drive(query, shape)
    stored, allocated = [], []
    for number in range(50 if keys == "new" else 20):
        table = steady(number, rows, keys)
        for _ in driver.engine.push(driver.admit(dict.fromkeys("abc", table)), driver.watermarks()):
            pass
        stored.append(max(driver.rows().values()))
        allocated.append(driver.engine.nbytes)
    assert max(stored) <= 2 * WINDOW * 25
    half = len(allocated) // 2
    assert max(allocated[half:]) <= max(allocated[:half])
    assert max(allocated) < 1_000_000


def test_a_silent_stream_holds_the_rows_of_the_others() -> None:
    query, rows = query_of(), 200
    same = Rows(np.arange(rows) * 10, np.zeros(rows, np.int64))
    for shape in SHAPES:
        driver = drive(query, shape)
        for start in range(0, rows, 50):
            driver.push(dict.fromkeys("ab", same.table(start, start + 50)))
        assert driver.rows()["a",] == driver.rows()["b",] == rows, "c may still come at 0"
        driver.push({"c": same.table(0, 1)})
        assert sorted({c for _, _, c in driver.results}) == [0]
        driver.push({"c": same.table(1, rows)})
        held = driver.rows()
        assert max(held[name,] for name in "abc") < 20, "what the next row can still join"
        assert max(held.values()) < 300, "combinations, and a block of dead ones at most"


def test_a_stream_that_ends_frees_nothing_but_what_is_out_of_reach() -> None:
    """a stops at 1000; b and c go on, and a may go on too."""
    query = query_of()
    driver = drive(query)
    rows = Rows(np.arange(0, 3000, 10), np.zeros(300, np.int64))
    driver.push({"a": rows.table(0, 101)})
    for start in range(0, 300, 20):
        driver.push(dict.fromkeys("bc", rows.table(start, start + 20)))
    held = driver.rows()
    assert held["b",] == held["c",] == 300 - 98, "from 980 on, within reach of a at 1000"
    assert held["a",] == 0, "b and c are far beyond it"


def test_an_engine_without_rows_is_small() -> None:
    for shape in SHAPES:
        assert drive(query_of(), shape).engine.nbytes < 100_000
