"""Which partition Spark puts an integer into, so that each processor can have one to itself.

Spark's hash partitioning puts the integer k into partition `pmod(murmur3(k), partitions)`, with 42
as the seed of the hash. A processor is a grouping key: keys chosen here meet in no partition. They
are part of every checkpoint, so this hash must stay the one that Spark has.
"""

from __future__ import annotations


def processor_keys(processors: int) -> list[int]:
    """For each of so many partitions, the smallest integer that Spark puts into it.

    >>> processor_keys(2)
    [2, 0]
    """
    keys: dict[int, int] = {}
    k = 0
    while len(keys) < processors:
        # Assumption: spark-hash-stays
        keys.setdefault(murmur3(k) % processors, k)
        k += 1
    return [keys[p] for p in range(processors)]


def murmur3(value: int) -> int:
    """The signed 32-bit murmur3 hash of one integer, as Spark's `hash` computes it.

    >>> murmur3(1)
    -559580957
    """
    mask = 0xFFFF_FFFF
    word = (value & mask) * 0xCC9E2D51 & mask
    word = (word << 15 | word >> 17) & mask
    word = word * 0x1B873593 & mask
    h = 42 ^ word
    h = (h << 13 | h >> 19) & mask
    h = (h * 5 + 0xE6546B64) & mask
    h ^= 4
    h = (h ^ h >> 16) * 0x85EBCA6B & mask
    h = (h ^ h >> 13) * 0xC2B2AE35 & mask
    h ^= h >> 16
    return h - (1 << 32) if h >> 31 else h
