"""Another number of processors than the checkpoint began with.

A processor is a grouping key (`murmur3`), and its state goes where Spark puts that key. So a state
that was divided into another number of partitions (`rebalance`) keeps its processors, but some of
them meet in a partition, and other partitions have none. One processor of each partition takes
part; where there is none, one is added. The others give their groups away.

    partitions.json     the number of partitions that was asked for
    rebalanced.json     the processors that there are since the query was started with it

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plait.errors import CheckpointDamaged, PlaitError
from plait.groups.routing.rehoming import rehomed
from plait.groups.routing.table import Table
from plait.machine.regular import read_below
from plait.machine.sealed import sealed, unsealed
from plait.machine.stores import LARGEST
from plait.spark.control.directory import Control
from plait.spark.join.murmur3 import murmur3

_ASKED, _FOUND = "partitions.json", "rebalanced.json"


@dataclass(frozen=True, slots=True)
class ProcessorSet:
    """The processors of a join since its checkpoint was rebalanced."""

    keys: tuple[int, ...]
    """The grouping key of each processor."""
    active: tuple[int, ...]
    """The processors that take part, one in each partition."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> ProcessorSet:
        """From plain data."""
        keys, active = (tuple(map(int, given[name])) for name in ("keys", "active"))
        if len(set(keys)) < len(keys) or not set(active) <= set(range(len(keys))) or not active:
            raise ValueError("its processors make no sense")
        return cls(keys, active)


def request_partitions(control: Control, partitions: int) -> None:
    """Let a join have so many processors from its next start on."""
    control.keep(_ASKED, sealed({"partitions": partitions}))


def requested_partitions(control: Control) -> int | None:
    """The number of partitions that was asked for last; None is that of the beginning."""
    path = Path(control.folder, _ASKED)
    given = _read(path)
    try:
        return None if given is None else int(given["partitions"])
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise _damaged(path, error) from error


def processors_to_start(control: Control, began: Table, keys: Sequence[int]) -> ProcessorSet | None:
    """The processors of a join that is about to start; None if it has those of its beginning.

    `began` and `keys` are those of the beginning. If another number of partitions was asked for
    than the last time, processors are added and groups begin to move.
    """
    wanted = requested_partitions(control)
    if wanted is None:
        return None
    before = _found(control) or ProcessorSet(tuple(keys), ())
    if len(before.active) == wanted:
        return before
    table = control.tables.newest() or began
    held = Counter(p for place in table.places for p in place)
    found = ProcessorSet(*assign_processors(before.keys, wanted, held))
    _move(control, table, found)
    control.keep(_FOUND, sealed(asdict(found)))
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


def _found(control: Control) -> ProcessorSet | None:
    path = Path(control.folder, _FOUND)
    given = _read(path)
    try:
        return None if given is None else ProcessorSet.of(given)
    except (ValueError, TypeError, KeyError, ArithmeticError) as error:
        raise _damaged(path, error) from error


def _read(path: Path) -> dict[str, Any] | None:
    try:
        return unsealed(read_below(path.parent, path.name, LARGEST).decode("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, PlaitError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> CheckpointDamaged:
    return CheckpointDamaged(
        f"{path} cannot be read, which says what processors there are: "
        f"{str(error).partition(';')[0]}",
        remedy="put the folder plait/ of the checkpoint back as it was",
    )


def assign_processors(
    keys: Sequence[int], partitions: int, held: Mapping[int, int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The keys of all processors for so many partitions, and the processors that take part.

    `held` is how many groups each processor has: of several in a partition, the one with most takes
    part.

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
