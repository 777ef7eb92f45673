"""What a checkpoint was written by: everything that the meaning of its state depends on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from plait.cluster.routing import Routing
from plait.errors import CheckpointMismatch
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


def check_contract(stored: str | None, asked: Contract) -> None:
    """Refuse state that was written for something else, and say what differs.

    >>> from plait.plan.examples import clique
    >>> from plait.cluster.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> check_contract(two.to_json(), two)
    >>> check_contract(two.to_json(), four)
    Traceback (most recent call last):
    plait.errors.CheckpointMismatch: the checkpoint belongs to another query: processors was 2 ...
    """
    if stored is None:
        raise CheckpointMismatch("the checkpoint holds no contract of Plait", remedy=_REMEDY)
    old, new = json.loads(stored), json.loads(asked.to_json())
    if old.get("format") != FORMAT:
        raise CheckpointMismatch(
            f"the checkpoint was written in format {old.get('format')} of Plait's state, "
            f"this version has format {FORMAT}",
            remedy="run the query with the version that wrote it, or begin a new checkpoint",
        )
    if changed := [name for name in {**old, **new} if old.get(name) != new.get(name)]:
        raise CheckpointMismatch(
            "the checkpoint belongs to another query: "
            + "; ".join(
                f"{name} was {_show(old.get(name))} and is now {_show(new.get(name))}"
                for name in changed
            ),
            remedy=_REMEDY,
        )


_REMEDY = "start this query with a new checkpoint location, or ask the old question"


def _show(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)
