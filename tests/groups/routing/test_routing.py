"""Rows are divided among processors by a hash that only the query knows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from tests.kernels.test_adversary import chosen_integers

from plait.groups.routing.packets import Packer
from plait.groups.routing.routing import route
from plait.testing.examples import clique

QUERY = clique(2)


def rows_of(keys: pa.Array) -> pa.RecordBatch:
    times = pa.array(np.arange(len(keys)), pa.timestamp("us"))
    stream = QUERY.streams[0]
    columns = [times.cast(f.type) if f.name == stream.time else keys for f in stream.fields]
    return pa.RecordBatch.from_arrays(columns, names=[f.name for f in stream.fields])


def shares(keys: pa.Array, seed: int | None, processors: int = 4) -> list[int]:
    """How many of the rows each processor gets."""
    packer = Packer(QUERY, 0, route(QUERY.graph, processors, seed=seed))
    found: Counter[int] = Counter()
    for packet in packer.pack([rows_of(keys)]):
        found[packet.processor] += packet.rows if packet.body is not None else 0
    return [found[p] for p in range(processors)]


def test_chosen_keys_met_on_one_processor_and_no_longer_do() -> None:
    # Groups are the hash modulo 128: its lowest bits. The chosen keys count these up.
    keys = pa.array(chosen_integers(128 * 2_000)[::128])
    assert sorted(shares(keys, None)) == [0, 0, 0, 2_000]
    for seed in (0, 1, 2**63):
        assert min(shares(keys, seed)) > 400


@pytest.mark.parametrize("seed", [None, 0, 7])
def test_a_row_goes_the_same_way_whenever_it_is_routed(seed: int | None) -> None:
    keys = pa.array(np.arange(1_000))
    whole = Packer(QUERY, 0, route(QUERY.graph, 3, seed=seed))
    again = Packer(QUERY, 0, route(QUERY.graph, 3, seed=seed))
    one = [p for p in whole.pack([rows_of(keys)]) if p.body is not None]
    other = [p for p in again.pack([rows_of(keys)]) if p.body is not None]
    assert one == other and len(one) == 3


def test_seeds_divide_rows_differently() -> None:
    keys = pa.array(np.arange(1_000))
    assert len({tuple(shares(keys, seed)) for seed in (None, 0, 1, 2)}) == 4
