"""What a plan over sites is chosen from before anything has been measured.

Statistics of a stream that nobody gave are assumed: the paper's rate and selectivity factor, the
size of a row by its columns, and the window by the bounds of the query. This is the only place
that guesses.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from itertools import combinations

import pyarrow as pa

from plait.errors import StatisticsError, UnknownStream, did_you_mean
from plait.query.expr import streams_of
from plait.query.names import quoted
from plait.query.query import Query
from plait.sites.planner.cost import HASH, JoinPrices, SiteSetting, StreamStatistics
from plait.sites.plans.plan import Sites

_RATE, _FACTOR = 100.0, 0.01
"""Tuples per second, and the share that has the same key: the paper's settings."""
_TEXT_BYTES = 20
"""Bytes of a value whose type has no fixed width."""

GivenStatistics = StreamStatistics | Mapping[str, float]


def site_setting(
    query: Query,
    sites: Sites,
    statistics: Mapping[str, GivenStatistics] | None = None,
    prices: JoinPrices = HASH,
) -> SiteSetting:
    """Everything that a plan for a query over these sites is chosen from.

    >>> from plait.sites.planner.greedy import greedy
    >>> from plait.sites.plans.legs import example_sites
    >>> from plait.testing.examples import clique
    >>> print(greedy(site_setting(clique(3), example_sites())))
    a → b@0 → c@0, b → a@0 → c@0, c → a@0 → b@0
    """
    known = complete_statistics(query, statistics or {})
    return SiteSetting(sites, known, prices, conditions_of(query))


def complete_statistics(
    query: Query, given: Mapping[str, GivenStatistics]
) -> dict[str, StreamStatistics]:
    """The statistics of every stream: those that are given, and assumptions for the rest.

    >>> from plait.testing.examples import clique
    >>> complete_statistics(clique(2), {"a": {"rate": 7}})["a"]
    StreamStatistics(rate=7, factor=0.01, tuple_bytes=16.0, window=10.0)
    """
    for name in given:
        if name not in query.names:
            raise UnknownStream(
                f"there are statistics of an unknown stream {name!r}",
                remedy=did_you_mean(name, query.names),
            )
    found = {}
    for stream, reach in zip(query.streams, query.bounds.matrix, strict=True):
        assumed = StreamStatistics(
            rate=_RATE,
            factor=_FACTOR,
            tuple_bytes=float(sum(_value_bytes(field.type) for field in stream.fields)),
            window=max(reach) / 1e6,
        )
        found[stream.name] = _completed(stream.name, given.get(stream.name, {}), assumed)
    return found


def _completed(stream: str, given: object, assumed: StreamStatistics) -> StreamStatistics:
    if isinstance(given, StreamStatistics):
        return given
    if not isinstance(given, Mapping):
        raise StatisticsError(
            f"the statistics of {quoted(stream)} are {given!r}",
            remedy='give them by name: {"rate": 500}',
        )
    known = [field.name for field in fields(StreamStatistics)]
    for name in given:
        if name not in known:
            raise StatisticsError(
                f"{name!r} is no statistic of a stream", remedy=did_you_mean(name, known)
            )
    return StreamStatistics(**{**asdict(assumed), **given})


def _value_bytes(type_: pa.DataType) -> float:
    try:
        return float(type_.bit_width) / 8
    except ValueError:
        return _TEXT_BYTES


def conditions_of(query: Query) -> frozenset[frozenset[str]] | None:
    """The pairs of streams that share a key or condition; None if these do not tie all together."""
    names = query.names
    pairs = {frozenset({names[i], names[k]}) for i in range(len(names))
             for k in query.graph.neighbours(i)}  # fmt: skip
    for residual in query.residuals:
        streams = sorted(streams_of(residual))
        pairs |= {frozenset(pair) for pair in combinations(streams, 2)}
    reached = {names[0]}
    while more := {s for pair in pairs if pair & reached for s in pair} - reached:
        reached |= more
    return frozenset(pairs) if len(reached) == len(names) else None
