"""The checksum forgets order and chunks, and nothing else."""

from __future__ import annotations

import time
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.testing.oracle.answer import multiset
from plait.testing.oracle.checksum import checksum, checksum_batches

TYPES = {
    pa.int64(): (0, 1, -1, 2**62),
    pa.int16(): (0, 1, -1, 300),
    pa.uint64(): (0, 1, 2**64 - 1),
    pa.float64(): (0.0, -0.0, 1.5, float("nan"), float("inf")),
    pa.float32(): (0.0, 0.5, float("nan")),
    pa.string(): ("", "a", "b", "ab"),
    pa.large_string(): ("a", "b"),
    pa.binary(): (b"", b"a", b"\0"),
    pa.bool_(): (True, False),
    pa.date32(): (0, 1),
    pa.timestamp("ns"): (0, 1, -1),
    pa.duration("us"): (0, 5),
    pa.decimal128(5, 2): (Decimal("1.50"), Decimal("0.00"), Decimal("-1.50")),
    pa.dictionary(pa.int32(), pa.string()): ("a", "b"),
    pa.null(): (None,),
}


@st.composite
def _tables(draw: st.DrawFn) -> pa.Table:
    types = draw(st.lists(st.sampled_from(list(TYPES)), min_size=1, max_size=3))
    count = draw(st.integers(0, 5))
    columns = [
        pa.array([draw(st.sampled_from((*TYPES[t], None))) for _ in range(count)], t) for t in types
    ]
    return pa.table(columns, names=[f"c{i}" for i in range(len(types))])


@given(_tables(), st.data())
def test_equal_for_equal_multisets_only(table: pa.Table, data: st.DataObject) -> None:
    rows = data.draw(st.lists(st.integers(0, max(0, len(table) - 1)), max_size=6))
    other = table.take(pa.array(rows, pa.int64())) if len(table) else table
    other = pa.concat_tables([other.slice(0, 1), other.slice(1)])
    assert (checksum(table) == checksum(other)) == (multiset(table) == multiset(other))


@pytest.mark.slow
@pytest.mark.parametrize(("chunk", "block"), [(64, 10), (1, 1), (10, 64), (1000, 999)])
def test_blocks_and_chunks_do_not_matter(chunk: int, block: int) -> None:
    table = pa.table({"x": list(range(1000)), "s": [str(i % 7) for i in range(1000)]})
    whole = checksum(table)
    other = pa.concat_tables([table.slice(333), table.slice(0, 333)])
    for given_ in (table, other):
        assert checksum_batches(given_.to_batches(), chunk=chunk, block=block) == whole


def test_columns_are_not_interchangeable() -> None:
    assert checksum(pa.table({"a": [1], "b": [2]})) != checksum(pa.table({"a": [2], "b": [1]}))
    assert checksum(pa.table({"a": [1, 2], "b": [1, 2]})) != checksum(
        pa.table({"a": [1, 2], "b": [2, 1]})
    )


def test_nothing_is_zero_and_integers_of_all_widths_are_alike() -> None:
    assert checksum(pa.table({"a": pa.array([], pa.int64())})) == 0
    assert checksum(pa.table({"a": pa.array([-3], pa.int8())})) == checksum(pa.table({"a": [-3]}))


@pytest.mark.slow
def test_fifteen_million_rows_take_well_under_two_seconds() -> None:
    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.integers(0, 1 << 60, 15_000_000) for i in range(7)})
    begin = time.process_time()
    checksum(table)
    assert time.process_time() - begin < 2.0
