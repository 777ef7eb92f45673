"""Exact 64-bit codes for byte strings: equal strings, equal codes; different strings, different.

*Correct output.* `Interner.encode` gives a string the code it had before, or a new one if it has
none. Strings are compared byte by byte whenever their hashes agree.

*Invariants.* Codes are never given out twice. Strings whose codes are no longer used may be
forgotten; if one comes again, it gets a new code, which is sound because nobody remembers the old
one. Codes in use are never touched.

*Cost.* A hash and a comparison per string; forgetting is amortised over the strings added since.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from plait.kernels.gather import copy_bytes
from plait.kernels.hashing import Secret, hash_bytes, make_secret
from plait.kernels.jit import Array, Bytes, Ints, kernel
from plait.kernels.memory import HEAP, Memory, Saved
from plait.tuning import USUAL, Tuning


@kernel
def _encode(
    data: Bytes, starts: Ints, lengths: Ints, done: int, out: Ints,
    secret: Secret, slots: Ints, entries: Ints, heap: Bytes, counts: Ints,
) -> int:  # fmt: skip
    """Encode strings from `done` on until the table or the heap is full; returns how many are done.

    `entries[e]` is (hash, start in the heap, length, code); `counts` is (entries, heap bytes used,
    next code, slots passed).
    """
    slot_mask = np.uint64(len(slots) - 1)
    for i in range(done, len(starts)):
        length = lengths[i]
        h = hash_bytes(data, starts[i], length, secret)
        slot = h & slot_mask
        while True:
            e = slots[slot]
            if e < 0:
                break
            if entries[e, 0] == np.int64(h) and entries[e, 2] == length:
                start = entries[e, 1]
                k = 0
                while k < length and heap[start + k] == data[starts[i] + k]:
                    k += 1
                if k == length:
                    break
            slot = (slot + np.uint64(1)) & slot_mask
            counts[3] += 1
        if e < 0:
            e = counts[0]
            if 2 * e >= len(slots) or e == len(entries) or counts[1] + length > len(heap):
                return i
            for k in range(length):
                heap[counts[1] + k] = data[starts[i] + k]
            entries[e, 0] = np.int64(h)
            entries[e, 1] = counts[1]
            entries[e, 2] = length
            entries[e, 3] = counts[2]
            counts[0] += 1
            counts[1] += length
            counts[2] += 1
            slots[slot] = e
        out[i] = entries[e, 3]
    return len(starts)


@kernel
def _fill_slots(slots: Ints, entries: Ints, count: int) -> None:
    slot_mask = np.uint64(len(slots) - 1)
    for e in range(count):
        slot = np.uint64(entries[e, 0]) & slot_mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & slot_mask
        slots[slot] = e


class Interner:
    """The codes of one key class."""

    def __init__(
        self,
        hash_bits: int = 64,
        memory: Memory = HEAP,
        tuning: Tuning = USUAL,
        seed: int = 0,
    ) -> None:
        self._memory = memory
        self._tuning = tuning
        slots = max(2, tuning.intern_slots)
        self._secret = make_secret(seed, hash_bits)
        self._counts: Ints = np.zeros(4, np.int64)
        self._forget_at = tuning.forget_keys
        self._entries: Ints = memory.empty((slots // 2, 4), np.int64)
        self._heap: Bytes = memory.empty((tuning.heap_bytes,), np.uint8)
        self._slots: Ints = memory.empty((slots,), np.int64)
        self._slots.fill(-1)

    def __len__(self) -> int:
        return int(self._counts[0])

    @property
    def nbytes(self) -> int:
        """Bytes allocated."""
        return self._entries.nbytes + self._heap.nbytes + self._slots.nbytes

    @property
    def passed(self) -> int:
        """Slots of other strings passed so far: about as many as strings."""
        return int(self._counts[3])

    def encode(self, data: Bytes, starts: Ints, lengths: Ints) -> Ints:
        """The code of each string `data[start:start + length]`."""
        out = np.empty(len(starts), np.int64)
        done = 0
        while True:
            done = _encode(
                data, starts, lengths, done, out,
                self._secret, self._slots, self._entries, self._heap, self._counts,
            )  # fmt: skip
            if done == len(starts):
                return out
            self._grow(int(lengths[done]))

    def _grow(self, length: int) -> None:
        if self._counts[1] + length > len(self._heap):
            size = int(self._counts[1] + length) * 3 // 2 + self._tuning.heap_bytes
            old, self._heap = self._heap, self._memory.empty((size,), np.uint8)
            self._heap[: self._counts[1]] = old[: self._counts[1]]
            self._memory.free(old)
        if len(self) == len(self._entries) or 2 * len(self) >= len(self._slots):
            self._renew_table(self._entries[: len(self)], 2 * len(self._slots))

    @property
    def crowded(self) -> bool:
        """Whether to call `forget`: the strings have doubled since the last time."""
        return len(self) >= self._forget_at

    def forget(self, in_use: Iterable[Ints]) -> None:
        """Drop every string whose code is not among those in use."""
        used = np.unique(np.concatenate([np.empty(0, np.int64), *in_use]))
        entries = self._entries[: len(self)]
        entries = entries[np.isin(entries[:, 3], used)]
        kept = int(entries[:, 2].sum())
        old, self._heap = (
            self._heap,
            self._memory.empty((kept * 3 // 2 + self._tuning.heap_bytes,), np.uint8),
        )
        entries[:, 1] = copy_bytes(old, entries[:, 1].copy(), entries[:, 2].copy(), self._heap, 0)
        self._memory.free(old)
        self._counts[0], self._counts[1] = len(entries), kept
        self._renew_table(entries, self._slots_for(len(entries)))
        self._forget_at = max(self._tuning.forget_keys, 2 * len(entries))

    def _slots_for(self, entries: int) -> int:
        return max(2, self._tuning.intern_slots, 1 << (4 * entries - 1).bit_length())

    def to_state(self) -> Saved:
        """The strings and their codes."""
        return {
            "counts": self._counts.tolist(),
            "forget_at": self._forget_at,
            "entries": self._entries,
            "heap": self._heap,
            "slots": self._slots,
        }

    def set_state(self, saved: Saved) -> None:
        """Take over the strings of another interner; this one is new."""
        entries, heap, slots = saved["entries"], saved["heap"], saved["slots"]
        here: list[Array] = [self._entries, self._heap, self._slots]
        for new, old in zip((entries, heap, slots), here, strict=True):
            if (new.dtype, new.shape[1:]) != (old.dtype, old.shape[1:]):
                raise ValueError("the table of strings is damaged")
        known, used, *_ = counts = [int(n) for n in saved["counts"]]
        if not (0 <= known <= len(entries) and 2 * known <= len(slots) and 0 <= used <= len(heap)):
            raise ValueError(f"a table of strings cannot hold {counts}")
        for old in here:
            self._memory.free(old)
        self._entries, self._heap, self._slots = entries, heap, slots
        self._counts[:] = counts
        self._forget_at = int(saved["forget_at"])

    def _renew_table(self, entries: Ints, slots: int) -> None:
        """Keep these entries in a table of `slots` slots; half as many entries fit."""
        old = self._entries, self._slots
        self._entries = self._memory.empty((slots // 2, 4), np.int64)
        self._entries[: len(entries)] = entries
        self._slots = self._memory.empty((slots,), np.int64)
        self._slots.fill(-1)
        _fill_slots(self._slots, self._entries, len(entries))
        for array in old:
            self._memory.free(array)
