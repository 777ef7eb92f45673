"""Columns of a window in rings: append at the end, drop at the front, never move a row.

*Invariants.* A row gets the next 32-bit id when it is appended and keeps it; ids are dense, so a
row is alive exactly when `(id - head_id) mod 2^32 < count`, and its position follows from that
distance. Ids wrap around: nothing may keep an id for longer than 2^32 further rows, which windows
guarantee by dropping, and indexes by sweeping.

*Cost.* Appending and dropping touch the rows appended and dropped. When the ring is full it is
copied into one a sixteenth larger: amortised, a few sequential moves per row while a window grows,
none when it has reached its size.

*Positions* are valid until the next append or drop; *ids* as long as the row lives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from plait.kernels.jit import Array, Ids, Integer, Ints, Positions, inlined, kernel
from plait.kernels.memory import HEAP, Memory, Saved
from plait.tuning import USUAL, Tuning

ID_MASK = 0xFFFF_FFFF
HEAD_ID, HEAD_POSITION, COUNT, CAPACITY = range(4)


@inlined
def position_of(id_: Integer, head_id: int, head: int, count: int, capacity: int) -> int:
    """The position of a row, or -1 if it has been dropped."""
    distance = int(id_ - head_id) & ID_MASK
    if distance >= count:
        return -1
    position = head + distance
    return position - capacity if position >= capacity else position


@kernel
def positions_of(ring: Ints, ids: Ids) -> Positions:
    """Positions of rows by id, -1 for rows that were dropped."""
    out = np.empty(len(ids), np.int32)
    for i in range(len(ids)):
        out[i] = position_of(np.int64(ids[i]), ring[0], ring[1], ring[2], ring[3])
    return out


@kernel
def ids_of(ring: Ints, positions: Positions) -> Ids:
    """Ids of live rows by position."""
    out = np.empty(len(positions), np.uint32)
    for i in range(len(positions)):
        distance = positions[i] - ring[1]
        if distance < 0:
            distance += ring[3]
        out[i] = (ring[0] + distance) & ID_MASK
    return out


@kernel
def last_positions(ring: Ints, n: int) -> Positions:
    """Positions of the last `n` rows, oldest first."""
    out = np.empty(n, np.int32)
    position = ring[1] + ring[2] - n
    for i in range(n):
        out[i] = position + i - ring[3] if position + i >= ring[3] else position + i
    return out


@kernel
def first_positions(ring: Ints, start: int, n: int) -> Positions:
    """Positions of `n` rows from the `start`-th oldest on."""
    out = np.empty(n, np.int32)
    position = ring[1] + start
    for i in range(n):
        out[i] = position + i - ring[3] if position + i >= ring[3] else position + i
    return out


@kernel
def expired_prefix(ring: Ints, ts: Ints, cutoff: int) -> int:
    """Count the rows at the front that are older than `cutoff`."""
    position = ring[1]
    n = 0
    while n < ring[2] and ts[position] < cutoff:
        n += 1
        position += 1
        if position == ring[3]:
            position = 0
    return n


class Ring:
    """Named columns of equal length; the first axis of each array is the ring.

    `header` is an array, so that kernels read it without boxing. `memory` is where columns live.
    """

    def __init__(self, memory: Memory = HEAP, tuning: Tuning = USUAL) -> None:
        self.memory = memory
        self.tuning = tuning
        self.header: Ints = np.array([tuning.first_id & ID_MASK, 0, 0, tuning.ring_rows], np.int64)
        self.columns: dict[str, Array] = {}

    def __len__(self) -> int:
        return int(self.header[COUNT])

    @property
    def capacity(self) -> int:
        """Rows that fit without growing."""
        return int(self.header[CAPACITY])

    @property
    def next_id(self) -> int:
        """The id that the next appended row gets."""
        return int(self.header[HEAD_ID] + self.header[COUNT]) & ID_MASK

    @property
    def nbytes(self) -> int:
        """Bytes allocated for all columns."""
        return sum(a.nbytes for a in self.columns.values())

    def add_column(
        self, name: str, dtype: np.dtype[Any] | type, words: int = 0, value: int = 0
    ) -> None:
        """A new column of one value; `words` make it two-dimensional, `[capacity, words]`."""
        shape = (self.capacity, words) if words else (self.capacity,)
        self.columns[name] = self.memory.empty(shape, dtype)
        self.columns[name].fill(value)

    def remove_column(self, name: str) -> None:
        """Free a column, if there is one of that name."""
        if name in self.columns:
            self.memory.free(self.columns.pop(name))

    def reserve(self, n: int) -> bool:
        """Make room for `n` more rows; True if the arrays were replaced."""
        need = len(self) + n
        if need <= self.capacity:
            return False
        self._resize(self._roomy(need))
        return True

    def shrink(self) -> bool:
        """Free memory when three quarters of the ring are empty; return whether it did."""
        if self.capacity <= 4 * max(len(self), self.tuning.ring_rows):
            return False
        self._resize(self._roomy(len(self)))
        return True

    def _roomy(self, rows: int) -> int:
        return max(self.tuning.ring_rows, rows + rows // self.tuning.ring_slack)

    def _resize(self, capacity: int) -> None:
        head, count = int(self.header[HEAD_POSITION]), len(self)
        first = min(count, self.capacity - head)
        for name, old in self.columns.items():
            new = self.memory.empty((capacity, *old.shape[1:]), old.dtype)
            new[:first] = old[head : head + first]
            new[first:count] = old[: count - first]
            self.columns[name] = new
            self.memory.free(old)
        self.header[HEAD_POSITION] = 0
        self.header[CAPACITY] = capacity

    def to_state(self) -> Saved:
        """The columns, and where they begin and end."""
        return {"header": self.header.tolist(), "columns": dict(self.columns)}

    def set_state(self, saved: Saved) -> None:
        """Take over the columns of another ring with at least the same columns."""
        _, head, count, capacity = header = [int(word) for word in saved["header"]]
        if not (0 <= head < capacity and 0 <= count <= capacity):
            raise ValueError(f"{header} is not the header of a ring")
        columns: dict[str, Array] = saved["columns"]
        for name, column in columns.items():
            here = self.columns.get(name, column)
            words, expected = column.shape[1:], here.shape[1:]
            if (len(column), words, column.dtype) != (capacity, expected, here.dtype):
                raise ValueError(f"{name!r} is not a column of this ring")
        if missing := self.columns.keys() - columns.keys():
            raise ValueError(f"the column {min(missing)!r} is missing")
        for old in self.columns.values():
            self.memory.free(old)
        self.header[:] = header
        self.columns = dict(columns)

    def extend(self, n: int) -> tuple[slice, slice]:
        """Append `n` rows whose values the caller writes: the two runs of positions they got.

        The second run is empty unless the rows wrap around the end. Room must be reserved.
        """
        start = int(self.header[HEAD_POSITION]) + len(self)
        if start >= self.capacity:
            start -= self.capacity
        self.header[COUNT] += n
        first = min(n, self.capacity - start)
        return slice(start, start + first), slice(0, n - first)

    def drop(self, n: int) -> None:
        """Forget the `n` oldest rows."""
        header = self.header
        header[HEAD_ID] = (header[HEAD_ID] + n) & ID_MASK
        header[HEAD_POSITION] = (header[HEAD_POSITION] + n) % header[CAPACITY]
        header[COUNT] -= n
