"""The migration benchmark, small: what it measures is there, and the results agree."""

from __future__ import annotations

import pytest

from plait_lab.bench.migrate_pause import Options, migrate_pause


@pytest.mark.slow
def test_it_measures_both_strategies() -> None:
    options = Options(
        rows=3_000, window_rows=1_000, window_batches=5, batches=4, repeats=1, runtimes="local"
    )
    report = migrate_pause(options, lambda _: None)
    claims = {claim.id: claim for claim in report.claims}
    assert set(claims) == {
        "moving-state-half",
        "moving-state-states",
        "parallel-track-any",
        "parallel-track-timestamp",
        "parallel-track-results",
    }
    assert claims["moving-state-states"].holds and claims["parallel-track-results"].holds
    moved, both = report.systems["moving state"], report.systems["parallel track"]
    assert moved["base tuples"] == 9_000 and moved["recomputed"] > 8_000
    assert moved["pause"]["median"] > 0 and both["pause"]["any"]["median"] > 0
    assert 5 <= both["stage in batches"] <= 6, "a window, and what is left of a batch"
    assert both["old results"] > 0 and both["new results"] > 0
