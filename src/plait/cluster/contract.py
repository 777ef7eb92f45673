"""What a checkpoint was written by: everything that the meaning of its state depends on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from plait.cluster.routing import Routing
from plait.query.bounds import show
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

    def to_json(self) -> str:
        """For the state store."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Contract:
        """The inverse of `to_json`."""
        parts: dict[str, Any] = json.loads(text)
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in parts.items()
        }
        return cls(**values)


def contract(query: Query, routing: Routing) -> Contract:
    """The contract of a query under a routing."""
    streams = tuple(
        f"{s.name}({', '.join(f'{f.name} {f.type}' for f in s.fields)}) time {s.time}"
        for s in query.streams
    )
    return Contract(
        FORMAT,
        streams,
        tuple(str(e) for e in query.equalities),
        show(query.names, query.bounds),
        tuple(str(r) for r in query.residuals),
        tuple(str(o) for o in query.select),
        routing.shares,
        routing.processors,
    )


def difference(stored: Contract | None, asked: Contract) -> str:
    """What differs, in words.

    >>> from plait.plan.examples import clique
    >>> from plait.cluster.routing import route
    >>> a = contract(clique(3), route(clique(3).graph, 2))
    >>> b = contract(clique(3), route(clique(3).graph, 4))
    >>> difference(a, b)
    'processors was 2 and is now 4'
    """
    if stored is None:
        return "it holds no contract"
    old, new = asdict(stored), asdict(asked)
    changed = [name for name in old if old[name] != new[name]]
    return "; ".join(
        f"{name} was {_show(old[name])} and is now {_show(new[name])}" for name in changed
    )


def _show(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, tuple) else str(value)
