"""A running query: what a batch may do to it, and what it may not."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import SourceError, UnknownStream
from plait.plan.examples import clique
from plait.query.query import Query
from plait.runtime.local import LocalRun


def rows(query: Query, stream: int, times: list[int]) -> pa.Table:
    schema = query.streams[stream].schema
    return pa.Table.from_pylist(
        [{f.name: t if f.name == query.streams[stream].time else 0 for f in schema} for t in times],
        schema=schema,
    )


def test_a_refused_batch_leaves_nothing_behind() -> None:
    query = clique(2)
    first, second = query.names
    run = LocalRun(query)
    good = rows(query, 0, [1, 2])
    wrong = rows(query, 1, [1]).rename_columns(
        ["x" * (i + 1) for i in range(len(rows(query, 1, [1]).column_names))]
    )
    with pytest.raises(SourceError, match="lack the column"):
        run.push({first: good, second: wrong})
    assert run.counts.rows == {first: 0, second: 0}
    assert run.watermarks == {first: None, second: None}
    assert run.push({first: good, second: rows(query, 1, [1])}).num_rows == 2


def test_an_unknown_stream_is_refused_by_name() -> None:
    query = clique(2)
    with pytest.raises(UnknownStream, match="'nobody'"):
        LocalRun(query).push({"nobody": rows(query, 0, [1])})


def test_a_batch_must_be_arrow() -> None:
    query = clique(2)
    with pytest.raises(SourceError, match="given as a list"):
        LocalRun(query).push({query.names[0]: [1, 2]})
