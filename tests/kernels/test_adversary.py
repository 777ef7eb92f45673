"""An enemy who knows the code, but not the seed, chooses keys: lookups must stay as short as ever.

The keys are those that collided under the hash without a secret, which could be undone: fifty
thousand integers in one bucket of an index, fifty thousand strings in one slot of an interner.
Steps are counted, not timed. With the old hash they were the square of that, 2,500 million.
"""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from plait.kernels.index import finished, new_cursor
from plait.kernels.intern import Interner
from plait.kernels.jit import Bytes, Ints
from plait.kernels.unkeyed import unkeyed_integers, unkeyed_strings
from plait.kernels.window import Window

KEYS = 50_000
TARGET = 0xABCD_EF01
ODD_1, ODD_2 = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93


Words = NDArray[np.uint64]


def unshifted(x: Words, by: int) -> Words:
    y = x
    for _ in range(64 // by + 1):
        y = x ^ (y >> np.uint64(by))
    return y


def unmixed(h: Words) -> Words:
    """The values that the old hash turned into `h`."""
    x = unshifted(h, 32)
    x = unshifted(x * np.uint64(pow(ODD_2, -1, 2**64)), 29)
    return unshifted(x * np.uint64(pow(ODD_1, -1, 2**64)), 32)


def chosen_integers(n: int) -> Ints:
    """Integers whose old hashes agree in the upper half."""
    return unmixed(np.uint64(TARGET << 32) + np.arange(n, dtype=np.uint64)).view(np.int64)


def chosen_strings(n: int) -> tuple[Bytes, Ints, Ints]:
    """Strings of eight bytes whose old hashes agree in the lower half."""
    hashes = (np.arange(n, dtype=np.uint64) << np.uint64(32)) + np.uint64(TARGET)
    words = unmixed(unmixed(hashes)) ^ np.uint64(8 * ODD_2 % 2**64)
    return words.view(np.uint8), np.arange(0, 8 * n, 8), np.full(n, 8, np.int64)


def test_the_enemy_knew_the_old_hash() -> None:
    assert np.unique(unkeyed_integers(chosen_integers(100)) >> np.uint64(32)).tolist() == [TARGET]
    found = unkeyed_strings(*chosen_strings(100)) & np.uint64(2**32 - 1)
    assert np.unique(found).tolist() == [TARGET]


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_chosen_integers_do_not_share_a_bucket(seed: int) -> None:
    keys = chosen_integers(KEYS)
    window = Window((0,), [(0,)], seed=seed)
    times: Ints = np.arange(KEYS, dtype=np.int64)
    window.append(times, {0: keys})
    cursor, matches, visited = new_cursor(), 0, 0
    lo, hi = np.zeros(KEYS, np.int64), np.full(KEYS, KEYS, np.int64)
    while not finished(cursor, KEYS):
        probes, rows, seen = window.probe((0,), keys, lo, hi, cursor, 1 << 16)
        assert (keys[probes] == window.codes(0)[rows]).all()
        matches += len(probes)
        visited += seen
    assert matches == KEYS
    assert visited < 4 * KEYS


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_chosen_pairs_do_not_share_a_bucket(seed: int) -> None:
    """An index over two classes: the hash of both codes is a key, and hashed once more."""
    keys = chosen_integers(KEYS)
    window = Window((0, 1), [(0, 1)], seed=seed)
    codes = {0: keys, 1: np.zeros(KEYS, np.int64)}
    window.append(np.arange(KEYS, dtype=np.int64), codes)
    both = window.keys((0, 1), codes, KEYS)
    assert len(np.unique(both)) == KEYS
    cursor, visited = new_cursor(), 0
    lo, hi = np.zeros(KEYS, np.int64), np.full(KEYS, KEYS, np.int64)
    while not finished(cursor, KEYS):
        visited += window.probe((0, 1), both, lo, hi, cursor, 1 << 16)[2]
    assert visited < 4 * KEYS


@pytest.mark.parametrize("seed", [0, 1, 2**63])
def test_chosen_strings_do_not_share_a_slot(seed: int) -> None:
    interner = Interner(seed=seed)
    codes = interner.encode(*chosen_strings(KEYS))
    assert len(np.unique(codes)) == KEYS
    assert interner.passed < 2 * KEYS
