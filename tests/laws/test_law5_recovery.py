"""Laws 4 and 5 without Spark: any number of processors, crashes at every point, lost caches."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.node.durable.store import Engines, OwnEngines
from plait.spark.arena.engines import Arena, Places
from plait_lab.laws.checks import assert_lawful_on_processors
from plait_lab.laws.strategies.histories import History, cases, crowds

pytestmark = pytest.mark.slow


@settings(max_examples=60)
@given(cases(late=True), st.integers(1, 5), st.integers(0, 2**32))
def test_oracle_any_processors_and_crashes(history: History, processors: int, seed: int) -> None:
    assert_lawful_on_processors(history, processors, seed, [OwnEngines(), OwnEngines()])


@settings(max_examples=40)
@given(cases(late=True), st.integers(1, 4), st.integers(0, 2**32))
def test_oracle_workers_that_share_an_arena(history: History, processors: int, seed: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        places = Places(Path(folder, "memory"), Path(folder, "disk"), limit=1 << 15, smallest=1)
        workers: list[Engines] = [Arena("run", places), Arena("run", places)]
        assert_lawful_on_processors(history, processors, seed, workers)


@pytest.mark.slow
@settings(max_examples=40)
@given(crowds(late=True), st.integers(1, 4), st.integers(0, 2**32))
def test_oracle_crowded_windows(history: History, processors: int, seed: int) -> None:
    assert_lawful_on_processors(history, processors, seed, [OwnEngines(), OwnEngines()])
