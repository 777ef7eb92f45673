"""A window: rows in a ring, with one time-ordered hash index per set of key columns.

A row has a latest and an earliest event time (the same for a tuple of one stream), a 64-bit code
per key class, and whatever columns the owner adds. Codes are exact: two values of a class are
equal when their codes are. An index over one class stores the code itself; an index over several
stores a hash of their codes, and the owner verifies the codes of what it found.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from plait.kernels.hashing import Secret, combine, make_secret
from plait.kernels.index import KEY, LATEST, link, probe, sweep
from plait.kernels.jit import Array, Ids, Ints, Positions
from plait.kernels.memory import HEAP, Memory, Saved
from plait.kernels.ring import ID_MASK, Ring, first_positions
from plait.tuning import USUAL, Tuning

_NO_TIMES: Ints = np.empty(0, np.int64)
_AS_THEY_STAND: Ints = np.empty(0, np.int64)
_NODE_WORDS = 3


class Index:
    """The chains over some key classes of a window; nodes and ranks are columns of its ring."""

    def __init__(self, ring: Ring, classes: tuple[int, ...], secret: Secret) -> None:
        self.classes = classes
        self.nodes = "nodes:" + ",".join(map(str, classes))
        self.ranks = "ranks:" + ",".join(map(str, classes))
        self._ring = ring
        self._secret = secret
        self._linked_since_sweep = 0
        ring.add_column(self.nodes, np.int64, words=_NODE_WORDS)
        ring.add_column(self.ranks, np.uint8)
        self.heads: Ids = np.empty(0, np.uint32)
        self._renew_heads()

    def link(self, n: int) -> None:
        """Link the last `n` rows into their chains."""
        ring = self._ring
        if ring.capacity > len(self.heads) or 8 * ring.capacity < len(self.heads):
            self._renew_heads()
            n = len(ring)
        self._linked_since_sweep += n
        if self._linked_since_sweep >= ring.tuning.sweep_rows:
            sweep(ring.header, self.heads)
            self._linked_since_sweep = 0
        self._passed += self._link(_AS_THEY_STAND, n)
        if self._passed > max(ring.tuning.passed_per_row * len(ring), ring.tuning.passed_rows):
            rows = first_positions(ring.header, 0, len(ring))
            order = np.argsort(ring.columns[self.nodes][rows, LATEST], kind="stable")
            self._renew_heads()
            self._link(order, len(ring))

    def _link(self, order: Ints, n: int) -> int:
        columns, header = self._ring.columns, self._ring.header
        nodes, ranks = columns[self.nodes], columns[self.ranks]
        most = min(n, self._ring.tuning.linked_rows)
        return link(header, order, n, nodes, self._secret, self.heads, ranks, max(1, most))

    def _renew_heads(self) -> None:
        # Two at least: the bucket is the first bits of a hash, and one bit is the fewest.
        buckets = max(2, self._ring.tuning.buckets, 1 << (self._ring.capacity - 1).bit_length())
        nothing = (int(self._ring.header[0]) - 1) & ID_MASK
        memory = self._ring.memory
        if buckets != len(self.heads):
            old, self.heads = self.heads, memory.empty((buckets,), np.uint32)
            memory.free(old)
        self.heads.fill(nothing)
        self._passed = 0

    def probe(
        self, earliest: Ints, keys: Ints, lo: Ints, hi: Ints, cursor: Ints, limit: int
    ) -> tuple[Positions, Positions, int]:
        """The next pairs of probes and rows, and the rows looked at; see the kernel `probe`."""
        nodes = self._ring.columns[self.nodes]
        header = self._ring.header
        return probe(header, nodes, earliest, self._secret, self.heads, keys, lo, hi, cursor, limit)

    def to_state(self) -> Saved:
        """Where the chains begin; the rest is in the ring."""
        return {
            "classes": list(self.classes),
            "heads": self.heads,
            "linked": self._linked_since_sweep,
            "passed": self._passed,
        }

    def set_state(self, saved: Saved) -> None:
        """Take over the chains of another index, whose ring was taken over before."""
        heads: Ids = saved["heads"]
        power_of_two = len(heads) and not len(heads) & (len(heads) - 1)
        if heads.dtype != np.uint32 or heads.ndim != 1 or not power_of_two:
            raise ValueError("the beginnings of the chains are damaged")
        self._ring.memory.free(self.heads)
        self.heads = heads
        self._linked_since_sweep = int(saved["linked"])
        self._passed = int(saved["passed"])


class Window:
    """Rows, their times and codes, and the indexes that find them.

    `spans` says that a row combines tuples of different times. `hash_bits` below 64 make hashes
    collide on purpose; `seed` is what their secret follows from. `memory` is where its arrays live.
    """

    def __init__(
        self,
        classes: Sequence[int],
        indexes: Sequence[tuple[int, ...]],
        *,
        spans: bool = False,
        hash_bits: int = 64,
        memory: Memory = HEAP,
        tuning: Tuning = USUAL,
        seed: int = 0,
    ) -> None:
        self.ring = Ring(memory, tuning)
        self.seed = seed
        self.classes = tuple(classes)
        self.spans = spans
        self._secret = make_secret(seed, hash_bits)
        self.indexes = {c: Index(self.ring, c, self._secret) for c in indexes}
        if spans:
            self.ring.add_column("earliest", np.int64)
        if not indexes:
            self.ring.add_column("latest", np.int64)
        for c in self.classes:
            if (c,) not in self.indexes:
                self.ring.add_column(f"code:{c}", np.int64)

    def __len__(self) -> int:
        return len(self.ring)

    @property
    def latest(self) -> Ints:
        """The latest time of each row, by position."""
        for index in self.indexes.values():
            return self.ring.columns[index.nodes][:, LATEST]
        return self.ring.columns["latest"]

    @property
    def earliest(self) -> Ints:
        """The earliest time of each row, by position."""
        return self.ring.columns["earliest"] if self.spans else self.latest

    def codes(self, key_class: int) -> Ints:
        """The code of each row in a key class, by position."""
        index = self.indexes.get((key_class,))
        if index is not None:
            return self.ring.columns[index.nodes][:, KEY]
        return self.ring.columns[f"code:{key_class}"]

    @property
    def nbytes(self) -> int:
        """Bytes allocated: columns, links and buckets."""
        return self.ring.nbytes + sum(i.heads.nbytes for i in self.indexes.values())

    @property
    def row_bytes(self) -> int:
        """Bytes of one row's columns: its times, its codes and what the owner added."""
        columns = self.ring.columns.items()
        plain = [a for name, a in columns if not name.startswith(("nodes:", "ranks:"))]
        held = sum(a.itemsize * (a.shape[1] if a.ndim == 2 else 1) for a in plain)
        in_nodes = bool(self.indexes) + sum((c,) in self.indexes for c in self.classes)
        return held + np.dtype(np.int64).itemsize * in_nodes

    def append(
        self,
        latest: Ints,
        codes: Mapping[int, Ints],
        earliest: Ints | None = None,
        columns: Mapping[str, Array] | None = None,
    ) -> tuple[slice, slice]:
        """Add rows and index them; the two runs of positions they got.

        `codes` has every class of the window and of its indexes.
        """
        n = len(latest)
        ring = self.ring
        ring.reserve(n)
        runs = ring.extend(n)
        values: list[tuple[Array, Array]] = []
        for index in self.indexes.values():
            nodes = ring.columns[index.nodes]
            values.append((nodes[:, LATEST], latest))
            values.append((nodes[:, KEY], self.keys(index.classes, codes, n)))
        if not self.indexes:
            values.append((ring.columns["latest"], latest))
        values += [
            (ring.columns[f"code:{c}"], codes[c]) for c in self.classes if (c,) not in self.indexes
        ]
        if earliest is not None:
            values.append((ring.columns["earliest"], earliest))
        values += [(ring.columns[name], column) for name, column in (columns or {}).items()]
        first = runs[0].stop - runs[0].start
        for target, source in values:
            target[runs[0]] = source[:first]
            if first < n:
                target[runs[1]] = source[first:]
        for index in self.indexes.values():
            index.link(n)
        return runs

    def keys(self, classes: tuple[int, ...], codes: Mapping[int, Ints], n: int) -> Ints:
        """Compute the keys of an index over `classes`: the code, or a hash of several codes.

        `n` is the number of keys. Over no class, all `n` rows have the same key, and the index
        is one chain in the order of time.
        """
        if len(classes) == 1:
            return codes[classes[0]]
        keys = np.zeros(n, np.int64)
        for c in classes:
            combine(keys, codes[c], self._secret)
        return keys

    def probe(
        self, classes: tuple[int, ...], keys: Ints, lo: Ints, hi: Ints, cursor: Ints, limit: int
    ) -> tuple[Positions, Positions, int]:
        """The next pairs (probe, row) with equal keys and `lo <= earliest`, `latest <= hi`."""
        earliest = self.ring.columns["earliest"] if self.spans else _NO_TIMES
        return self.indexes[classes].probe(earliest, keys, lo, hi, cursor, limit)

    def add_index(self, classes: tuple[int, ...], codes: Mapping[int, Ints] | None = None) -> None:
        """Index the rows by further classes.

        Their codes are those of the window, or given: by position, for the whole ring.
        """
        if classes in self.indexes:
            return
        if codes is None:
            codes = {c: self.codes(c).copy() for c in classes}
        latest = self.latest.copy()
        index = Index(self.ring, classes, self._secret)
        nodes = self.ring.columns[index.nodes]
        nodes[:, LATEST] = latest
        nodes[:, KEY] = self.keys(classes, codes, self.ring.capacity)
        for name in ("latest", f"code:{classes[0]}" if len(classes) == 1 else ""):
            self.ring.remove_column(name)
        self.indexes[classes] = index
        index.link(len(self))

    def drop_index(self, classes: tuple[int, ...]) -> None:
        """Drop an index; values that only its nodes held move to columns of their own."""
        if classes not in self.indexes:
            return
        ring, index = self.ring, self.indexes[classes]
        nodes = ring.columns[index.nodes]
        if len(self.indexes) == 1:
            ring.add_column("latest", np.int64)
            ring.columns["latest"][:] = nodes[:, LATEST]
        if len(classes) == 1 and classes[0] in self.classes:
            ring.add_column(f"code:{classes[0]}", np.int64)
            ring.columns[f"code:{classes[0]}"][:] = nodes[:, KEY]
        del self.indexes[classes]
        ring.remove_column(index.nodes)
        ring.remove_column(index.ranks)
        ring.memory.free(index.heads)

    def to_state(self) -> Saved:
        """The rows and the indexes."""
        indexes = [index.to_state() for index in self.indexes.values()]
        return {"ring": self.ring.to_state(), "indexes": indexes}

    def set_state(self, saved: Saved) -> None:
        """Take over the rows and the indexes of another window; this one is empty."""
        wanted = {tuple(map(int, index["classes"])): index for index in saved["indexes"]}
        for classes in set(self.indexes) - set(wanted):
            self.drop_index(classes)
        nothing = np.zeros(self.ring.capacity, np.int64)
        for classes in wanted:
            self.add_index(classes, dict.fromkeys(classes, nothing))
        self.indexes = {classes: self.indexes[classes] for classes in wanted}
        self.ring.set_state(saved["ring"])
        for classes, index in wanted.items():
            self.indexes[classes].set_state(index)

    def drop(self, n: int) -> None:
        """Forget the `n` oldest rows."""
        self.ring.drop(n)
        self.ring.shrink()
