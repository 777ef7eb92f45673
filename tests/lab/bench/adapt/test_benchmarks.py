"""Every benchmark of streams that change, small: all systems are there and agree."""

from __future__ import annotations

import pytest

from plait_lab.bench import registry

TINY = {
    "adapt-rate-flip": {"before": "5", "after": "6", "scale": "0.02"},
    "adapt-selectivity-flip": {"before": "5", "after": "6", "scale": "0.02"},
    "adapt-slow-drift": {"minutes": "2", "rate": "10"},
    "adapt-oscillation": {"batches": "8", "scale": "0.02"},
    "adapt-correlated": {"batches": "8", "scale": "0.2"},
    "adapt-skew": {"batches": "4", "scale": "0.02"},
    "adapt-burst": {"before": "3", "during": "4", "after": "3", "scale": "0.05"},
}
CLAIMS = {
    "adapt-rate-flip": {"flip", "hindsight", "stay", "results"},
    "adapt-selectivity-flip": {"flip", "hindsight", "stay", "results"},
    "adapt-slow-drift": {"drift", "end", "hindsight", "fast", "results"},
    "adapt-oscillation": {"oscillation", "results"},
    "adapt-correlated": {
        f"{title}-{what}"
        for title in ("two-keys-that-are-one", "all-or-nothing")
        for what in ("misled", "faster", "near")
    }
    | {"results"},
    "adapt-skew": {"differ", "single", "results"},
    "adapt-burst": {"best", "memory-budget", "memory-too-little", "no-plan", "results"},
}


@pytest.mark.slow
@pytest.mark.parametrize("name", TINY)
def test_all_plans_and_the_adaptive_run_are_in_one_table(name: str) -> None:
    report = registry.run(name, {"finals": "1", "stop": "1000", **TINY[name]})
    claims = {c.id: c for c in report.claims}
    assert set(claims) == CLAIMS[name]
    assert claims["results"].holds
    prefixes = {s.removesuffix("adaptive") for s in report.systems if s.endswith("adaptive")}
    assert prefixes
    for prefix in prefixes:
        own = [s for s in report.systems if s.startswith(prefix)]
        shapes = {s.removeprefix(prefix).partition(",")[0] for s in own}
        assert len(shapes) >= 3 + 2, "three shapes of a chain of three, hindsight and adaptive"
        assert report.systems[f"{prefix}adaptive"]["results"] > 0
        assert "migrations" in report.systems[f"{prefix}adaptive"]


@pytest.mark.slow
def test_noise_is_taken_in_turn_with_and_without_the_loop() -> None:
    report = registry.run(
        "adapt-stationary", {"tuples": "60000", "rate": "1000", "repeats": "2", "keys": "500"}
    )
    claims = {c.id: c for c in report.claims}
    assert claims["no-migration"].holds and claims["results"].holds
    assert claims["overhead"].value == report.ratios["adaptive / without the loop"]["median"]
    assert report.systems["adaptive"]["rows"] >= 59_000
    assert report.systems["adaptive"]["migrations"] == [0, 0]
