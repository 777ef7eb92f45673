"""What a site measures: rates by event time, keys by a sample, and what chance explains."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from plait.errors import PolicyError
from plait.sites.planner.cost import StreamStatistics
from plait.sites.planner.meter import StreamMeter, counted, measured
from plait.sites.planner.policy import PlacementPolicy

KNOWN = StreamStatistics(rate=100.0, factor=0.5, tuple_bytes=10, window=1.0)
POLICY = PlacementPolicy()


def test_nothing_is_measured_before_an_interval_is_over() -> None:
    meter = counted(StreamMeter(), POLICY, 0, 5, 50)
    meter = counted(meter, POLICY, 999_999, 400, 8_000)
    assert measured(meter, POLICY, KNOWN) == (meter, None)
    after, found = measured(counted(meter, POLICY, 2_000_000, 0, 0), POLICY, KNOWN)
    assert found is not None
    assert (found.rate, found.tuple_bytes) == (200.0, 20.0)
    assert (after.begin, after.rows) == (2_000_000, 0)


def test_keys_that_repeat_more_raise_the_factor() -> None:
    meter = StreamMeter()
    for second in range(5):
        same = np.full(20, 7, np.uint64)
        meter = counted(meter, POLICY, second * 300_000, 20, 200, [same])
    _, found = measured(meter, POLICY, KNOWN)
    assert found is not None
    assert found.factor == 1.0


def test_without_keys_the_factor_stays() -> None:
    meter = StreamMeter(begin=0, newest=1_000_000, rows=100, nbytes=1000)
    assert measured(meter, POLICY, KNOWN)[1] == KNOWN


def test_the_sample_does_not_depend_on_the_order_of_rows() -> None:
    keys, random = np.arange(500, dtype=np.uint64), np.random.default_rng(1)
    one = other = StreamMeter()
    for second in range(4):
        one = counted(one, POLICY, second, 500, 500, [keys])
        other = counted(other, POLICY, second, 500, 500, [random.permutation(keys)])
        assert one == other


@pytest.mark.parametrize("distinct", [4, 50, 1000])
def test_the_factor_is_that_of_the_keys_also_if_all_batches_are_alike(distinct: int) -> None:
    keys = np.arange(1000, dtype=np.uint64) % np.uint64(distinct)
    meter, known = StreamMeter(), replace(KNOWN, factor=1e-9)
    for number in range(400):
        meter = counted(meter, POLICY, 5_000 * number, 1000, 1000, [keys])
    _, found = measured(meter, POLICY, known)
    assert found is not None
    assert found.factor == pytest.approx(1 / distinct, rel=0.2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("interval", 0),
        ("interval", 1e6),
        ("sample", 0),
        ("sample", 64.5),
        ("patience", 0),
        ("patience", 30e6),
        ("sigmas", "3"),
        ("threshold", float("nan")),
        ("update", "both"),
    ],
)
def test_policies_that_make_no_sense(field: str, value: object) -> None:
    with pytest.raises(PolicyError, match=field):
        PlacementPolicy(**{field: value})  # type: ignore[arg-type]
