"""Compare ids: find rows of a ring that are older than their probes, or than a mark."""

from __future__ import annotations

import numpy as np

from plait.kernels.jit import Bytes, Ids, Ints, Positions, kernel
from plait.kernels.ring import ID_MASK

_HALF = 1 << 31


@kernel
def older(ring: Ints, rows: Positions, probes: Positions, limits: Ids) -> Positions:
    """Mark the pairs (probe, row) whose row has an id before `limits[probe]`.

    Ids wrap around; a limit up to 2^31 behind the oldest row still counts as behind it.
    """
    head_id, head, capacity = ring[0], ring[1], ring[3]
    out = np.empty(len(rows), np.int32)
    n = 0
    for i in range(len(rows)):
        age = rows[i] - head
        age = age + capacity if age < 0 else age
        limit = (np.int64(limits[probes[i]]) - head_id) & ID_MASK
        out[n] = i
        n += (age < limit) & (limit < _HALF)
    return out[:n]


@kernel
def behind_first(ring: Ints, rows: Positions, n: int) -> Positions:
    """Mark the rows that are not among the first `n` rows of the ring."""
    head, capacity = ring[1], ring[3]
    out = np.empty(len(rows), np.int32)
    found = 0
    for i in range(len(rows)):
        age = rows[i] - head
        age = age + capacity if age < 0 else age
        out[found] = i
        found += age >= n
    return out[:found]


@kernel
def keep_first(keep: Bytes, ring: Ints, rows: Positions, n: int) -> None:
    """Set `keep` where a row is among the first `n` rows of the ring."""
    head, capacity = ring[1], ring[3]
    for i in range(len(rows)):
        age = rows[i] - head
        age = age + capacity if age < 0 else age
        keep[i] |= age < n
