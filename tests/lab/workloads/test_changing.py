"""Rows are what their regime promises: rates, selectivities, correlations, no gaps."""

from __future__ import annotations

import numpy as np
import pytest

from plait.kernels.jit import Ints
from plait.query.query import Query
from plait_lab.bench.adapt.correlated import TWO_KEYS, all_or_nothing, two_keys
from plait_lab.bench.adapt.drifts import DriftOptions, drift_regimes
from plait_lab.bench.adapt.flips import CHAIN, STAR, rates_flip, selectivities_flip
from plait_lab.bench.adapt.stationary import KEYS, noise
from plait_lab.bench.adapt.stationary import Options as Noise
from plait_lab.workloads.changing import (
    Batches,
    Key,
    Regime,
    agreement,
    between,
    make_batches,
    mean,
)
from plait_lab.workloads.keyed import keyed_query

SECOND = 1_000_000


def column(batches: Batches, stream: str, name: str) -> Ints:
    return np.concatenate([batch[stream][name].to_numpy() for batch in batches])


def matches(batches: Batches, query: Query) -> dict[str, float]:
    """How often the pairs of rows of each equality agree, over all rows of the batches.

    It is measured on the rows, so it says whether they are what a regime promises.
    """
    found = {}
    for e in query.equalities:
        sides = [
            np.concatenate([batch[c.stream][c.name].to_numpy() for batch in batches])
            for c in (e.left, e.right)
        ]
        (left, many), (right, more) = (np.unique(s, return_counts=True) for s in sides)
        _, mine, its = np.intersect1d(left, right, assume_unique=True, return_indices=True)
        pairs = float(many[mine] @ more[its])
        found[str(e)] = pairs / max(1, len(sides[0]) * len(sides[1]))
    return found


@pytest.mark.parametrize(
    ("keys", "regime"),
    [
        (STAR, rates_flip(0.5).regimes[0]),
        (STAR, rates_flip(0.5).regimes[1]),
        (CHAIN, selectivities_flip(0.5).regimes[0]),
        (CHAIN, selectivities_flip(0.5).regimes[1]),
        (KEYS, noise(Noise(rate=5_000.0, keys=500))),
        (TWO_KEYS, two_keys()),
        (STAR, all_or_nothing()),
    ],
)
def test_rates_and_selectivities_are_those_of_the_regime(
    keys: tuple[tuple[str, ...], ...], regime: Regime
) -> None:
    query = keyed_query(keys, 4 * SECOND)
    batches = make_batches(query, [regime] * 8, 1.0, seed=3)
    for name, rate in zip(query.names, regime.rates, strict=True):
        rows = sum(batch[name].num_rows for batch in batches)
        assert abs(rows - 8 * rate) < 6 * np.sqrt(8 * rate), name
    known = regime.statistics(query, 1.0).selectivities
    found = matches(batches, query)
    assert set(found) == set(known)
    for text, share in found.items():
        e = next(e for e in query.equalities if str(e) == text)
        rows = [sum(batch[c.stream].num_rows for batch in batches) for c in (e.left, e.right)]
        pairs = known[text].value * rows[0] * rows[1]
        # Few pairs scatter like a Poisson count; a share of hot rows scatters more than pairs do.
        hot = min(
            regime.key(c.stream, c.name).share * n
            for c, n in zip((e.left, e.right), rows, strict=True)
        )
        slack = 6 / np.sqrt(max(1.0, pairs)) + 6 / np.sqrt(hot)
        assert share == pytest.approx(known[text].value, rel=max(0.03, slack))


def test_a_flip_changes_the_size_of_what_is_joined_first() -> None:
    before, after = rates_flip().regimes
    assert before.rates[1] / after.rates[1] == after.rates[3] / before.rates[3] == 200
    query = keyed_query(CHAIN, 4 * SECOND)
    known = [r.statistics(query, 1.0).selectivities for r in selectivities_flip().regimes]
    first, last = (str(query.equalities[i]) for i in (0, 2))
    assert known[0][first].value / known[1][first].value == pytest.approx(300)
    assert known[1][last].value == pytest.approx(known[0][first].value)


def test_a_function_of_a_key_adds_nothing_to_it() -> None:
    query = keyed_query(TWO_KEYS, SECOND)
    batches = make_batches(query, [two_keys()] * 2, 1.0, seed=1)
    for stream in ("s0", "s1"):
        k, m = (column(batches, stream, name) for name in "km")
        assert (m == k % 100).all()
    known = {
        str(e): s for e, s in zip(query.equalities, (1 / 800, 1 / 100, 1 / 54_000), strict=True)
    }
    found = two_keys().statistics(query, 1.0).selectivities
    assert {text: e.value for text, e in found.items()} == pytest.approx(known)


@pytest.mark.parametrize("together", [True, False])
def test_columns_match_together_or_independently(together: bool) -> None:
    query = keyed_query(STAR, SECOND)
    keys = {k: Key(10, share=0.5) for k in ("k1", "k2", "k3")}
    batches = make_batches(query, [Regime((20_000.0, 1.0, 1.0, 1.0), keys, together)], 1.0, seed=1)
    one, two = (column(batches, "s0", k) < 10 for k in ("k1", "k2"))
    assert one.mean() == pytest.approx(0.5, abs=0.02)
    assert (one & two).mean() == pytest.approx(0.5 if together else 0.25, abs=0.02)


def test_streams_run_on_without_a_gap() -> None:
    query = keyed_query(STAR, SECOND)
    flip = rates_flip(0.1).regimes
    batches = make_batches(query, [flip[0]] * 3 + [flip[1]] * 3, 0.5, seed=1, start=7 * SECOND)
    for b, batch in enumerate(batches):
        times = column([batch], "s0", "ts").astype(np.int64)
        assert (np.diff(times) >= 0).all()
        begin = 7 * SECOND + b * SECOND // 2
        assert begin <= times[0] < begin + SECOND // 20
        assert begin + SECOND * 9 // 20 < times[-1] < begin + SECOND // 2


def test_a_batch_depends_on_the_seed_and_not_on_the_regimes_before() -> None:
    query = keyed_query(CHAIN, SECOND)
    one, other = selectivities_flip(0.01).regimes
    first = make_batches(query, [one, one], 1.0, seed=1)
    second = make_batches(query, [other, one], 1.0, seed=1)
    assert first[1] == second[1] and first[0] != second[0]
    assert make_batches(query, [one], 1.0, seed=2)[0] != first[0]


def test_a_drift_is_never_a_step() -> None:
    regimes = drift_regimes(DriftOptions())
    assert len(regimes) == 360
    assert regimes[0].keys["k1"].domain == regimes[-1].keys["k3"].domain
    domains = np.array([r.keys["k1"].domain for r in regimes], float)
    steps = domains[1:] / domains[:-1]
    assert (steps >= 1).all() and steps.max() < 1.03, "no step is seen in the noise"
    middle = regimes[180]
    assert middle.keys["k1"].domain == pytest.approx(middle.keys["k3"].domain, rel=0.05)


def test_skewed_keys_agree_more_often() -> None:
    assert agreement(Key(1000, power=1.5), Key(1000, power=1.5)) > 1.25 / 1000
    assert agreement(Key(1000), Key(1000)) == pytest.approx(1 / 1000)
    assert Key(50, power=2.0).probabilities().sum() == pytest.approx(1)


def test_means_are_of_rates_and_of_selectivities() -> None:
    query = keyed_query([["k"], ["k"]], SECOND)
    regimes = [Regime((10.0, 30.0), {"k": Key(10)}), Regime((30.0, 10.0), {"k": Key(1000)})]
    known = mean(regimes, query, 1.0)
    assert [e.value for e in known.rates.values()] == [20, 20]
    assert known.selectivities["s0.k = s1.k"].value == pytest.approx((0.1 + 0.001) / 2)
    assert between(regimes[0], regimes[1], 0.5).keys["k"].domain == 100
