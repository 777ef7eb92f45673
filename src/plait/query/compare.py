"""In what two queries differ, in words."""

from __future__ import annotations

from plait.query.bounds import show
from plait.query.query import Query


def difference(one: Query, other: Query) -> str:
    """What one query has and the other has not, part by part; empty if they ask the same.

    >>> from plait.plan.examples import chain, clique
    >>> difference(chain(3), clique(3))
    'streams a(ts, k1), b(ts, k1, k2), c(ts, k2) instead of a(ts, k), b(ts, k), c(ts, k); \
equalities a.k1 = b.k1, b.k2 = c.k2 instead of a.k = b.k, b.k = c.k'
    """
    parts = zip(_parts(one), _parts(other), strict=True)
    return "; ".join(
        f"{name} {mine or 'none'} instead of {theirs or 'none'}"
        for (name, mine), (_, theirs) in parts
        if mine != theirs
    )


def _parts(query: Query) -> list[tuple[str, str]]:
    streams = [f"{s.name}({', '.join(f.name for f in s.fields)})" for s in query.streams]
    details = [f"{s.name} by {s.time}, delay {s.delay} µs" for s in query.streams]
    types = [f"{s.name}.{f.name} {f.type}" for s in query.streams for f in s.fields]
    return [
        ("streams", ", ".join(streams)),
        ("types", ", ".join(types) if streams else ""),
        ("times", ", ".join(details)),
        ("equalities", ", ".join(map(str, query.equalities))),
        ("bounds", show(query.names, query.bounds)),
        ("conditions", ", ".join(map(str, query.residuals))),
        ("columns", ", ".join(map(str, query.select))),
    ]
