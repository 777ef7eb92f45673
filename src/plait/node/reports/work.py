"""What each state of a plan holds, and what each of its joins did in a batch: for reports.

A set of streams is named as in joint selectivities: the names, quoted where they are no plain
words, in the order of the query, with spaces between. While two plans run beside each other, what
both have of a set is added up. Routers have no joins: of them only the windows are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from plait.query.names import quoted

if TYPE_CHECKING:  # whoever reads reports needs no engine
    from plait.engine.counters import OperatorCounters
    from plait.engine.driver import Engine

STATE = ("rows", "bytes")
"""What is told of a state."""
WORK = ("inserts", "probes", "visited", "matches", "outputs")
"""What is told of a join."""


class Tally:
    """The counters of the joins of an engine before a batch."""

    def __init__(self, engine: Engine) -> None:
        joins = [operator.counters for operator in engine.operators]
        # They are kept, so that no other counters can come to have the same identity.
        self._before = {id(counters): (counters, _numbers(counters)) for counters in joins}

    def since(self, engine: Engine) -> dict[str, list[int]]:
        """What each join has done since then; one that is new, since it began."""
        found: dict[str, list[int]] = {}
        for operator in engine.operators:
            streams = (engine.query.index(name) for name in operator.join.streams)
            _, before = self._before.get(id(operator.counters), (None, [0] * len(WORK)))
            now = _numbers(operator.counters)
            done = [b - a if b >= a else b for a, b in zip(before, now, strict=True)]
            _add(found, streams_name(engine.query.names, streams), done)
        return found


def held(engine: Engine) -> dict[str, list[int]]:
    """Rows and bytes of each state, base windows first."""
    found: dict[str, list[int]] = {}
    for size in engine.sizes():
        _add(found, " ".join(map(quoted, size.streams)), [size.rows, size.bytes])
    return found


def streams_name(names: Sequence[str], streams: Iterable[int]) -> str:
    """The name of a set of streams, given by their indexes.

    >>> streams_name(["a", "b c", "d"], {2, 1})
    '`b c` d'
    """
    return " ".join(quoted(names[i]) for i in sorted(streams))


def _add(found: dict[str, list[int]], name: str, numbers: list[int]) -> None:
    there = found.get(name)
    found[name] = numbers if there is None else [a + b for a, b in zip(there, numbers, strict=True)]


def _numbers(counters: OperatorCounters) -> list[int]:
    steps = [step for given in counters.inputs for step in given.steps]
    return [
        sum(given.inserts for given in counters.inputs),
        sum(step.probes for step in steps),
        sum(step.visited for step in steps),
        sum(step.matches for step in steps),
        counters.outputs,
    ]
