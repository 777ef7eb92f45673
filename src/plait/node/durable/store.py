"""What is durable of a node, and the engines that are kept between its batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Protocol

from plait.engine.driver import Engine
from plait.kernels.memory import HEAP, Memory
from plait.query.query import Query


class Store(Protocol):
    """Where a node's durable state is; whoever owns it commits batch by batch.

    A segment has the number of the batch that wrote it, and a lane (`plait.groups.moves.lanes`).
    """

    def read_header(self) -> str | None:
        """The header, None before the first batch."""

    def write_header(self, text: str) -> None:
        """Replace the header."""

    def read_contract(self) -> str | None:
        """What the state was written for."""

    def write_contract(self, text: str) -> None:
        """Say what the state is written for."""

    def segments(self) -> Iterable[tuple[int, int, int, bytes]]:
        """All segments: number, lane, newest event time, rows."""

    def write_segment(self, segment: int, lane: int, newest: int, body: bytes) -> None:
        """Add a segment."""

    def remove_segment(self, segment: int, lane: int) -> None:
        """Remove a segment that has expired."""


@dataclass(slots=True)
class Live:
    """An engine in memory, and which state it is the engine of."""

    token: str
    engine: Engine
    segments: deque[tuple[int, int, int]] = field(default_factory=deque)
    """(segment, lane, newest event time) of everything in the store, oldest first."""


class Engines(Protocol):
    """The engines of earlier batches, a cache: the store is the truth."""

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine of a node if it is that of the state with this token."""

    def memory(self, number: int) -> Memory:
        """Where the arrays of a new engine live."""

    def put(self, number: int, live: Live) -> None:
        """Keep an engine that `take` gave or that lives in `memory`."""

    def drop(self, number: int, live: Live) -> None:
        """Forget an engine that was left half-way."""


class OwnEngines:
    """Engines in the memory of this process."""

    def __init__(self) -> None:
        self._engines: dict[int, Live] = {}

    def take(self, number: int, token: str, query: Query) -> Live | None:
        """The engine, if it is here and of this state."""
        del query
        live = self._engines.pop(number, None)
        return live if live is not None and live.token == token else None

    def memory(self, number: int) -> Memory:
        """The heap."""
        del number
        return HEAP

    def put(self, number: int, live: Live) -> None:
        """Keep it."""
        self._engines[number] = live

    def drop(self, number: int, live: Live) -> None:
        """Nothing was kept while it was in use."""
