"""Hashes: of 64-bit codes, of several codes together, and of bytes.

A hash only ever says where to look. Equality is decided on codes, and codes of variable-length
values on their bytes, so that a collision costs time and never makes a result. Every caller passes
a mask that is applied to the hash; a mask of 0 makes all hashes collide, which the tests use.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.kernels.jit import Bytes, Ints, inlined, kernel

ALL_BITS = np.uint64(0xFFFF_FFFF_FFFF_FFFF)

_ODD_1 = np.uint64(0x9E3779B97F4A7C15)
_ODD_2 = np.uint64(0xD6E8FEB86659FD93)
_32 = np.uint64(32)
_29 = np.uint64(29)


@inlined
def mix(x: np.uint64) -> np.uint64:
    """Spread the entropy of a 64-bit value over all its bits; a bijection."""
    x = (x ^ (x >> _32)) * _ODD_1
    x = (x ^ (x >> _29)) * _ODD_2
    return x ^ (x >> _32)


@kernel
def hash_bytes(data: Bytes, start: int, length: int, mask: np.uint64) -> np.uint64:
    """The hash of a byte string, eight bytes at a time."""
    h = np.uint64(length) * _ODD_2
    i = start
    end = start + length
    while i + 8 <= end:
        word = np.uint64(0)
        for k in range(8):
            word |= np.uint64(data[i + k]) << np.uint64(8 * k)
        h = mix(h ^ word)
        i += 8
    word = np.uint64(0)
    shift = np.uint64(0)
    while i < end:
        word |= np.uint64(data[i]) << shift
        shift += np.uint64(8)
        i += 1
    return mix(h ^ word) & mask


@kernel
def combine(keys: Ints, codes: Ints, mask: np.uint64) -> None:
    """Mix the codes of one more key class into each key."""
    for i in range(len(keys)):
        keys[i] = np.int64(mix(np.uint64(keys[i]) ^ np.uint64(codes[i])) & mask)


@kernel
def hash_strings(data: Bytes, starts: Ints, lengths: Ints) -> NDArray[np.uint64]:
    """The hash of each byte string."""
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        out[i] = hash_bytes(data, starts[i], lengths[i], ALL_BITS)
    return out


@kernel
def hash_integers(values: Ints) -> NDArray[np.uint64]:
    """The hash of each integer."""
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        out[i] = mix(np.uint64(values[i]))
    return out
