"""The experiments of seed 000 on short streams: that they run, and what holds even then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plait.workshop.bench.report import Report
from plait.workshop.experiments import registry
from plait.workshop.experiments.cape_settings import (
    FLAT,
    HIGH,
    LOW,
    NEW,
    OLD,
    migration,
    moves,
    set_1,
    set_2,
    set_3,
)

CROSSING = {"shortest": "0.2", "longest": "0.6", "hash_shortest": "0.5", "hash_longest": "1.2",
            "points": "3", "start": "8", "slices": "8"}  # fmt: skip


def _run(name: str, options: Mapping[str, str]) -> Report:
    report = registry.run(name, options)
    assert (report.name, report.seed, report.runtime) == (name, "000", "virtual")
    json.dumps(report.to_dict())
    return report


def _claims(report: Report) -> dict[str, bool]:
    return {claim.id: claim.holds for claim in report.claims}


def test_table_2() -> None:
    assert set_1(2.0).rates == (10, 10, 10, 10)
    assert set_2(25.0).rates == (20, 40, 20, 20)
    assert [round(r) for r in set_3(1.0).rates] == [10, 83, 83, 83]
    assert (LOW.window, HIGH.window) == (1.0, 2.0)
    tables = set_3(1.0).tables(30.0, seed=1)
    assert tables["D"].num_rows == pytest.approx(2500, rel=0.05)
    assert tables["B"].column("k0").unique().sort().to_pylist() == list(range(10))


def test_the_machine_has_power_where_the_paper_says_so() -> None:
    calm = [set_1(4.0), set_2(20.0), LOW]
    for setting in calm:
        found = setting.predicted("nested-loop")
        assert found.old_load + found.new_load < found.speed
    busy = HIGH.predicted("nested-loop", speed=0.05)
    assert busy.old_load > 3 * busy.speed


def test_old_plan_and_new_plan_are_those_of_figure_4() -> None:
    assert str(LOW.plan(OLD)) == "(((A B) C) D)"
    assert str(LOW.plan(NEW)) == "(A ((B C) D))"
    assert str(LOW.plan(FLAT)) == "(A B C D)"


def test_a_migration_is_measured_from_its_request_to_its_end() -> None:
    found = migration(set_1(1.0), "moving-state", "nested-loop", start=4.0, slices=10)
    assert found.total == found.move > 0
    assert found.clean == 0
    assert 0 < found.busy < 0.2
    behind = migration(set_3(0.8), "moving-state", "nested-loop", start=3.0, slices=8)
    assert behind.busy > 0.99
    assert behind.total == pytest.approx(behind.clean + behind.move)
    assert behind.clean > behind.move


def test_both_accounts_of_one_migration() -> None:
    found = moves(set_1(2.0), 6.0, seed=1)
    assert found["nested-loop"] > 5 * found["hash"] > 0


@pytest.mark.slow
def test_fig9_windows_and_heights() -> None:
    report = _run("cape/fig9", {"shortest": "3", "longest": "4", "step": "1", "tracks": "1"})
    assert [list(s.x) for s in report.series] == [[3.0, 4.0]] * 5
    claims = _claims(report)
    assert set(claims) == {"pt-2w", "pt-w", "pt-2w-hash", "pt-linear", "keeps-up"}
    assert claims["keeps-up"]
    tall, flat = (list(report.series[k].y) for k in (0, 1))
    assert [t / f for t, f in zip(tall, flat, strict=True)] == pytest.approx([2.0, 2.0], rel=0.2)


@pytest.mark.slow
def test_fig10_is_a_polynomial() -> None:
    report = _run("cape/fig10", {"shortest": "2", "longest": "4", "step": "1", "repeats": "8"})
    claims = _claims(report)
    assert set(claims) == {
        "ms-model", "ms-polynomial", "ms-degree", "ms-printed", "ms-model-hash"
    }  # fmt: skip
    assert claims["ms-polynomial"]
    measured, hashed = (list(report.series[k].y) for k in (0, 4))
    assert measured == sorted(measured)
    assert all(n > 3 * h for n, h in zip(measured, hashed, strict=True))


@pytest.mark.slow
def test_fig11_only_moving_state_feels_the_rate() -> None:
    report = _run("cape/fig11", {"points": "2", "repeats": "6", "tracks": "1", "slices": "15"})
    claims = _claims(report)
    assert claims["ms-grows"]
    assert report.series[0].x == pytest.approx([1000 / 60, 50.0])


@pytest.mark.slow
def test_fig12_crosses(tmp_path: Path) -> None:
    report = _run("cape/fig12", CROSSING)
    claims = _claims(report)
    assert claims["crossing-nested-loop"]
    assert claims["taken-over-nested-loop"] and claims["taken-over-hash"]
    assert report.plot(tmp_path).stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize("number", [13, 14])
def test_low_configuration(number: int) -> None:
    report = _run(f"cape/fig{number}", {"seconds": "16", "start": "6", "slices": "12"})
    assert report.holds, [c for c in report.claims if not c.holds]
    assert report.marks[0].label == "migration starts"


@pytest.mark.slow
@pytest.mark.parametrize("number", [15, 16])
def test_high_configuration(number: int, tmp_path: Path) -> None:
    report = _run(f"cape/fig{number}", {"seconds": "20", "start": "6", "slices": "10"})
    claims = _claims(report)
    assert claims["overload"]
    if number == 16:
        assert claims["results"] and claims["goes-on"] and claims["taken-over"]
        results = {system["results"] for system in report.systems.values()}
        assert len(results) == 1
    assert report.plot(tmp_path).stat().st_size > 5000


def test_every_figure_is_listed() -> None:
    names = [name for name in registry.names() if name.startswith("cape/")]
    assert names == sorted(f"cape/fig{n}" for n in range(9, 17))
    assert all(len(registry.describe(name)) > 20 for name in names)
