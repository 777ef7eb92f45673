"""What a checkpoint was written by: everything that the meaning of its state depends on.

Another question is refused, unless somebody has agreed to it: see `plait.node.durable.upgrade`.
Idle timeouts, how far ahead rows may be and the output of late rows are no part of a contract.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from plait.errors import CheckpointMismatch
from plait.groups.routing.packets import lean
from plait.groups.routing.routing import Routing
from plait.plan.steps import on_arrival
from plait.query.bounds import show
from plait.query.names import bare, quoted
from plait.query.query import Query

FORMAT = 1
"""The format of headers and segments; a checkpoint of another format is refused."""


@dataclass(frozen=True, slots=True)
class Contract:
    """The format of the state and the question it answers, part by part, readable."""

    format: int
    streams: tuple[str, ...]
    keys: tuple[str, ...]
    bounds: str
    conditions: tuple[str, ...]
    selected: tuple[str, ...]
    shares: tuple[int, ...]
    processors: int
    filters: tuple[str, ...] = ()
    """Conditions on one stream, which pack tasks check."""
    delays: tuple[int, ...] = ()
    """How late the rows of each stream may be, in microseconds."""
    hash: str = ""
    """The seed of the routing; empty where the hash has no secret."""
    lateness: str = "own"
    columns: tuple[tuple[tuple[str, str], ...], ...] = ()
    """Of each stream the columns that are kept, with their types, as in `streams`."""
    matrix: tuple[tuple[int, ...], ...] = ()
    """The bounds in microseconds, as in `bounds`."""

    def to_json(self) -> str:
        """For the state store."""
        return json.dumps(asdict(self))


def contract(query: Query, routing: Routing) -> Contract:
    """The contract of a query under a routing.

    Columns that only conditions on one stream read do not reach the state, so they are no part of
    it, and may even change their type.
    """
    early = {r for s in range(len(query.streams)) for r in on_arrival(query, s)}
    filters = tuple(str(query.residuals[r]) for r in sorted(early))
    delays = tuple(s.delay for s in query.streams)
    query = lean(query)
    streams = tuple(f"{s.signature} time {quoted(s.time)}" for s in query.streams)
    return Contract(
        FORMAT,
        streams,
        tuple(str(e) for e in query.equalities),
        show(query.names, query.bounds),
        tuple(str(r) for r in query.residuals),
        tuple(str(o) for o in query.select),
        routing.shares,
        routing.processors,
        filters,
        delays,
        "" if routing.seed is None else f"{routing.seed:016x}",
        query.lateness,
        tuple(tuple((f.name, str(f.type)) for f in s.fields) for s in query.streams),
        query.bounds.matrix,
    )


def routing_seed(stored: str | None, fresh: int) -> int | None:
    """The seed to route by: the one of the checkpoint, or a fresh one if there is none yet.

    The rows in a checkpoint are where the hash of its beginning put them.

    >>> from plait.testing.examples import clique
    >>> from plait.groups.routing.routing import route
    >>> asked = contract(clique(3), route(clique(3).graph, 2))
    >>> routing_seed(None, 7), routing_seed(asked.to_json(), 7)
    (7, None)
    """
    if stored is None:
        return fresh
    # Assumption: seed-stays
    text = read_contract(stored).get("hash", "")
    return int(text, 16) if text else None


def processors_before(stored: str) -> int:
    """How many processors a checkpoint with this contract began with."""
    return int(read_contract(stored)["processors"])


ADDED = {"hash": "", "lateness": "own"}
"""What it meant that contracts of earlier versions did not speak of these."""


def is_same(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    """Whether a part of a contract is unchanged.

    Before there were seeds, names were written without quotes, whatever characters they had.
    """
    was, now = old.get(part, ADDED.get(part)), new.get(part)
    if was != now and "hash" not in old:
        was, now = ([bare(str(one)) for one in _listed(value)] for value in (was, now))
        if part == "conditions":  # they are in the order of their texts
            was, now = sorted(was), sorted(now)
    return bool(was == now)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def read_contract(stored: str | None) -> dict[str, Any]:
    """The parts of a contract, or CheckpointMismatch."""
    if stored is None:
        raise CheckpointMismatch(
            "the checkpoint holds no contract of Plait",
            remedy="start this query with a new checkpoint location",
        )
    try:
        found = json.loads(stored)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CheckpointMismatch(
            "the contract in the checkpoint is damaged", remedy="begin a new checkpoint"
        )
    if found.get("format") != FORMAT:
        raise CheckpointMismatch(
            f"the checkpoint was written in format {found.get('format')} of Plait's state, "
            f"this version has format {FORMAT}",
            remedy="run the query with the version that wrote it, or begin a new checkpoint",
        )
    return found
