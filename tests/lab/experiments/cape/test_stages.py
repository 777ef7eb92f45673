"""The experiments of seed 000 on short streams: that they run, and what holds even then."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from plait_lab.experiments import registry
from plait_lab.experiments.cape.nested_loops import engine_kept, recompute
from plait_lab.experiments.cape.settings import (
    FLAT,
    HIGH,
    LOW,
    NEW,
    OLD,
    migration,
    set_1,
    set_2,
    set_3,
)
from plait_lab.experiments.cape.stages import fit_error
from plait_lab.reporting.comparisons import Degree
from plait_lab.reporting.report import Report

CROSSING = {"shortest": "0.5", "longest": "1.5", "points": "3", "start": "5", "slices": "6",
            "repeats": "1", "slow_start": "2"}  # fmt: skip


def _run(name: str, options: Mapping[str, str]) -> Report:
    report = registry.run(name, options)
    assert (report.name, report.seed) == (name, "000")
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
    busy = HIGH.predicted("nested-loop")
    assert busy.old_load > 1.5 * busy.speed


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


@pytest.mark.slow
def test_oracle_nested_loops_keep_what_the_engine_recomputes() -> None:
    mine, theirs = 0, 0
    for seed in range(4):
        done = recompute(set_1(4.0), 12.0, seed)
        mine += sum(done.kept)
        theirs += sum(engine_kept(set_1(4.0), 12.0, seed))
        assert done.compared >= done.kept[0] and done.t_ms(0.5) == 2 * done.t_ms(1.0) > 0
    assert mine == pytest.approx(theirs, rel=0.3)


@pytest.mark.slow
def test_fig9_windows_and_heights() -> None:
    report = _run("cape/fig9", {"shortest": "3", "longest": "4", "step": "1", "tracks": "1"})
    assert [list(s.x) for s in report.series] == [[3.0, 4.0]] * 5
    assert _claims(report)["keeps-up"]
    tall, flat = (list(report.series[k].y) for k in (0, 1))
    assert [t / f for t, f in zip(tall, flat, strict=True)] == pytest.approx([2.0, 2.0], rel=0.2)


@pytest.mark.slow
def test_fig10_is_a_polynomial_and_nothing_else() -> None:
    report = _run("cape/fig10", {"longest": "6", "repeats": "8", "checked": "1"})
    claims = _claims(report)
    assert claims["ms-degree"] and claims["ms-form"]
    measured = list(report.series[0].y)
    assert measured == sorted(measured)


@pytest.mark.parametrize("power", [1, 5])
def test_another_form_would_not_pass_for_a_polynomial(power: int) -> None:
    """A line, or a fifth power, is told apart from W² and W³ by its degree and by its fit."""
    x = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    y = [v**power for v in x]
    assert Degree(x, y, 2, 3).verdict == "contradicted"
    form = {1: "linear", 5: "fifth power"}[power]
    assert fit_error(x, y, form) < fit_error(x, y, "polynomial")


@pytest.mark.slow
def test_fig11_only_moving_state_feels_the_rate() -> None:
    report = _run("cape/fig11", {"points": "3", "repeats": "6", "tracks": "1", "slices": "15"})
    assert _claims(report)["ms-grows"]
    assert [report.series[0].x[0], report.series[0].x[-1]] == pytest.approx([1000 / 60, 50.0])


@pytest.mark.slow
def test_fig12_runs_every_strategy(tmp_path: Path) -> None:
    report = _run("cape/fig12", CROSSING)
    claims = _claims(report)
    assert claims["small-first"] and claims["taken-over"]
    whole = report.systems["whole processor"]
    assert whole["taking"] != whole["recomputing"], "taking over is run, not inferred"
    assert report.plot(tmp_path).stat().st_size > 5000


@pytest.mark.slow
@pytest.mark.parametrize("number", [13, 14])
def test_low_configuration(number: int) -> None:
    options = {"seconds": "16", "start": "6", "slices": "12", "seeds": "1"}
    report = _run(f"cape/fig{number}", options)
    assert report.holds, [c for c in report.claims if not c.holds]
    assert report.marks[0].label == "migration starts"


@pytest.mark.slow
def test_high_configuration(tmp_path: Path) -> None:
    options = {"seconds": "20", "start": "6", "slices": "8", "seeds": "1"}
    tuples, rates = (_run(f"cape/fig{n}", options) for n in (15, 16))
    assert _claims(tuples)["overload"] and not _claims(tuples)["insufficient"]
    claims = _claims(rates)
    assert claims["results"] and claims["taken-over"] and claims["taken-over-rate"]
    silent = rates.systems["moving state, streams 1"]
    assert silent["silence"] >= silent["stages"]["move"] > 0
    assert tuples.plot(tmp_path).stat().st_size > 5000


def test_every_figure_is_listed() -> None:
    names = [name for name in registry.names() if name.startswith("cape/")]
    assert names == sorted(f"cape/fig{n}" for n in range(9, 17))
    assert all(len(registry.describe(name)) > 20 for name in names)
