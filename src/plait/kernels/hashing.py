"""Hashes with a secret: of 64-bit codes, of several codes together, and of bytes.

A hash only ever says where to look. Equality is decided on codes, and codes of variable-length
values on their bytes, so that a collision costs time and never makes a result.

*Why a secret.* Keys come from outside. Who knows the hash can send keys that all collide, and then
each row passes all rows before it: fifty thousand rows cost a billion steps. So every hash depends
on three secret words. Two 64-bit words are multiplied, and the halves of the 128-bit product are
xored: `fold`. Without the secret words nobody can tell which keys collide, and what the hash says
never leaves the process. It is no cryptographic hash, and need not be one: nobody sees its values.

*Where it comes from.* Whoever runs an engine chooses a `seed`, from the system's randomness, and
passes it down; nothing here draws one. Tests pass fixed seeds. Within an engine the secret stays
the same; the hashes that route rows to processors keep theirs as long as the checkpoint lives.

*Collisions on purpose.* The fourth word of a secret is a mask that is applied to every hash: with 0
all hashes collide, which the tests use.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from plait.kernels.jit import Bytes, Ints, inlined, kernel

Secret = NDArray[np.uint64]
"""Three random words, the last two odd, and a mask."""

_ALL_BITS = 0xFFFF_FFFF_FFFF_FFFF


def make_secret(seed: int = 0, bits: int = 64) -> Secret:
    """Derive the secret from a seed; with fewer `bits` than 64, hashes collide on purpose.

    >>> make_secret(7).tolist() == make_secret(7).tolist() != make_secret(8).tolist()
    True
    """
    text = seed.to_bytes(32, "little", signed=True)
    words = np.frombuffer(blake2b(text, digest_size=24).digest(), np.uint64) | np.array(
        [0, 1, 1], np.uint64
    )
    return np.append(words, np.uint64(_ALL_BITS ^ (_ALL_BITS >> bits)))


if TYPE_CHECKING:

    def fold(a: np.uint64, b: np.uint64) -> np.uint64:
        """The upper half of the 128-bit product, xored with its lower half."""

else:
    from llvmlite import ir
    from numba import types
    from numba.extending import intrinsic

    @intrinsic
    def fold(typing_context: Any, a: Any, b: Any) -> Any:
        """The upper half of the 128-bit product, xored with its lower half."""
        del typing_context, a, b

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            del context, signature
            wide, word = ir.IntType(128), ir.IntType(64)
            product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
            upper = builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), word)
            return builder.xor(upper, builder.trunc(product, word))

        return types.uint64(types.uint64, types.uint64), generate


@inlined
def keyed(x: np.uint64, k0: np.uint64, k1: np.uint64, k2: np.uint64) -> np.uint64:
    """The hash of a 64-bit value under a secret: two rounds, so that all bits are equally good.

    After one round, values that differ in their lowest bits only still differ little.
    """
    return fold(fold(x ^ k0, k1) ^ k0, k2)


@kernel
def hash_bytes(data: Bytes, start: int, length: int, secret: Secret) -> np.uint64:
    """The hash of a byte string, eight bytes at a time."""
    k0 = secret[0]
    k1 = secret[1]
    k2 = secret[2]
    h = fold(np.uint64(length) ^ k0, k2)
    i = start
    end = start + length
    while i + 8 <= end:
        word = np.uint64(0)
        for k in range(8):
            word |= np.uint64(data[i + k]) << np.uint64(8 * k)
        h = fold(h ^ word, k1)
        i += 8
    word = np.uint64(0)
    shift = np.uint64(0)
    while i < end:
        word |= np.uint64(data[i]) << shift
        shift += np.uint64(8)
        i += 1
    mask: np.uint64 = secret[3]
    return keyed(h ^ word, k0, k1, k2) & mask


@kernel
def combine(keys: Ints, codes: Ints, secret: Secret) -> None:
    """Mix the codes of one more key class into each key."""
    k0 = secret[0]
    k1 = secret[1]
    k2 = secret[2]
    mask = secret[3]
    for i in range(len(keys)):
        h = keyed(np.uint64(keys[i]) ^ np.uint64(codes[i]), k0, k1, k2)
        keys[i] = np.int64(h & mask)


@kernel
def hash_strings(data: Bytes, starts: Ints, lengths: Ints, secret: Secret) -> NDArray[np.uint64]:
    """The hash of each byte string."""
    out = np.empty(len(starts), np.uint64)
    for i in range(len(starts)):
        out[i] = hash_bytes(data, starts[i], lengths[i], secret)
    return out


@kernel
def hash_integers(values: Ints, secret: Secret) -> NDArray[np.uint64]:
    """The hash of each integer."""
    k0 = secret[0]
    k1 = secret[1]
    k2 = secret[2]
    mask = secret[3]
    out = np.empty(len(values), np.uint64)
    for i in range(len(values)):
        out[i] = keyed(np.uint64(values[i]), k0, k1, k2) & mask
    return out
