"""Describe in words how two queries differ."""

from __future__ import annotations

from collections.abc import Sequence

from plait.query.bounds import show
from plait.query.names import quoted
from plait.query.query import Query


def difference(one: Query, other: Query) -> str:
    """List the differences between two queries, part by part; empty if they are equal.

    >>> from plait.testing.examples import keyed
    >>> print(difference(keyed("x", "x"), keyed("x", "x", width=5_000_000)))
    bounds all within 10 s instead of all within 5 s
    """
    found = []
    for (name, mine), (_, theirs) in zip(_parts(one), _parts(other), strict=True):
        extra = [item for item in mine if item not in theirs]
        lacking = [item for item in theirs if item not in mine]
        if extra or lacking:
            found.append(f"{name} {_shown(extra)} instead of {_shown(lacking)}")
    if not found and one != other:
        return "the same parts in another order"
    return "; ".join(found)


def _shown(items: Sequence[str]) -> str:
    return ", ".join(items) or "none"


def _parts(query: Query) -> list[tuple[str, list[str]]]:
    return [
        (
            "streams",
            [f"{s.signature} by {quoted(s.time)}, delayed by {s.delay} µs" for s in query.streams],
        ),
        ("equalities", [str(e) for e in query.equalities]),
        ("bounds", [show(query.names, query.bounds)]),
        ("conditions", [str(r) for r in query.residuals]),
        ("columns", [str(o) for o in query.select]),
        ("lateness", [query.lateness]),
    ]
