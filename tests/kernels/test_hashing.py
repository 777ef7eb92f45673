"""A hash may collide, but it must look at everything and spread what it saw."""

from __future__ import annotations

import numpy as np
import pytest

from plait.kernels.hashing import (
    Secret,
    combine,
    hash_bytes,
    hash_integers,
    hash_strings,
    make_secret,
)
from plait.kernels.jit import Bytes, Ints

PLAIN = make_secret()


def hashed(data: bytes, secret: Secret = PLAIN) -> int:
    array: Bytes = np.frombuffer(data + b"\0", np.uint8)
    return int(hash_bytes(array, 0, len(data), secret))


def test_fold_is_the_product_of_128_bits() -> None:
    rng = np.random.default_rng(0)
    for _ in range(100):
        a, b = (int(x) for x in rng.integers(0, 2**64, 2, np.uint64))
        found = hash_integers(np.array([a], np.uint64).view(np.int64), secret_of(0, b, 1))
        # Of the second round, a multiplication by 1, only the first word is left.
        product = a * b
        assert int(found[0]) == (product >> 64) ^ (product & (2**64 - 1))


def secret_of(*words: int) -> Secret:
    return np.array([*words, 2**64 - 1], np.uint64)


def test_a_secret_follows_from_its_seed_alone() -> None:
    found = {tuple(make_secret(seed).tolist()) for seed in (0, 1, -1, 2**64 - 1, 2**200)}
    assert len(found) == 5
    assert all(k1 % 2 == k2 % 2 == 1 and mask == 2**64 - 1 for _, k1, k2, mask in found)
    assert make_secret(3).tolist() == make_secret(3).tolist()
    assert make_secret(0, 0)[3] == 0 and make_secret(0, 1)[3] == 2**63


def test_values_do_not_collide_on_samples() -> None:
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [
            np.arange(3000, dtype=np.uint64),
            np.arange(3000, dtype=np.uint64) << np.uint64(32),
            ~np.arange(3000, dtype=np.uint64),
            np.uint64(1) << np.arange(64, dtype=np.uint64),
            rng.integers(0, 2**64, 3000, np.uint64),
        ]
    )
    values = np.unique(values)
    for seed in range(5):
        hashes = hash_integers(values.view(np.int64), make_secret(seed))
        assert len(np.unique(hashes)) == len(values)


def test_another_seed_is_another_hash() -> None:
    values: Ints = np.arange(1000, dtype=np.int64)
    one, other = (hash_integers(values, make_secret(seed)) for seed in (1, 2))
    assert not (one == other).any()
    assert hashed(b"hello world", make_secret(1)) != hashed(b"hello world", make_secret(2))


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shift", [52, 0])
@pytest.mark.parametrize("kind", ["small", "multiples of 2^32", "negative", "doubles"])
def test_the_outer_bits_spread_regular_keys(kind: str, shift: int, seed: int) -> None:
    """Buckets are the top bits, slots the lowest: regular keys must fill them like random ones."""
    n = 4096
    numbers = np.arange(n, dtype=np.int64)
    keys: Ints = {
        "small": numbers,
        "multiples of 2^32": numbers << 32,
        "negative": -numbers,
        "doubles": numbers.astype(np.float64).view(np.int64),
    }[kind]
    hashes = hash_integers(keys, make_secret(seed))
    buckets = (hashes >> np.uint64(shift)) & np.uint64(n - 1)
    filled = len(np.unique(buckets))
    assert 0.58 * n < filled < 0.75 * n, "a random map fills 63 %"


@pytest.mark.parametrize("length", [1, 7, 8, 9, 15, 16, 17, 100])
def test_every_bit_and_the_length_count(length: int) -> None:
    base = bytes(range(1, length + 1))
    hashes = {hashed(base)}
    for i in range(length):
        for bit in range(8):
            changed = bytearray(base)
            changed[i] ^= 1 << bit
            hashes.add(hashed(bytes(changed)))
    hashes.add(hashed(base + b"\0"))
    hashes.add(hashed(b"\0" + base))
    hashes.add(hashed(base[:-1]))
    assert len(hashes) == 8 * length + 4


def test_runs_of_zeros_of_every_length_differ() -> None:
    assert len({hashed(b"\0" * n) for n in range(200)}) == 200


def test_words_in_another_order_differ() -> None:
    a, b = b"12345678", b"abcdefgh"
    assert len({hashed(a + b), hashed(b + a), hashed(a + a), hashed(b + b)}) == 4


def test_only_the_bytes_of_the_string_count() -> None:
    here: Bytes = np.frombuffer(b"xxhello worldyy", np.uint8)
    there: Bytes = np.frombuffer(b"hello world", np.uint8)
    assert hash_bytes(here, 2, 11, PLAIN) == hash_bytes(there, 0, 11, PLAIN)


def test_many_hashes_at_once_are_the_same_hashes() -> None:
    strings = [b"", b"a", b"hello world", b"\0" * 9, b"12345678"]
    data: Bytes = np.frombuffer(b"".join(strings), np.uint8)
    lengths: Ints = np.array([len(s) for s in strings], np.int64)
    hashes = hash_strings(data, np.cumsum(lengths) - lengths, lengths, PLAIN)
    assert hashes.tolist() == [hashed(s) for s in strings]


def test_a_mask_of_0_makes_everything_collide() -> None:
    blind = make_secret(0, 0)
    assert {hashed(s, blind) for s in (b"", b"a", b"b" * 100)} == {0}
    keys = np.arange(10)
    combine(keys, np.arange(10), blind)
    assert set(keys.tolist()) == {0}


def test_combining_depends_on_every_code_and_their_order() -> None:
    def combined(*columns: list[int]) -> list[int]:
        keys = np.zeros(len(columns[0]), np.int64)
        for codes in columns:
            combine(keys, np.array(codes, np.int64), PLAIN)
        return keys.tolist()

    pairs = [(a, b) for a in range(-20, 20) for b in range(-20, 20)]
    keys = combined([a for a, _ in pairs], [b for _, b in pairs])
    assert len(set(keys)) == len(pairs)
    assert combined([1, 2], [3, 4], [5, 6]) == combined([1, 2], [3, 4], [5, 6])
