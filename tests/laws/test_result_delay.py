"""A watermark on the results with the delay that the query names never drops a result."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.errors import WindowError
from plait.local.host import LocalRun
from plait.query.expr import Column
from plait.query.query import Output
from plait_lab.laws.strategies.histories import History, cases


@pytest.mark.slow
@settings(max_examples=60)
@given(cases(late=True), st.data())
def test_results_are_never_later_than_said(history: History, data: st.DataObject) -> None:
    stream = data.draw(st.sampled_from(history.query.streams))
    query = replace(history.query, select=(Output("t", Column(stream.name, stream.time)),))
    if any(s.unlimited for s in query.streams):
        with pytest.raises(WindowError, match="without limit"):
            query.result_delay(stream.name)
        return
    run = LocalRun(query, tuning=history.tuning)
    newest: int | None = None
    unit = {"s": 1_000_000, "ms": 1_000, "us": 1, "ns": 1}[query.schema.field("t").type.unit]
    for batch in history.tables():
        times = [int(t.value) * unit for t in run.push(batch).column("t")]
        if query.schema.field("t").type.unit == "ns":
            times = [t // 1_000 for t in times]
        if newest is not None and times:
            assert min(times) >= newest - query.result_delay(stream.name)
        newest = max([*times, *([] if newest is None else [newest])], default=newest)


def test_the_delay_is_no_longer_than_needed() -> None:
    from plait.testing.examples import clique

    query = clique(2)
    width = query.bounds.uniform
    assert width is not None
    late = replace(query, streams=tuple(replace(s, delay=7) for s in query.streams))
    assert late.result_delay("a") == 2 * width + 7
