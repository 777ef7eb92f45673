"""Arrival processes: their rates, their order, and that a seed decides everything."""

from __future__ import annotations

import numpy as np
import pytest

from plait.testing.examples import chain
from plait_lab.workloads.arrivals import ArrivalProcess, Bursts, Poisson, Regular, tables

PROCESSES: list[ArrivalProcess] = [
    Poisson(50.0),
    Regular(50.0),
    Bursts(50.0, period=2.0, share=0.25),
]


@pytest.mark.parametrize("process", PROCESSES)
def test_rates_and_order(process: ArrivalProcess) -> None:
    times = process.times(200.0, np.random.default_rng(1))
    assert len(times) == pytest.approx(10_000, rel=0.05)
    assert np.all(np.diff(times) >= 0)
    assert times[0] >= 0
    assert times[-1] < 200


def test_poisson_gaps_are_exponential() -> None:
    gaps = np.diff(Poisson(50.0).times(400.0, np.random.default_rng(1)))
    assert gaps.std() == pytest.approx(gaps.mean(), rel=0.05)


def test_bursts_are_followed_by_silence() -> None:
    times = PROCESSES[2].times(200.0, np.random.default_rng(1))
    assert np.all(times % 2.0 <= 0.5)


def test_a_stream_does_not_depend_on_the_others() -> None:
    query = chain(3)
    slow = {name: Poisson(10.0) for name in query.names}
    fast = slow | {"b": Poisson(99.0)}
    first, second = (tables(query, arrivals, {}, 5.0, seed=7) for arrivals in (slow, fast))
    assert first["a"].equals(second["a"])
    assert first["c"].equals(second["c"])
    assert second["b"].num_rows > 3 * first["b"].num_rows
