"""Chains against brute force: what `link` builds, what `probe` finds, and what it looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import log2

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plait.kernels.hashing import make_secret
from plait.kernels.index import finished, link, new_cursor, probe, sweep
from plait.kernels.jit import Ids, Ints
from plait.kernels.ring import (
    ID_MASK,
    Ring,
    expired_prefix,
    first_positions,
    ids_of,
    positions_of,
)
from plait.tuning import USUAL, Tuning

FAR = 2**62
NO_TIMES: Ints = np.empty(0, np.int64)
FIRST_IDS = (0, 0xFFFF_FFF0, 0xFFFF_FFFF)
HASH_BITS = (64, 3, 0)

Pairs = Counter[tuple[int, int]]
"""Pairs of a probe and a row, the row by its id."""


class Chains:
    """A ring with one index over it, of 64 buckets, so that many rows are strangers."""

    def __init__(self, first_id: int = 0, hash_bits: int = 64) -> None:
        self.ring = Ring(tuning=Tuning(first_id=first_id))
        self.ring.add_column("nodes", np.int64, words=3)
        self.ring.add_column("ranks", np.uint8)
        self.secret = make_secret(0, hash_bits)
        self.heads: Ids = np.full(64, (first_id - 1) & ID_MASK, np.uint32)

    @property
    def nodes(self) -> Ints:
        return self.ring.columns["nodes"]

    def append(self, times: Sequence[int] | Ints, keys: Sequence[int] | Ints) -> None:
        n = len(times)
        self.ring.reserve(n)
        rows = np.r_[self.ring.extend(n)]
        self.nodes[rows, 0], self.nodes[rows, 1] = times, keys
        ranks = self.ring.columns["ranks"]
        link(self.ring.header, NO_TIMES, n, self.nodes, self.secret, self.heads, ranks, 128)

    def expire(self, cutoff: int) -> None:
        """Drop from the front what is older than `cutoff`; later probes begin there."""
        self.ring.drop(expired_prefix(self.ring.header, self.nodes[:, 0], cutoff))

    def live(self) -> list[tuple[int, int, int]]:
        """The id, time and key of each row."""
        rows = first_positions(self.ring.header, 0, len(self.ring))
        ids = ids_of(self.ring.header, rows)
        columns = (ids, self.nodes[rows, 0], self.nodes[rows, 1])
        return list(zip(*(column.tolist() for column in columns), strict=True))

    def probe(
        self, probes: Sequence[tuple[int, int, int]], limit: int = 1 << 16
    ) -> tuple[Pairs, int]:
        """All pairs for probes given as (key, lo, hi), and the rows looked at."""
        keys, lo, hi = (np.array([p[i] for p in probes], np.int64) for i in range(3))
        cursor, found, visited = new_cursor(), Pairs(), 0
        while not finished(cursor, len(probes)):
            header, secret = self.ring.header, self.secret
            which, rows, seen = probe(
                header, self.nodes, NO_TIMES, secret, self.heads, keys, lo, hi, cursor, limit
            )
            assert len(which) == len(rows) < limit + USUAL.walkers, "more than about `limit` pairs"
            assert len(which) >= limit or finished(cursor, len(probes)), "stopped too early"
            found.update(zip(which.tolist(), ids_of(header, rows).tolist(), strict=True))
            visited += seen
        return found, visited

    def expected(self, probes: Sequence[tuple[int, int, int]]) -> Pairs:
        """The definition."""
        live = self.live()
        return Pairs(
            (p, id_)
            for p, (key, lo, hi) in enumerate(probes)
            for id_, time, row_key in live
            if row_key == key and lo <= time <= hi
        )

    def check_chains(self, cutoff: int = -FAR) -> None:
        """Every row from `cutoff` on is in one chain, once; chains descend, and so do jumps."""
        ids = [id_ for id_, _, _ in self.live()]
        position = dict(
            zip(ids, first_positions(self.ring.header, 0, len(ids)).tolist(), strict=True)
        )
        nodes = self.nodes.tolist()
        reached: Counter[int] = Counter()
        buckets: dict[int, set[int]] = {}
        for bucket, head in enumerate(self.heads.tolist()):
            chain: list[int] = []
            id_ = head
            while id_ in position:
                chain.append(id_)
                assert len(chain) <= len(ids), "a cycle"
                id_ = nodes[position[id_]][2] & ID_MASK
            times = [nodes[position[id_]][0] for id_ in chain]
            assert times == sorted(times, reverse=True)
            place = {id_: i for i, id_ in enumerate(chain)}
            for i, id_ in enumerate(chain):
                _, key, links = nodes[position[id_]]
                jump = (links >> 32) & ID_MASK
                assert jump not in position or place[jump] > i, "a jump that does not lead ahead"
                buckets.setdefault(key, set()).add(bucket)
            reached.update(chain)
        assert all(len(found) == 1 for found in buckets.values()), "a key in two chains"
        assert set(reached.values()) <= {1}, "a row twice"
        assert {id_ for id_, time, _ in self.live() if time >= cutoff} <= set(reached)


ROWS = st.lists(st.tuples(st.integers(0, 12), st.integers(0, 3)), max_size=25)
"""(time after the cutoff, key): ties, out of order, a few keys."""

PROBES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 14), st.integers(-1, 14)), max_size=9)
"""(key, lo after the cutoff, hi after the cutoff)."""


@pytest.mark.slow
@settings(max_examples=70)
@given(
    st.lists(st.tuples(ROWS, st.integers(0, 4), PROBES), max_size=6),
    st.sampled_from(FIRST_IDS),
    st.sampled_from(HASH_BITS),
    st.integers(1, 40),
)
def test_oracle_probe_while_rows_come_and_go(
    rounds: list[tuple[list[tuple[int, int]], int, list[tuple[int, int, int]]]],
    first_id: int,
    hash_bits: int,
    limit: int,
) -> None:
    chains, cutoff = Chains(first_id, hash_bits), 0
    for rows, step, probes in rounds:
        chains.append([cutoff + t for t, _ in rows], [k for _, k in rows])
        chains.check_chains(cutoff)
        shifted = [(key, cutoff + lo, cutoff + hi) for key, lo, hi in probes]
        assert chains.probe(shifted, limit)[0] == chains.expected(shifted)
        cutoff += step
        chains.expire(cutoff)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["ascending", "shuffled", "tied"])
@pytest.mark.parametrize("keys", [1, 1000])
@pytest.mark.parametrize("first_id", FIRST_IDS)
def test_oracle_probe_of_thousands_of_rows(order: str, keys: int, first_id: int) -> None:
    """More rows than a block links at a time, a ring that grows, turns and wraps its ids."""
    rng = np.random.default_rng(7)
    chains, cutoff = Chains(first_id), 0
    for _ in range(6):
        times = (
            cutoff
            + {
                "ascending": np.arange(500),
                "shuffled": rng.permutation(500),
                "tied": rng.integers(0, 5, 500) * 100,
            }[order]
        )
        chains.append(times, rng.integers(0, keys, 500))
        cutoff += 300
        chains.expire(cutoff)
        chains.check_chains(cutoff)
        lows = cutoff + rng.integers(0, 200, 50)
        probes = [
            (int(k), int(lo), int(lo + width))
            for k, lo, width in zip(
                rng.integers(0, keys, 50), lows, rng.integers(-1, 200, 50), strict=True
            )
        ]
        assert chains.probe(probes)[0] == chains.expected(probes)


def test_every_limit_finds_the_same_pairs() -> None:
    rng = np.random.default_rng(3)
    chains = Chains(0xFFFF_FFC0)
    chains.append(rng.integers(0, 9, 120), rng.integers(0, 4, 120))
    probes = [(int(k), 2, 6) for k in rng.integers(0, 5, 70)]
    expected = chains.expected(probes)
    assert expected.total() > 500
    for limit in [*range(1, 2 * USUAL.walkers + 3), expected.total(), expected.total() + 1]:
        assert chains.probe(probes, limit)[0] == expected, limit


def test_probes_with_the_widest_ranges() -> None:
    chains = Chains()
    chains.append([-FAR, -1, 0, 1, FAR], [7] * 5)
    probes = [(7, -FAR, FAR), (7, FAR, FAR), (7, -FAR, -FAR), (7, FAR, -FAR), (8, -FAR, FAR)]
    found, _ = chains.probe(probes)
    assert [sum(p == i for p, _ in found) for i in range(5)] == [5, 1, 1, 0, 0]
    assert found == chains.expected(probes)


def test_keys_with_all_kinds_of_bits() -> None:
    keys = [0, 1, -1, 2**63 - 1, -(2**63), 1 << 32, -(1 << 32), *(1 << i for i in range(63))]
    chains = Chains()
    chains.append([0] * len(keys), keys)
    probes = [(key, 0, 0) for key in keys]
    assert chains.probe(probes)[0] == chains.expected(probes)


def test_nothing_is_found_where_there_is_nothing() -> None:
    chains = Chains(0xFFFF_FFFF)
    assert chains.probe([(0, -FAR, FAR)] * 100) == (Pairs(), 0)
    assert chains.probe([]) == (Pairs(), 0)
    chains.append([1, 2, 3], [0, 0, 0])
    assert chains.probe([]) == (Pairs(), 0)
    chains.expire(10)
    assert chains.probe([(0, -FAR, FAR)] * 100) == (Pairs(), 0)


@given(ROWS, ROWS)
@example([(0, 0)], [(0, 0)])
def test_linking_a_block_is_linking_its_rows(
    first: list[tuple[int, int]], second: list[tuple[int, int]]
) -> None:
    """The same chains to the last link, whether rows come together or one by one."""
    whole, single = Chains(), Chains()
    for rows in (first, second):
        whole.append([t for t, _ in rows], [k for _, k in rows])
        for t, k in rows:
            single.append([t], [k])
    assert whole.heads.tolist() == single.heads.tolist()
    n = len(whole.ring)
    assert whole.nodes[:n].tolist() == single.nodes[:n].tolist()


# --- what a probe looks at ------------------------------------------------------------------------

MANY = 100_000


def _one_key(times: Ints, block: int) -> Chains:
    chains = Chains()
    for start in range(0, len(times), block):
        part = times[start : start + block]
        chains.append(part, np.zeros(len(part), np.int64))
    return chains


def _most_visited(chains: Chains, rows: int) -> int:
    """Over probes for five neighbouring rows, from the oldest to the newest."""
    most = 0
    for oldest in (0, 1, rows // 4, rows // 3, rows // 2, 2 * rows // 3, rows - 6):
        found, visited = chains.probe([(0, oldest, oldest + 4)])
        assert found.total() == 5
        most = max(most, visited)
    return most


def test_rows_in_order_are_skipped_in_logarithmic_time() -> None:
    chains = _one_key(np.arange(MANY), 1000)
    assert _most_visited(chains, MANY) <= 5 + 4 * log2(MANY)


@pytest.mark.slow
def test_rows_in_random_order_are_skipped_in_polylogarithmic_time() -> None:
    chains = _one_key(np.random.default_rng(1).permutation(MANY), MANY)
    assert _most_visited(chains, MANY) <= 4 * log2(MANY) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("block", [1, 100])
@pytest.mark.parametrize("arrival", ["a late half", "two fronts", "small disorder"])
def test_no_order_of_arrival_makes_a_chain_linear(arrival: str, block: int) -> None:
    """Sorted batches of `block` rows; the batches themselves come in any order."""
    rows = 6_000
    batches = np.arange(rows).reshape(-1, block)
    n = len(batches)
    orders: dict[str, Sequence[int]] = {
        "a late half": [*range(n // 2, n), *range(n // 2)],
        "two fronts": [
            i for pair in zip(range(n // 2), range(n // 2, n), strict=True) for i in pair
        ],
        "small disorder": np.argsort(
            np.arange(n) + np.random.default_rng(2).integers(0, 9, n)
        ).tolist(),
    }
    chains = _one_key(batches[list(orders[arrival])].reshape(-1), block)
    chains.check_chains()
    assert _most_visited(chains, rows) <= 4 * log2(rows) ** 2


def test_rows_too_new_for_one_probe_cost_the_others_nothing() -> None:
    """A lagging probe of one key does not look at the rows of another."""
    chains = Chains()
    chains.append(np.arange(1000), np.arange(1000) % 2)
    _, visited = chains.probe([(0, 996, 996), (1, 1, 3)])
    assert visited <= 2 * (5 + 4 * log2(1000))


def test_dropped_rows_are_not_looked_at() -> None:
    chains = _one_key(np.arange(1000), 1000)
    chains.expire(990)
    found, visited = chains.probe([(0, 0, 2000)])
    assert (found.total(), visited) == (10, 10)


# --- sweep ----------------------------------------------------------------------------------------


def test_sweeping_forgets_dropped_rows_and_only_those() -> None:
    chains = Chains(0xFFFF_FFF8)
    chains.append(range(40), range(40))
    chains.expire(20)
    live = chains.live()
    heads = positions_of(chains.ring.header, chains.heads)
    kept = [int(head) for head, p in zip(chains.heads, heads, strict=True) if p >= 0]
    sweep(chains.ring.header, chains.heads)
    after = positions_of(chains.ring.header, chains.heads)
    assert [int(head) for head, p in zip(chains.heads, after, strict=True) if p >= 0] == kept
    nothing = (int(chains.ring.header[0]) - 1) & ID_MASK
    assert {int(h) for h, p in zip(chains.heads, after, strict=True) if p < 0} == {nothing}
    chains.check_chains(20)
    probes = [(key, 0, 50) for key in range(40)]
    assert chains.live() == live
    assert chains.probe(probes)[0] == chains.expected(probes)


def test_a_swept_bucket_does_not_take_a_new_row_for_an_old_one() -> None:
    """The id of a dropped row is given out again 2^32 rows later, after four sweeps."""
    chains = Chains(100)
    chains.append([1], [7])
    chains.expire(10)
    assert 100 in chains.heads
    for _ in range(4):
        sweep(chains.ring.header, chains.heads)
        chains.ring.header[0] = (chains.ring.header[0] + 2**30) & ID_MASK
    chains.ring.header[0] -= 1
    chains.append([20], [8])
    assert chains.live() == [(100, 20, 8)]
    chains.check_chains()
    assert chains.probe([(7, -FAR, FAR), (8, -FAR, FAR)])[0] == Pairs([(1, 100)])
