"""Volumes: closed forms against draws, and draws against what can be worked out by hand."""

from __future__ import annotations

import pytest

from plait.optimize.volumes import SampledVolumes, Uniform, volumes_of
from plait.query.bounds import Constraint, close

W = 5.0


def _global(streams: int) -> tuple[tuple[float, ...], ...]:
    return tuple(tuple(0.0 if i == j else W for j in range(streams)) for i in range(streams))


@pytest.mark.parametrize("streams", [0b1, 0b11, 0b111, 0b1111])
@pytest.mark.parametrize("lag", [0.0, 0.4])
def test_closed_forms_agree_with_draws(streams: int, lag: float) -> None:
    exact, drawn = Uniform(W, (lag,) * 5), SampledVolumes(_global(5), (lag,) * 5)
    for name in ("total", "live", "held", "longest"):
        assert getattr(drawn, name)(streams) == pytest.approx(
            getattr(exact, name)(streams), rel=0.03
        )
    assert drawn.last(streams, 1) == pytest.approx(exact.last(streams, 1), rel=0.05)
    assert drawn.reach(streams, 1, 0b10000) == pytest.approx(W)


def test_the_last_tuple_belongs_to_someone() -> None:
    drawn = SampledVolumes(((0, 3, 4), (2, 0, 6), (1, 2, 0)), (0.0,) * 3)
    whole = sum(drawn.last(0b111, 1 << i) for i in range(3))
    assert whole == pytest.approx(drawn.total(0b111))


def test_an_interval_by_hand() -> None:
    bounds = close("ab", [Constraint(0, 1, 4_000_000), Constraint(1, 0, 1_000_000)])
    volumes = volumes_of(bounds.matrix, (0.0, 0.0))
    assert volumes.total(0b11) == pytest.approx(5.0)
    assert volumes.last(0b11, 0b10) == pytest.approx(4.0, rel=0.02)
    assert volumes.live(0b01) == pytest.approx(4.0)
    assert volumes.live(0b10) == pytest.approx(1.0)


def test_a_tuple_of_one_batch_counts_for_the_higher_stream() -> None:
    drawn = SampledVolumes(_global(2), (0.0, 0.0), batch=1.0)
    # Pairs of one batch are b of the 2 W: half of them change sides.
    assert drawn.last(0b11, 0b01) == pytest.approx(W - 0.5, rel=0.03)
    assert drawn.last(0b11, 0b10) == pytest.approx(W + 0.5, rel=0.03)


def test_draws_are_the_same_every_time() -> None:
    first, second = (SampledVolumes(_global(4), (0.0,) * 4) for _ in range(2))
    assert first.live(0b111) == second.live(0b111)
