"""A hash index over the rows of a ring whose buckets are chains ordered by time.

*Correct output.* `probe` returns exactly the pairs (probe, row) with equal keys,
`lo <= earliest(row)` and `latest(row) <= hi`.

*Invariants.* The rows of a bucket form a chain from the latest to the earliest; `jump` skips ahead
along the chain in the pattern of a skew-binary list: a row whose successor and the successor's
jump target root complete trees of one rank r roots a tree of rank r + 1. A jump only ever leads to
an earlier row, also after a row was inserted in the middle. So searching for a time takes a
logarithmic number of steps when rows come in order or far behind the other streams, and about as
few when they come in random order. Only rows that keep coming older than all before them leave a
chain without jumps; when too many rows were passed, all are linked anew in the order of time,
which bounds a step of such an arrival by about the square root of the window. Links are ids; a
chain ends at the first row that was dropped, so the owner drops a row only when it, and all rows
that are earlier, can no longer match.

*Cost.* Linking a row: one bucket, a few links. Probing: one bucket, the skipped part in
logarithmic time, then the rows in the time range whose bucket is the same. Dropping a row costs
nothing here. There are at least as many buckets as rows, so a probe meets less than one stranger
on average, however skewed the keys are.

*Layout.* What a probe reads of a row lies together: a node is three words, its latest time, its
key, and its two links. The time and key columns of a window are views of the nodes, so an index
adds 9 bytes a row and 4 a bucket.
"""

from __future__ import annotations

import numpy as np

from plait.kernels.hashing import Secret, keyed
from plait.kernels.jit import Bytes, Ids, Ints, Positions, kernel
from plait.kernels.prefetch import prefetch
from plait.kernels.ring import ID_MASK, position_of
from plait.tuning import USUAL

LATEST, KEY, LINKS = range(3)
"""The words of a node."""

_LINK_BITS = 32


def new_cursor(walkers: int = USUAL.walkers) -> Ints:
    """Begin a sequence of `probe` calls: next probe, chains under way, and their places.

    `walkers` chains are walked at the same time.
    """
    return np.zeros(2 + 2 * walkers, np.int64)


def finished(cursor: Ints, probes: int) -> bool:
    """Whether all probes have been looked up."""
    return bool(cursor[0] == probes and cursor[1] == 0)


@kernel
def link(
    ring: Ints,
    order: Ints,
    n: int,
    nodes: Ints,
    secret: Secret,
    heads: Ids,
    rank: Bytes,
    most: int,
) -> int:
    """Put the last `n` rows of the ring, whose times and keys are set, into their chains.

    Rows are taken in blocks of at most `most`: first everything that a block will read is
    prefetched, step by step, then the rows are linked. They are taken in their order, or, to
    link all rows anew, in a given `order` of distances from the head. Returns how many rows were
    passed on the way.
    """
    head_id, head, count, capacity = ring[0], ring[1], ring[2], ring[3]
    k0, k1, k2, mask = secret[0], secret[1], secret[2], secret[3]
    shift = np.uint64(64) - np.uint64(np.log2(len(heads)))
    nothing = (head_id - 1) & ID_MASK
    buckets = np.empty(most, np.int64)
    nearby = np.empty(most, np.int64)
    distances = np.empty(most, np.int64)
    passed = 0
    for block in range(0, n, most):
        size = min(most, n - block)
        for b in range(size):
            distances[b] = order[block + b] if len(order) else count - n + block + b
            row = head + distances[b]
            row = row - capacity if row >= capacity else row
            h = keyed(np.uint64(nodes[row, 1]), k0, k1, k2)
            buckets[b] = np.int64((h & mask) >> shift)
            prefetch(heads, buckets[b])
        for b in range(size):
            after_id = np.int64(heads[buckets[b]])
            nearby[b] = max(0, position_of(after_id, head_id, head, count, capacity))
            prefetch(nodes, nearby[b])
            prefetch(rank, nearby[b])
        for b in range(size):
            far_id = (nodes[nearby[b], 2] >> _LINK_BITS) & ID_MASK
            far = max(0, position_of(far_id, head_id, head, count, capacity))
            prefetch(nodes, far)
            prefetch(rank, far)
        for b in range(size):
            id_ = (head_id + distances[b]) & ID_MASK
            row = head + distances[b]
            row = row - capacity if row >= capacity else row
            time = nodes[row, 0]
            bucket = buckets[b]
            after = np.int64(heads[bucket])
            after_row = position_of(after, head_id, head, count, capacity)
            if after_row < 0 or nodes[after_row, 0] <= time:
                heads[bucket] = id_
            else:
                before_row = after_row
                while True:
                    passed += 1
                    links = nodes[before_row, 2]
                    far_id = (links >> _LINK_BITS) & ID_MASK
                    far = position_of(far_id, head_id, head, count, capacity)
                    if far >= 0 and nodes[far, 0] > time:
                        before_row = far
                        continue
                    after = links & ID_MASK
                    after_row = position_of(after, head_id, head, count, capacity)
                    if after_row < 0 or nodes[after_row, 0] <= time:
                        break
                    before_row = after_row
                links = nodes[before_row, 2]
                nodes[before_row, 2] = ((links >> _LINK_BITS) << _LINK_BITS) | id_
            jump = after
            rank[row] = 0
            if after_row < 0:
                after = nothing
                jump = nothing
            else:
                far_id = (nodes[after_row, 2] >> _LINK_BITS) & ID_MASK
                far = position_of(far_id, head_id, head, count, capacity)
                if far >= 0 and rank[far] == rank[after_row]:
                    jump = (nodes[far, 2] >> _LINK_BITS) & ID_MASK
                    rank[row] = rank[after_row] + 1
            nodes[row, 2] = (jump << _LINK_BITS) | after
    return passed


@kernel
def probe(
    ring: Ints,
    nodes: Ints,
    earliest: Ints,
    secret: Secret,
    heads: Ids,
    keys: Ints,
    lo: Ints,
    hi: Ints,
    cursor: Ints,
    limit: int,
) -> tuple[Positions, Positions, int]:
    """Look up probes until about `limit` pairs are found; `cursor` says where to begin and go on.

    Chains are walked many at a time, one row of each in turn: the rows wait for memory together
    instead of one after the other. `earliest` is empty where a row has one time only. Returns the
    probes and the rows of the pairs and how many rows were looked at.
    """
    head_id, head, count, capacity = ring[0], ring[1], ring[2], ring[3]
    k0, k1, k2, mask = secret[0], secret[1], secret[2], secret[3]
    shift = np.uint64(64) - np.uint64(np.log2(len(heads)))
    spans = len(earliest) > 0
    n = len(keys)
    walkers = (len(cursor) - 2) // 2
    room = limit + 2 * walkers
    probes = np.empty(room, np.int32)
    rows = np.empty(room, np.int32)
    buckets = np.empty(walkers, np.int64)
    found = 0
    visited = 0
    active = cursor[1]
    while found < limit:
        if active == 0:
            first = cursor[0]
            last = min(n, first + walkers)
            if first == last:
                break
            for i in range(first, last):
                h = keyed(np.uint64(keys[i]), k0, k1, k2)
                buckets[i - first] = np.int64((h & mask) >> shift)
                prefetch(heads, buckets[i - first])
            for i in range(first, last):
                distance = (np.int64(heads[buckets[i - first]]) - head_id) & ID_MASK
                row = head + distance
                row = row - capacity if row >= capacity else row
                prefetch(nodes, row)
                cursor[2 + 2 * active] = i
                cursor[3 + 2 * active] = row
                active += distance < count
            cursor[0] = last
        walking = 0
        for w in range(active):
            i = cursor[2 + 2 * w]
            row = cursor[3 + 2 * w]
            time = nodes[row, 0]
            links = nodes[row, 2]
            following = links & ID_MASK
            if time > hi[i]:
                far = position_of((links >> _LINK_BITS) & ID_MASK, head_id, head, count, capacity)
                if far >= 0 and nodes[far, 0] > hi[i]:
                    following = (links >> _LINK_BITS) & ID_MASK
            else:
                equal = (nodes[row, 1] == keys[i]) & (time >= lo[i])
                if spans:
                    equal &= earliest[row] >= lo[i]
                probes[found] = i
                rows[found] = row
                found += equal
            distance = (following - head_id) & ID_MASK
            row = head + distance
            row = row - capacity if row >= capacity else row
            prefetch(nodes, row)
            cursor[2 + 2 * walking] = i
            cursor[3 + 2 * walking] = row
            walking += (distance < count) & (time >= lo[i])
        visited += active
        active = walking
    cursor[1] = active
    return probes[:found], rows[:found], visited


@kernel
def sweep(ring: Ints, heads: Ids) -> None:
    """Forget dropped rows in the buckets, long before their ids are given out again."""
    nothing = (ring[0] - 1) & ID_MASK
    for b in range(len(heads)):
        if position_of(np.int64(heads[b]), ring[0], ring[1], ring[2], ring[3]) < 0:
            heads[b] = nothing
