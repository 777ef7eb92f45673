"""The cost-model benchmark, small."""

from __future__ import annotations

import pytest

from plait_lab.bench.cost_model import Options, cost_model, rank_correlation


@pytest.mark.slow
def test_it_compares_what_was_predicted_with_what_was_counted() -> None:
    options = Options(queries=2, most=4, counting=3.0, most_work=60_000, repeats=1)
    report = cost_model(options, lambda _: None)
    holds = {claim.id: claim.holds for claim in report.claims}
    assert holds["operations-p90"] and holds["tuples-p90"]
    assert set(holds) >= {"operations-median", "tuples-median", "time-rank"}
    assert report.systems["plait"]["plans"] >= 4


def test_ranks() -> None:
    assert rank_correlation([1, 2, 3, 4], [10, 20, 30, 40]) == 1
    assert rank_correlation([1, 2, 3, 4], [4, 3, 2, 1]) == -1
