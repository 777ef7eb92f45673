"""A chain of three streams of which two match often, and which two that are can change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pytest

from plait.adapt.events import Event
from plait.adapt.policy import PlanPolicy
from plait.local.host import LocalRun
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import parse_shape
from plait_lab.workloads.keyed import keyed_query

Batch = dict[str, pa.Table]
QUERY = keyed_query([["k"], ["k", "m"], ["m"]], 4_000_000)
RATE = 1_000
"""Rows per second of each stream; a batch is a second."""


def batches(
    seconds: int, often: Callable[[int], str], seed: int = 1, rate: int = RATE
) -> list[Batch]:
    """A batch for every second; `often` says whose matches are frequent in it: "k" or "m"."""
    found = []
    for second in range(seconds):
        batch = {}
        for i, stream in enumerate(QUERY.streams):
            rng = np.random.default_rng([seed, second, i])
            times = second * 1_000_000 + np.sort(rng.integers(0, 1_000_000, rate))
            columns = {
                name: rng.integers(0, 50 if often(second) == name else 50_000, rate)
                for name in stream.schema.names
                if name in "km"
            }
            columns["ts"] = pa.array(times).cast(pa.timestamp("us"))
            columns["v"] = np.arange(rate)
            batch[stream.name] = pa.table(columns).select(stream.schema.names)
        found.append(batch)
    return found


POLICY = PlanPolicy(sampling=0.5, effort=1.0, look=0.0)
"""Batches here take milliseconds, so a share of their time is not enough to learn anything."""


@pytest.fixture(scope="session")
def events() -> list[Event]:
    """The log of a run through a flip."""
    run = LocalRun(QUERY, parse_shape(QUERY, "(s0 (s1 s2))"), adapt=POLICY, costs=DEFAULT)
    for batch in batches(30, lambda s: "k" if s < 15 else "m"):
        run.push(batch)
    return run.events
