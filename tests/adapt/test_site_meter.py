"""What a site measures: rates by event time, keys by a sample, and what chance explains."""

from __future__ import annotations

import numpy as np
import pytest

from plait.adapt.placement import PlacementPolicy
from plait.adapt.site_meter import StreamMeter, counted, measured
from plait.errors import PolicyError
from plait.optimize.site_cost import StreamStatistics

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


@pytest.mark.parametrize(
    ("field", "value"), [("interval", 0), ("sample", 0), ("patience", 0), ("update", "both")]
)
def test_policies_that_make_no_sense(field: str, value: object) -> None:
    with pytest.raises(PolicyError, match=field):
        PlacementPolicy(**{field: value})  # type: ignore[arg-type]
