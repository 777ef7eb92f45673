"""The hash that routed rows before hashes had a secret.

Anyone can compute it, and undo it. Checkpoints that were begun with it are continued with it: their
rows are where it put them. Nothing else uses it; see `plait.kernels.hashing`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from plait.kernels.jit import Bytes, Ints, inlined, kernel

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
def unkeyed_strings(data: Bytes, starts: Ints, lengths: Ints) -> NDArray[np.uint64]:
    """The hash of each byte string, eight bytes at a time."""
    out = np.empty(len(starts), np.uint64)
    for n in range(len(starts)):
        h = np.uint64(lengths[n]) * _ODD_2
        i = starts[n]
        end = starts[n] + lengths[n]
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
        out[n] = mix(h ^ word)
    return out


@kernel
def unkeyed_integers(values: Ints) -> NDArray[np.uint64]:
    """The hash of each integer."""
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        out[i] = mix(np.uint64(values[i]))
    return out
