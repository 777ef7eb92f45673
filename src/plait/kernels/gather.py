"""Gathering: values by position, and byte strings by position."""

from __future__ import annotations

import numpy as np

from plait.kernels.jit import Array, Bytes, Ints, Positions, kernel


@kernel
def take(values: Array, positions: Positions) -> Array:
    """`values[positions]`, without bounds checks or index conversion."""
    out = np.empty(len(positions), values.dtype)
    for i in range(len(positions)):
        out[i] = values[positions[i]]
    return out


@kernel
def tighten(lo: Ints, hi: Ints, ts: Ints, positions: Positions, back: int, ahead: int) -> None:
    """Narrow each `[lo, hi]` to what a partner at `ts[position]` allows."""
    for i in range(len(positions)):
        t = ts[positions[i]]
        lo[i] = max(lo[i], t - back)
        hi[i] = min(hi[i], t + ahead)


@kernel
def widen(latest: Ints, earliest: Ints, ts: Ints, positions: Positions) -> None:
    """Extend each `[earliest, latest]` to contain `ts[position]`."""
    for i in range(len(positions)):
        t = ts[positions[i]]
        latest[i] = max(latest[i], t)
        earliest[i] = min(earliest[i], t)


@kernel
def keep_near(
    keep: Bytes,
    left: Ints, left_positions: Positions,
    right: Ints, right_positions: Positions,
    back: int, ahead: int,
) -> None:  # fmt: skip
    """Clear `keep` where `right - left` is not within `[-back, ahead]`."""
    for i in range(len(keep)):
        distance = right[right_positions[i]] - left[left_positions[i]]
        if distance > ahead or distance < -back:
            keep[i] = 0


@kernel
def keep_equal(
    keep: Bytes, left: Ints, left_positions: Positions, right: Ints, right_positions: Positions
) -> None:
    """Clear `keep` where the codes differ."""
    for i in range(len(keep)):
        if left[left_positions[i]] != right[right_positions[i]]:
            keep[i] = 0


@kernel
def lengths_to_offsets(lengths: Ints, positions: Positions) -> Ints:
    """Offsets of the gathered strings; the last one is the total."""
    out = np.empty(len(positions) + 1, np.int64)
    total = 0
    for i in range(len(positions)):
        out[i] = total
        total += lengths[positions[i]]
    out[len(positions)] = total
    return out


@kernel
def take_bytes(data: Bytes, starts: Ints, base: int, positions: Positions, offsets: Ints) -> Bytes:
    """The bytes of the gathered strings, one after the other; `starts` count from `base`."""
    out = np.empty(offsets[len(positions)], np.uint8)
    for i in range(len(positions)):
        source = starts[positions[i]] - base
        for k in range(offsets[i + 1] - offsets[i]):
            out[offsets[i] + k] = data[source + k]
    return out


@kernel
def copy_bytes(data: Bytes, starts: Ints, lengths: Ints, target: Bytes, where: int) -> Ints:
    """Copy strings one after the other to `target[where:]`; returns where each begins."""
    out = np.empty(len(starts), np.int64)
    for i in range(len(starts)):
        out[i] = where
        for k in range(lengths[i]):
            target[where + k] = data[starts[i] + k]
        where += lengths[i]
    return out
