"""A hash may collide, but it must look at everything and spread what it saw."""

from __future__ import annotations

import numpy as np
import pytest

from plait.kernels.hashing import (
    ALL_BITS,
    combine,
    hash_bytes,
    hash_integers,
    hash_strings,
    mix,
)
from plait.kernels.jit import Bytes, Ints


def hashed(data: bytes, mask: np.uint64 = ALL_BITS) -> int:
    array: Bytes = np.frombuffer(data + b"\0", np.uint8)
    return int(hash_bytes(array, 0, len(data), mask))


def test_mix_is_a_bijection_on_samples() -> None:
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
    assert len(np.unique(hash_integers(values.view(np.int64)))) == len(values)


def test_mix_can_be_undone() -> None:
    """Xor-shifts by half the width and multiplications by odd numbers all have inverses."""
    mask = 2**64 - 1

    def unshift(x: int, by: int) -> int:
        y = x
        for _ in range(64 // by + 1):
            y = x ^ (y >> by)
        return y

    for value in [0, 1, 2**63, mask, 0x0123_4567_89AB_CDEF]:
        x = unshift(int(mix(np.uint64(value))), 32)
        x = unshift(x * pow(0xD6E8FEB86659FD93, -1, 2**64) & mask, 29)
        x = unshift(x * pow(0x9E3779B97F4A7C15, -1, 2**64) & mask, 32)
        assert x == value


@pytest.mark.parametrize("kind", ["small", "multiples of 2^32", "negative", "doubles"])
def test_the_top_bits_of_mix_spread_regular_keys(kind: str) -> None:
    """Buckets are the top bits: regular keys must fill them about as evenly as random ones."""
    n = 4096
    numbers = np.arange(n, dtype=np.int64)
    keys: Ints = {
        "small": numbers,
        "multiples of 2^32": numbers << 32,
        "negative": -numbers,
        "doubles": numbers.astype(np.float64).view(np.int64),
    }[kind]
    buckets = hash_integers(keys) >> np.uint64(52)
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
    assert hash_bytes(here, 2, 11, ALL_BITS) == hash_bytes(there, 0, 11, ALL_BITS)


def test_many_hashes_at_once_are_the_same_hashes() -> None:
    strings = [b"", b"a", b"hello world", b"\0" * 9, b"12345678"]
    data: Bytes = np.frombuffer(b"".join(strings), np.uint8)
    lengths: Ints = np.array([len(s) for s in strings], np.int64)
    hashes = hash_strings(data, np.cumsum(lengths) - lengths, lengths)
    assert hashes.tolist() == [hashed(s) for s in strings]
    integers: Ints = np.array([0, 1, -1, 2**63 - 1, -(2**63)], np.int64)
    assert hash_integers(integers).tolist() == [int(mix(v)) for v in integers.view(np.uint64)]


def test_a_mask_of_0_makes_everything_collide() -> None:
    assert {hashed(s, np.uint64(0)) for s in (b"", b"a", b"b" * 100)} == {0}
    keys = np.arange(10)
    combine(keys, np.arange(10), np.uint64(0))
    assert set(keys.tolist()) == {0}


def test_combining_depends_on_every_code_and_their_order() -> None:
    def combined(*columns: list[int]) -> list[int]:
        keys = np.zeros(len(columns[0]), np.int64)
        for codes in columns:
            combine(keys, np.array(codes, np.int64), ALL_BITS)
        return keys.tolist()

    pairs = [(a, b) for a in range(-20, 20) for b in range(-20, 20)]
    keys = combined([a for a, _ in pairs], [b for _, b in pairs])
    assert len(set(keys)) == len(pairs)
    assert combined([1, 2], [3, 4], [5, 6]) == combined([1, 2], [3, 4], [5, 6])
