"""The processors of a join after its checkpoint was rebalanced.

A processor is a grouping key (`murmur3`), and its state goes where Spark puts that key. So a state
that was divided into another number of partitions (`rebalance`) keeps its processors, but some of
them meet in one partition, and other partitions have none. One processor of each partition takes
part; where there is none, one is added. The others give their groups away.

    partitions.json     the number of partitions that was requested
    rebalanced.json     the processors since the query was started with it

*Invariant.* Numbers of processors mean the same for ever: keys are only added at the end.

*Correct output.* It does not depend on this: with any keys in any partitions, each group is where
the routing table puts it, and groups move as they always do. A processor that is added begins
where the others are: with their watermarks, and at their routing table.

*Recovery.* The tables that begin the moves are written before the file that says what processors
there are. A driver that dies between them leaves moves to processors that nobody runs; the next one
gives these moves up and decides again, before the query runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from plait.groups.routing.rehoming import rehomed
from plait.groups.routing.table import Table
from plait.spark.control.directory import Control
from plait.spark.join.murmur3 import murmur3

_REQUESTED, _PROCESSORS = "partitions.json", "rebalanced.json"
_PUT_BACK = "put the folder plait/ of the checkpoint back as it was"


@dataclass(frozen=True, slots=True)
class ProcessorSet:
    """The processors of a join since its checkpoint was rebalanced."""

    keys: tuple[int, ...]
    """The grouping key of each processor."""
    active: tuple[int, ...]
    """The processors that take part, one in each partition."""

    def __post_init__(self) -> None:
        known = set(range(len(self.keys)))
        if len(set(self.keys)) < len(self.keys) or not self.active or not known >= {*self.active}:
            raise ValueError("these are no processors")


@dataclass(frozen=True, slots=True)
class PartitionRequest:
    """The number of partitions that `plait query rebalance` was given."""

    partitions: int


def request_partitions(control: Control, partitions: int) -> None:
    """Give a join this many processors from its next start on."""
    control.keep(_REQUESTED, PartitionRequest(partitions))


def requested_partitions(control: Control) -> int | None:
    """The number of partitions that was requested last; None: that of the beginning."""
    found = control.kept_value(_REQUESTED, PartitionRequest, _PUT_BACK)
    return None if found is None else found.partitions


def processors_to_start(control: Control, began: Table, keys: Sequence[int]) -> ProcessorSet | None:
    """The processors of a join that is about to start; None: those of its beginning.

    `began` and `keys` are those of the beginning. If the number of partitions has changed since the
    last start, processors are added and groups begin to move.
    """
    wanted = requested_partitions(control)
    if wanted is None:
        return None
    before = control.kept_value(_PROCESSORS, ProcessorSet, _PUT_BACK)
    if before is not None and len(before.active) == wanted:
        return before
    table = control.tables.newest() or began
    held = Counter(p for place in table.places for p in place)
    found = ProcessorSet(*assign_processors(keys if before is None else before.keys, wanted, held))
    _move(control, table, found)
    control.keep(_PROCESSORS, found)
    return found


def _move(control: Control, table: Table, found: ProcessorSet) -> None:
    """Let groups begin to move to the processors that take part; moves under way are given up."""
    since = max(control.reports("").last_begun(), table.since) + 1
    if table.under_way:
        table = table.changed(since, give_up=[move.number for move in table.under_way])
        control.tables.add(table)
        since += 1
    if moves := rehomed(table, found.active):
        control.tables.add(table.changed(since, len(found.keys), begin=moves))


def assign_processors(
    keys: Sequence[int], partitions: int, held: Mapping[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Choose one processor for each partition; the keys of all, and the processors that take part.

    `held` is the number of groups of each processor: of several in a partition, the one with most
    takes part.

    >>> assign_processors((0, 2), 2, {0: 64, 1: 64})
    ((0, 2), (1, 0))
    >>> assign_processors((0, 2), 1, {0: 64, 1: 60})
    ((0, 2), (0,))
    >>> assign_processors((0, 2), 3, {0: 64, 1: 64})
    ((0, 2, 1, 11), (0, 2, 3))
    """
    chosen: dict[int, int] = {}
    for number, key in enumerate(keys):
        partition = murmur3(key) % partitions
        other = chosen.get(partition)
        if other is None or held.get(number, 0) > held.get(other, 0):
            chosen[partition] = number
    every, key = list(keys), 0
    while len(chosen) < partitions:
        if key not in keys and (partition := murmur3(key) % partitions) not in chosen:
            chosen[partition] = len(every)
            every.append(key)
        key += 1
    return tuple(every), tuple(chosen[p] for p in range(partitions))
