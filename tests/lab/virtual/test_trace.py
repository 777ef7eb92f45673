"""Series over virtual time: nothing is lost between the slices and the bins of a figure."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait_lab.virtual.trace import Slice, Stage, Trace


def trace_of(*parts: tuple[float, float, int]) -> Trace:
    """Slices from begin, end and results; the states hold as many tuples as there were results."""
    return Trace([Slice(b, e, e, 1, n, n, 2 * n, 3 * n) for b, e, n in parts])


PARTS = st.lists(st.tuples(st.floats(0, 2), st.floats(0.01, 2), st.integers(0, 9)), max_size=8)


@given(PARTS, st.integers(1, 20))
def test_bins_hold_every_result_and_every_busy_second(
    steps: list[tuple[float, float, int]], bins: int
) -> None:
    clock, parts = 0.0, []
    for idle, work, found in steps:
        parts.append((clock + idle, clock + idle + work, found))
        clock += idle + work
    trace = trace_of(*parts)
    edges = np.linspace(0.0, clock + 1.0, bins + 1)
    width = edges[1] - edges[0]
    assert float(trace.rate(edges).sum() * width) == pytest.approx(trace.results)
    worked = sum(work for _, work, _ in steps)
    assert float(trace.busy(edges).sum() * width) == pytest.approx(worked)
    assert np.all(trace.busy(edges) <= 1 + 1e-9)


def test_sizes_are_those_of_the_last_slice() -> None:
    trace = trace_of((0.0, 1.0, 4), (2.0, 3.0, 7))
    assert trace.base([0.5, 1.0, 2.5, 9.0]).tolist() == [0, 4, 4, 7]
    assert trace.intermediate([1.0, 3.0]).tolist() == [8, 14]
    assert trace.queued([1.0, 3.0]).tolist() == [12, 21]


def test_the_longest_silence() -> None:
    trace = trace_of((0.0, 1.0, 4), (1.0, 4.0, 0), (4.0, 5.0, 1), (6.0, 7.0, 1))
    assert trace.longest_silence(0.0, 7.0) == 3.0
    assert trace.longest_silence(4.5, 7.0) == 1.0
    assert trace.longest_silence(6.5, 9.0) == 2.0
    assert Trace().longest_silence(1.0, 3.0) == 2.0


def test_stages_make_a_migration() -> None:
    assert Trace().migration is None
    trace = trace_of((0.0, 1.0, 4))
    trace.stages += [Stage("clean", 1.0, 2.0), Stage("move", 2.0, 2.5)]
    assert trace.migration == Stage("migration", 1.0, 2.5)
    assert trace.stage("move") == Stage("move", 2.0, 2.5)
    assert trace.stage("parallel") is None
    assert trace.end == 2.5
    # Moving states is work.
    assert trace.busy([0.0, 2.5]).tolist() == pytest.approx([1.5 / 2.5])


def test_nothing_is_nothing() -> None:
    assert Trace().rate([0.0, 1.0]).tolist() == [0.0]
    assert Trace().queued([0.0]).tolist() == [0.0]
    assert Trace().end == 0.0
