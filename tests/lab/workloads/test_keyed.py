"""The shared workloads: joined as named, at the stated rate, with the stated disorder."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from plait.kernels.jit import Ints
from plait.query.expr import Column
from plait.query.query import Equality
from plait_lab.workloads.keyed import RATE, keyed_query, keyed_tables

SECOND = 1_000_000


def times(table: pa.Table) -> Ints:
    return np.asarray(table["ts"].cast(pa.int64()))


def test_streams_join_over_the_keys_they_share() -> None:
    query = keyed_query([["k1"], ["k1", "k2"], ["k2"]], 5 * SECOND, delay=7)
    assert query.names == ("s0", "s1", "s2")
    assert query.equalities == (
        Equality(Column("s0", "k1"), Column("s1", "k1")),
        Equality(Column("s1", "k2"), Column("s2", "k2")),
    )
    assert query.bounds.uniform == 5 * SECOND
    assert {s.delay for s in query.streams} == {7}
    assert query.schema.names == ["k1", "k2", "s0_ts", "s0_v", "s1_ts", "s1_v", "s2_ts", "s2_v"]


def test_rows_have_the_schema_of_their_streams() -> None:
    query = keyed_query([["k"]] * 2, SECOND)
    tables = keyed_tables(query, 100, 10, seed=1)
    assert list(tables) == ["s0", "s1"]
    for stream in query.streams:
        table = tables[stream.name]
        assert table.num_rows == 100
        assert table.schema == stream.schema


def test_rows_come_at_the_rate_with_keys_from_the_domain() -> None:
    rows = 20_000
    query = keyed_query([["k"]] * 2, SECOND)
    for table in keyed_tables(query, rows, 10, seed=1).values():
        stamps = times(table)
        assert (np.diff(stamps) >= 0).all()
        assert 0 <= stamps[0] <= stamps[-1] < rows * SECOND // RATE
        per_second = np.bincount(stamps // SECOND)
        assert abs(per_second.mean() - RATE) <= 1
        shares = np.bincount(np.asarray(table["k"]), minlength=10) / rows
        assert len(shares) == 10
        assert shares.min() > 0.08


@pytest.mark.parametrize("share", [0.1, 1.0])
def test_disorder_stays_within_the_delay_and_concerns_a_share_of_the_rows(share: float) -> None:
    rows, disorder = 20_000, SECOND
    query = keyed_query([["k"]] * 2, SECOND, delay=disorder)
    tables = keyed_tables(query, rows, 10, seed=1, disorder=disorder, share=share)
    for table in tables.values():
        stamps = times(table)
        behind = np.maximum.accumulate(stamps) - stamps
        assert 0.5 * disorder < behind.max() <= disorder, "no row is late, however it is cut"
        assert 0.8 * share < (behind > 0).mean() <= 1.1 * share


def test_the_seed_decides() -> None:
    query = keyed_query([["k"]] * 2, SECOND)
    first, again, other = (keyed_tables(query, 50, 10, seed) for seed in (1, 1, 2))
    assert first == again
    assert first["s0"] != other["s0"]
    assert first["s0"] != first["s1"], "streams are independent"
