"""Compare the results of a query with the definition of its answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from plait.errors import SourceError
from plait.query.query import Query
from plait.testing.oracle import answer, fates
from plait.testing.oracle.answer import Result, Rows

if TYPE_CHECKING:
    from plait.api.join import Join
    from plait.api.sql import Sql

Batch = Mapping[str, Rows]
"""The rows of each stream that arrive together: an Arrow table or a list of dictionaries."""


def expected(question: Join | Sql | Query, *batches: Batch) -> Counter[Result]:
    """Compute the results of a question from its definition, with how often each occurs.

    The rows arrive in these batches, and those that are late by then are not joined. Without
    batches they are the tables that the question was asked of, in the order of their event times.

    >>> import plait
    >>> at = pa.array([0, 1_000_000, 9_000_000], pa.timestamp("us"))
    >>> trades = pa.table({"sym": ["A", "B", "B"], "ts": at, "price": [1, 2, 3]})
    >>> quotes = pa.table({"sym": ["A", "A", "B"], "ts": at, "bid": [4, 5, 6]})
    >>> q = plait.join(trades=trades, quotes=quotes).on("sym").within("5 seconds")
    >>> q = q.select("trades.price", "quotes.bid")
    >>> expected(q)
    Counter({(1, 4): 1, (1, 5): 1, (3, 6): 1})
    >>> actual(q.run()) == expected(q)
    True

    It tries every combination of rows, so give it few: hundreds rather than thousands.
    """
    query, given = _query(question), _rows(question, batches)
    if batches:
        return answer.oracle(query, answer.split_late(query, given)[0])
    return answer.oracle(query, given[0])


def actual(results: Any) -> Counter[Result]:
    """Count results in the form of `expected`: of a run, an Arrow table, or a DataFrame of Spark.

    >>> actual(pa.table({"x": [1, 1, None]}))
    Counter({(1,): 2, (None,): 1})
    """
    for method in ("to_arrow", "toArrow"):
        if hasattr(results, method):
            results = getattr(results, method)()
    if not isinstance(results, pa.Table):
        raise SourceError(
            f"a {type(results).__name__} holds no results",
            remedy="give what run() returned, an Arrow table or a DataFrame of Spark",
        )
    return answer.multiset(results)


def set_aside(
    question: Join | Sql | Query, *batches: Batch
) -> dict[str, dict[str, list[Mapping[str, object]]]]:
    """Find the rows that are in no result, for each stream and reason, from the definition.

    >>> import plait
    >>> at = pa.array([0, 60_000_000, None], pa.timestamp("us"))
    >>> rows = pa.table({"k": [1, None, 3], "ts": at})
    >>> q = plait.join(a=rows, b=rows).on("k").within("5 seconds").watermark("1 second")
    >>> {reason: len(found) for reason, found in set_aside(q)["a"].items() if found}
    {'no event time': 1, 'null key': 1}
    """
    return fates.set_aside(_query(question), _rows(question, batches))


def _query(question: Join | Sql | Query) -> Query:
    return question if isinstance(question, Query) else question.query


def _rows(question: Join | Sql | Query, batches: tuple[Batch, ...]) -> list[Batch]:
    """Take the batches, or the tables of the question, as dictionaries of Python values."""
    query = _query(question)
    given = batches or ({} if isinstance(question, Query) else question.sources,)
    for batch in given:
        for stream in query.streams:
            rows = batch.get(stream.name)
            if rows is None and batches:
                continue
            if not isinstance(rows, pa.Table | list | tuple):
                raise SourceError(
                    f"the rows of stream {stream.name!r} are not in memory",
                    remedy="give them as Arrow tables: expected(question, {'NAME': table, ...})",
                )
    return [
        {s.name: answer.rows_of(s, batch[s.name]) for s in query.streams if s.name in batch}
        for batch in given
    ]
