"""Splits in virtual time: which machine gets which row, with the tags of the protocols.

One gate per stream, as in the D-CAPE paper. All gates are on the machine that generates the
streams. In each tick they sort out the rows that have arrived (`engine.admission`), decide which
are late, find the partition group of each row, and send every machine one packet per stream, also
an empty one: it says how far the stream has come.

*Correct output.* Every row that is not late is in exactly the packets that `Split.route` names, or
in the buffer. A row is late by the watermarks before its tick, wherever it goes.

*Progress.* The progress of a stream is its watermark, but not beyond the oldest row that the gate
buffers: its partners must not be purged. Rows are buffered only if they are not late, so progress
never goes back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from plait.engine.intake.codes import hash_values
from plait.engine.intake.times import BEFORE_ALL_TIMES, event_times
from plait.errors import PlaitError
from plait.kernels.jit import Ints
from plait.query.query import Query
from plait_lab.protocol.actions import Action, Release
from plait_lab.protocol.parties import Split
from plait_lab.protocol.tags import Tag

GroupsOf = Callable[[int, pa.RecordBatch], Ints]
"""The partition group of each row of a stream."""


@dataclass(frozen=True, slots=True)
class Copies:
    """Rows of a stream as one machine gets them."""

    rows: pa.RecordBatch
    times: Ints
    groups: Ints
    since: Ints
    flags: Ints

    def __len__(self) -> int:
        return len(self.times)

    def chosen(self, mask: Ints) -> Copies:
        """Some of them, by their numbers."""
        return Copies(
            self.rows.take(pa.array(mask)),
            self.times[mask],
            self.groups[mask],
            self.since[mask],
            self.flags[mask],
        )


@dataclass(frozen=True, slots=True)
class TickRows:
    """What a gate sends to a machine in one tick."""

    tick: int
    copies: tuple[Copies, ...]
    progress: int
    """No row to come is older."""

    def __len__(self) -> int:
        return sum(map(len, self.copies))


def by_hash(query: Query, groups: int, seed: int = 0) -> GroupsOf:
    """Groups by the hash of the key that all streams share."""
    graph = query.graph
    everywhere = [
        k for k, c in enumerate(graph.classes) if c.streams == frozenset(range(graph.size))
    ]
    if not everywhere:
        raise PlaitError(
            "the streams share no key, so there are no partition groups",
            remedy="partition groups need one key that all streams have",
        )
    shared = graph.classes[everywhere[0]]

    def groups_of(stream: int, rows: pa.RecordBatch) -> Ints:
        keys = rows.column(shared.columns[stream][0])
        hashes = hash_values(keys, shared.type, seed)
        found: Ints = (hashes % np.uint64(groups)).astype(np.int64)
        return found

    return groups_of


def by_value(column: str, groups: int) -> GroupsOf:
    """Groups by an integer key itself: the value-based mapping of the paper."""

    def groups_of(stream: int, rows: pa.RecordBatch) -> Ints:
        del stream
        found: Ints = np.asarray(rows.column(column), np.int64) % groups
        return found

    return groups_of


class Gate:
    """The split of one stream, with the rows that it buffers."""

    def __init__(self, query: Query, split: Split, groups_of: GroupsOf) -> None:
        self.split = split
        self.stream = split.number
        self._time = query.streams[self.stream].time
        self._groups_of = groups_of
        self._buffered: list[tuple[pa.RecordBatch, Ints]] = []
        self._released: list[tuple[pa.RecordBatch, Ints]] = []
        self._sent = 0
        self._routes: list[tuple[tuple[int, Tag], ...] | None] | None = None

    @property
    def buffered(self) -> int:
        """Rows that wait."""
        return sum(rows.num_rows for rows, _ in (*self._buffered, *self._released))

    @property
    def released(self) -> bool:
        """Whether rows that waited are to be routed in the next tick."""
        return bool(self._released)

    def became(self, split: Split, actions: tuple[Action, ...]) -> None:
        """The split has reacted to a message."""
        self.split = split
        self._routes = None
        for action in actions:
            if isinstance(action, Release):
                self._release(action.groups)

    def _release(self, groups: tuple[int, ...]) -> None:
        """Rows that were buffered are routed in the next tick, before newer ones."""
        kept = []
        for rows, own in self._buffered:
            mine = np.isin(own, groups)
            if mine.any():
                self._released.append((rows.filter(pa.array(mine)), own[mine]))
            if not mine.all():
                kept.append((rows.filter(pa.array(~mine)), own[~mine]))
        self._buffered = kept

    def packets(
        self, tick: int, rows: pa.RecordBatch, watermark: int, machines: int
    ) -> Iterator[TickRows]:
        """What each machine gets of the rows that were released, and of those that came."""
        parts: list[list[Copies]] = [[] for _ in range(machines)]
        waiting, self._released = self._released, []
        arrived = [*waiting, (rows, self._groups_of(self.stream, rows))] if len(rows) else waiting
        for batch, groups in arrived:
            for machine, copies in self._routed(batch, groups):
                parts[machine].append(copies)
        progress = min([watermark, *(self._oldest(held) for held, _ in self._buffered)])
        for mine in parts:
            yield TickRows(tick, tuple(mine), progress)

    def _oldest(self, rows: pa.RecordBatch) -> int:
        times = event_times(rows.column(self._time))
        return int(times.min()) if len(times) else -BEFORE_ALL_TIMES

    def _routed(self, rows: pa.RecordBatch, groups: Ints) -> Iterator[tuple[int, Copies]]:
        """Copies of rows for each machine; rows of groups that wait are buffered."""
        times = event_times(rows.column(self._time))
        routes = self._routes_of(int(groups.max()) + 1)
        goes: dict[tuple[int, Tag], list[Ints]] = {}
        wait: list[Ints] = []
        numbers = np.argsort(groups, kind="stable")
        found, starts = np.unique(groups[numbers], return_index=True)
        for group, mine in zip(found.tolist(), np.split(numbers, starts[1:]), strict=True):
            targets = routes[group]
            if targets is None:
                wait.append(mine)
            elif self.split.places[group].spread == self.stream:
                for n in mine.tolist():
                    self._sent += 1
                    one = self.split.route(group, self.stream, self._sent)
                    assert one is not None, "a group that waits has no route"
                    for target in one:
                        goes.setdefault(target, []).append(np.array([n]))
            else:
                for target in targets:
                    goes.setdefault(target, []).append(mine)
        if wait:
            held = np.sort(np.concatenate(wait))
            self._buffered.append((rows.take(pa.array(held)), groups[held]))
        for (machine, tag), some in goes.items():
            chosen = np.sort(np.concatenate(some))
            yield (
                machine,
                Copies(
                    rows.take(pa.array(chosen)),
                    times[chosen],
                    groups[chosen],
                    np.full(len(chosen), tag.since, np.int64),
                    np.full(len(chosen), tag.flag, np.int64),
                ),
            )

    def _routes_of(self, groups: int) -> list[tuple[tuple[int, Tag], ...] | None]:
        """Where the rows of each group go now."""
        if self._routes is None:
            everything = range(max(groups, len(self.split.places)))
            self._routes = [self.split.route(g, self.stream, 0) for g in everything]
        return self._routes
