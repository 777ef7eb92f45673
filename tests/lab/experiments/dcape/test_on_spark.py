"""The claims of D-CAPE on Spark follow from the runs, in both directions; no Spark is needed."""

from __future__ import annotations

from dataclasses import replace

from plait_lab.experiments.dcape.on_spark import Options, Ran, claims

OPTIONS = Options(batches=20, warm=4, last=6)


def ran(before: float, after: float, results: tuple[int, int] = (10, 99)) -> Ran:
    return Ran((before,) * 10 + (after,) * 10, results, 1_000, 3)


GOOD = {
    "No-Adapt": ran(8.0, 8.0),
    "LM-only": ran(8.0, 4.0),
    "LB-only": ran(8.0, 5.0),
    "LM and LB": ran(8.0, 2.5),
    "hot key, groups stay": ran(6.0, 6.0, (20, 7)),
    "hot key, balanced": ran(6.0, 3.5, (20, 7)),
}


def failing(runs: dict[str, Ran]) -> list[str]:
    return [claim.id for claim in claims(runs, OPTIONS) if not claim.holds]


def test_what_the_paper_says_holds() -> None:
    assert failing(GOOD) == []


def test_reversed_runs_are_seen() -> None:
    flipped = {name: replace(r, seconds=r.seconds[::-1]) for name, r in GOOD.items()}
    assert {"rebalanced", "hot", "both"} <= set(failing(flipped | {"LM and LB": ran(8.0, 9.0)}))
    assert failing(GOOD | {"LM-only": ran(8.0, 2.0)}) == ["both"]
    assert failing(GOOD | {"LM-only": ran(8.0, 9.0)}) == ["lm"]
    assert failing(GOOD | {"LB-only": ran(8.0, 9.0)}) == ["rebalanced", "lb"]
    assert failing(GOOD | {"hot key, balanced": ran(6.0, 5.0, (20, 7))}) == ["hot"]


def test_a_lost_result_is_seen() -> None:
    assert failing(GOOD | {"LM and LB": ran(8.0, 2.5, (9, 90))}) == ["results"]
    assert failing(GOOD | {"hot key, balanced": ran(6.0, 3.5, (21, 7))}) == ["hot-results"]


def test_a_part_alone_has_its_own_claims() -> None:
    hot = {name: found for name, found in GOOD.items() if name.startswith("hot")}
    assert [claim.id for claim in claims(hot, OPTIONS)] == ["hot", "hot-results"]
    rest = {name: found for name, found in GOOD.items() if name not in hot}
    assert "hot" not in [claim.id for claim in claims(rest, OPTIONS)]
