"""Choose the processors of a join: their number, their grouping keys, and the routing of rows.

A new checkpoint has what is asked for. One that has a state keeps what its rows were divided by:
the number of processors, whatever machine the query goes on with, the secret of the hash, and the
grouping keys. Only `plait query rebalance` changes processors: see
`plait.spark.balance.processor_set`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from pyspark.sql import SparkSession

from plait.errors import CheckpointMismatch
from plait.groups.routing.routing import Routing, route
from plait.node.durable.contract import Contract, contract, processors_before, routing_seed
from plait.node.durable.header import Header
from plait.node.durable.upgrade import nearest
from plait.node.task import InheritedState
from plait.query.query import Query
from plait.spark.balance.processor_set import processors_to_start, requested_partitions
from plait.spark.balance.rebalance import finish_rebalance
from plait.spark.checkpoint.stored_state import stored_contracts, stored_headers
from plait.spark.checkpoint.upgrades import agreed
from plait.spark.control.directory import Control
from plait.spark.environment.partitions import processor_count
from plait.spark.join.murmur3 import processor_keys
from plait.spark.join.options import JoinOptions

_SEEDS: dict[str, int] = {}
"""The seeds drawn for new checkpoints: two joins into one, or one that is made twice, agree."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the rows of a join are divided among its processors."""

    routing: Routing
    keys: tuple[int, ...]
    """The grouping key of each processor."""
    contract: Contract
    partitions: int | None = None
    """The partitions that it is made for; None where the checkpoint has them already."""
    active: frozenset[int] | None = None
    """The processors that take part since the checkpoint was rebalanced; None: all."""
    beginning: InheritedState | None = None
    """What those begin with that have no state yet, where others have one."""
    upgraded: str | None = None
    """The contract in the checkpoint, if it was agreed to go on with another question."""

    @property
    def taking_part(self) -> int:
        """How many processors take part."""
        return len(self.keys if self.active is None else self.active)


def choose_layout(
    session: SparkSession, query: Query, options: JoinOptions, control: Control, *, streaming: bool
) -> Layout:
    """The layout that the checkpoint has, or a new one where there is no checkpoint yet."""
    if options.checkpoint is not None:
        finish_rebalance(session, options.checkpoint)
        return _layout_of_checkpoint(session, query, options, options.checkpoint, control)
    if options.upgrade is not None:
        raise CheckpointMismatch(
            "there is no checkpoint to go on from with another question",
            remedy="say where it is: to_df(checkpoint=..., upgrade=...)",
        )
    return _new_layout(session, query, options.processors, secret=not streaming)


def _new_layout(
    session: SparkSession, query: Query, processors: int | None, *, secret: bool
) -> Layout:
    """The layout of a query without a checkpoint, or with one that is not known yet."""
    count = processor_count(session, processors)
    routing = route(query.graph, count, seed=random_seed() if secret else None)
    return Layout(routing, _keys(count, routing), contract(query, routing), count)


def _layout_of_checkpoint(
    session: SparkSession, query: Query, options: JoinOptions, checkpoint: str, control: Control
) -> Layout:
    """The layout that a checkpoint has; refuse the checkpoint of another query."""
    processors = options.processors
    joins = stored_contracts(session, checkpoint)
    stored = list(joins)
    mine = nearest(stored, contract(query, route(query.graph, 1))) or next(iter(stored), None)
    if mine is not None:
        processors = _of_the_beginning(control, processors) or processors_before(mine)
    count = processor_count(session, processors)
    routing = route(query.graph, count)
    fresh = _SEEDS.setdefault(checkpoint, random_seed())
    routing = replace(routing, seed=routing_seed(mine, fresh))
    found = Layout(routing, _keys(count, routing), contract(query, routing), count)
    if mine is None:
        return found
    found = replace(found, upgraded=agreed(control, mine, found.contract, options.upgrade))
    # Keys were made for the number of partitions at the beginning; with more, some were added.
    keys = joins[mine] if len(joins[mine]) == routing.processors else found.keys
    found = replace(found, keys=keys, partitions=None)
    if routing.by is None or control.temporary or control.remote:
        return found
    changed = processors_to_start(control, routing.table, found.keys)
    if changed is None:
        return found
    beginning = None
    if not set(changed.keys) <= set(joins[mine]):
        headers = stored_headers(session, checkpoint, mine)
        beginning = InheritedState(Header.joining(headers), mine)
    routing = replace(routing, processors=len(changed.keys))
    active = frozenset(changed.active)
    return replace(found, routing=routing, keys=changed.keys, active=active, beginning=beginning)


def random_seed() -> int:
    """Eight random bytes."""
    return int.from_bytes(os.urandom(8), "little")


def _keys(count: int, routing: Routing) -> tuple[int, ...]:
    """Grouping keys for a new checkpoint.

    A hypercube may use fewer processors than there are partitions. Key 0 is always one of them: a
    checkpoint with another number of processors is seen there, if nowhere else.
    """
    return tuple(sorted(processor_keys(count))[: routing.processors])


def _of_the_beginning(control: Control, processors: int | None) -> int | None:
    """The number that was asked for; none where it is the one that a checkpoint was rebalanced to.

    The routing begins with the number of processors that the checkpoint began with.
    """
    now = requested_partitions(control)
    if now is None:
        return processors
    if processors not in (None, now):
        raise CheckpointMismatch(
            f"the checkpoint was rebalanced to {now} processors, not to {processors}",
            remedy="leave out processors=, or run plait query rebalance",
        )
    return None
