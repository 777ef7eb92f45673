"""Growth over time, and the memory of a family of processes."""

from __future__ import annotations

import os

import numpy as np
import pytest

from plait_lab.bench.spark.soak import Options, Samples, growth, resident, soak


def test_growth_is_that_of_the_trend_and_not_of_the_noise() -> None:
    rng = np.random.default_rng(1)
    at = np.arange(600.0)
    level = 1e9 + rng.normal(0, 5e7, 600)
    assert abs(growth(at.tolist(), level.tolist())) < 0.02
    leak = level + at * 5e5
    assert 0.2 < growth(at.tolist(), leak.tolist()) < 0.3


def test_growth_of_nothing() -> None:
    assert growth([1.0], [5.0]) == 0
    assert growth([1.0, 2.0, 3.0], [0.0, 0.0, 0.0]) == 0


def test_samples_after_the_warm_up() -> None:
    samples = Samples()
    for t in range(5):
        samples.add(t, 10 * t)
    assert samples.after(3).bytes == [30, 40]


def test_memory_of_a_process_that_has_no_workers() -> None:
    ours, theirs = resident(os.getpid())
    assert ours > 1_000_000
    assert theirs >= 0


@pytest.mark.campaign
@pytest.mark.xdist_group("spark")
def test_half_a_minute_shows_no_leak() -> None:
    """Half a minute is too short for the claims of half an hour, but not for a gross leak."""
    options = Options(minutes=0.5, rate=500, window_seconds=2.0, sample_seconds=0.5)
    notes: list[str] = []
    report = soak(options, notes.append)
    assert notes
    assert report.systems["plait"]["rows"] > 0
    assert {c.id for c in report.claims} == {
        "driver-memory",
        "worker-memory",
        "state",
        "live-heap-of-the-driver",
    }
    for claim in report.claims:
        assert claim.value < 1.0, claim
