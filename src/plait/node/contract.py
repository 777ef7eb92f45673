"""What a checkpoint was written by: everything that the meaning of its state depends on.

Another question is refused, with the difference named: rows that its conditions would have let in
are not in the state. Delays are part of the contract too, but may change, in both directions. A
shorter delay makes rows late earlier from then on. With a longer one, the watermark would go back,
and rows would be let in whose partners were dropped already, so some of their results would be
missing. Therefore a watermark never goes back: see `delays_before`; and a stream that had one is
refused without one. Idle timeouts and the output of late rows are no part of it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plait.errors import CheckpointMismatch
from plait.plan.steps import on_arrival
from plait.query.bounds import show
from plait.query.durations import show_micros
from plait.query.names import bare, quoted
from plait.query.query import NEVER_LATE, Query
from plait.route.packets import lean
from plait.route.routing import Routing

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
    )


def routing_seed(stored: Sequence[str], asked: Contract, fresh: int) -> int | None:
    """The seed to route by: the one of the checkpoint, or a fresh one if there is none yet.

    The rows in a checkpoint are where the hash of its beginning put them. `stored` are the
    contracts of all joins in it; among several, the one that asks the same.

    >>> from plait.plan.examples import clique
    >>> from plait.route.routing import route
    >>> asked = contract(clique(3), route(clique(3).graph, 2))
    >>> routing_seed([], asked, 7), routing_seed([asked.to_json()], asked, 7)
    (7, None)
    """
    if not stored:
        return fresh
    wanted = json.loads(asked.to_json())
    contracts = [json.loads(text) for text in stored]
    told = wanted.keys() - {"hash", "filters", "delays"}  # what contracts of all versions have
    same = [c for c in contracts if all(_same(name, c, wanted) for name in told)]
    text = (same or contracts)[0].get("hash", "")
    return int(text, 16) if text else None


def processors_before(stored: str) -> int:
    """How many processors a checkpoint with this contract began with."""
    return int(_read(stored)["processors"])


def same_question(stored: Sequence[str], asked: Contract) -> str | None:
    """The contract among these that asks the same, with any number of processors.

    >>> from plait.plan.examples import clique
    >>> from plait.route.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> found = same_question([two.to_json()], four)
    >>> found == two.to_json(), processors_before(found), same_question([], four)
    (True, 2, None)
    """
    wanted = json.loads(asked.to_json())
    told = wanted.keys() - {"hash", "filters", "delays", "shares", "processors"}
    for text in stored:
        written = _read(text)
        if all(_same(name, written, wanted) for name in told):
            return text
    return None


def check_contract(stored: str | None, asked: Contract) -> None:
    """Refuse state that was written for something else, and say what differs.

    >>> from plait.plan.examples import clique
    >>> from plait.route.routing import route
    >>> two, four = (contract(clique(3), route(clique(3).graph, n)) for n in (2, 4))
    >>> check_contract(two.to_json(), two)
    >>> check_contract(two.to_json(), four)
    Traceback (most recent call last):
    plait.errors.CheckpointMismatch: the checkpoint belongs to another query: processors was 2 ...
    """
    written, new = _read(stored), json.loads(asked.to_json())
    old = _ADDED | written
    if old.get("format") != FORMAT:
        raise CheckpointMismatch(
            f"the checkpoint was written in format {old.get('format')} of Plait's state, "
            f"this version has format {FORMAT}",
            remedy="run the query with the version that wrote it, or begin a new checkpoint",
        )
    _check_delays(tuple(old.get("delays", ())), asked)
    compared = [name for name in {**old, **new} if name != "delays"]
    if "filters" not in old:  # it was written by a version that did not say
        compared.remove("filters")
    if changed := [name for name in compared if not _same(name, written, new)]:
        if changed == ["hash"]:
            raise CheckpointMismatch(
                "the rows in the checkpoint were divided among the processors by another secret",
                remedy="tell the query where its checkpoint is: to_df(checkpoint=...)",
            )
        raise CheckpointMismatch(
            "the checkpoint belongs to another query: "
            + "; ".join(
                f"{name} was {_show(old.get(name))} and is now {_show(new.get(name))}"
                for name in changed
                if name != "hash"  # it is a secret
            ),
            remedy=_REMEDY,
        )


def _check_delays(before: tuple[int, ...], asked: Contract) -> None:
    """Refuse a stream that had a watermark and is to have none: it would go back for ever."""
    if len(before) != len(asked.delays):
        return
    for was, now, stream in zip(before, asked.delays, asked.streams, strict=True):
        if now >= NEVER_LATE > was:
            raise CheckpointMismatch(
                f"the rows of {stream.partition('(')[0]} could be {show_micros(was)} late so far, "
                "and now it has no watermark: rows would be let in whose partners are gone",
                remedy=f'say it again: .watermark("{show_micros(was)}"), or begin a new checkpoint',
            )


def delays_before(stored: str | None, asked: Contract) -> tuple[int, ...]:
    """The delays for which the state was written; those asked for now if it does not say.

    By as much as a delay has grown, a processor counts the stream as further in event time than it
    was. So its watermark stands where it stood, until new rows are as far ahead as the longer
    delay asks for.
    """
    found = tuple(_read(stored).get("delays", ()))
    return found if len(found) == len(asked.delays) else asked.delays


_ADDED = {"hash": "", "lateness": "own"}
"""What it meant that contracts of earlier versions did not speak of these."""


def _same(name: str, old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether a part is unchanged.

    Before there were seeds, names were written without quotes, whatever characters they had.
    """
    was, now = old.get(name, _ADDED.get(name)), new.get(name)
    if was != now and "hash" not in old:
        was, now = ([bare(str(part)) for part in _parts(value)] for value in (was, now))
        if name == "conditions":  # they are in the order of their texts
            was, now = sorted(was), sorted(now)
    return bool(was == now)


def _parts(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


_REMEDY = "start this query with a new checkpoint location, or ask the old question"


def _read(stored: str | None) -> dict[str, Any]:
    if stored is None:
        raise CheckpointMismatch("the checkpoint holds no contract of Plait", remedy=_REMEDY)
    try:
        found = json.loads(stored)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CheckpointMismatch(
            "the contract in the checkpoint is damaged", remedy="begin a new checkpoint"
        )
    return found


def _show(value: object) -> str:
    return "[" + ", ".join(map(str, value)) + "]" if isinstance(value, list) else str(value)
