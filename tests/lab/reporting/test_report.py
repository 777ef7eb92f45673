"""Reports as data: the fields, claims that are computed, JSON that any reader takes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from plait_lab.reporting.comparisons import Smaller
from plait_lab.reporting.report import (
    Report,
    Series,
    at_most,
    by_paper,
    by_project,
    environment,
    equal,
    ratio_spread,
    spread,
)

CLAIM = {"id", "measured", "value", "bound", "holds", "origin", "verdict"}


def example(seed: str = "") -> Report:
    report = Report("cape/fig9", {"rows": 3}, seed=seed)
    report.series.append(Series("plait", (1, 2), (0.5, 0.25), "s", "streams"))
    report.claims.append(at_most("fast", "no slower", 0.5, 1.0))
    report.systems["plait"] = {"seconds": 0.5, "steady_rows_per_s": 6.0, "results": 2}
    report.ratios["plait/peer"] = spread([1.0])
    return report


def test_a_report_has_the_fields_of_the_design() -> None:
    data = example().to_dict()
    assert set(data) == {
        "name", "seed", "runtime", "parameters", "series", "claims", "systems", "ratios",
        "environment",
    }  # fmt: skip
    assert (data["name"], data["runtime"], data["parameters"]) == (
        "cape/fig9",
        "local",
        {"rows": 3},
    )
    assert data["series"] == [
        {"label": "plait", "x": [1, 2], "y": [0.5, 0.25], "unit": "s", "x_unit": "streams"}
    ]
    (claim,) = data["claims"]
    assert set(claim) == CLAIM | {"claim"}


def test_a_claim_says_whose_it_is() -> None:
    report = example(seed="000")
    report.claims.append(
        by_paper("less", "section 6.3", "less", Smaller([2.0], [1.0]), "it is more", theirs="half")
    )
    ours, theirs = report.to_dict()["claims"]
    assert (ours["origin"], ours["claim"], ours["verdict"]) == (
        "project",
        "no slower",
        "reproduced",
    )
    assert set(theirs) == CLAIM | {"paper", "place", "theirs", "why"}
    assert (theirs["origin"], theirs["paper"], theirs["place"]) == ("paper", "less", "section 6.3")
    assert (theirs["verdict"], theirs["holds"], theirs["why"]) == (
        "contradicted",
        False,
        "it is more",
    )


def test_a_contradicted_paper_is_counted_and_a_contradicted_project_fails() -> None:
    report = Report("cape/fig15", {}, seed="000")
    report.claims = [by_paper("a", "section 6", "less", Smaller([2.0], [1.0]), "why")]
    assert [c.id for c in report.contradicted()] == ["a"]
    verdicts = [report.holds]
    report.claims.append(by_project("b", "less", Smaller([2.0], [1.0])))
    verdicts.append(report.holds)
    assert verdicts == [True, False]
    assert len(report.contradicted()) == 1
    agreed = by_paper("c", "section 6", "less", Smaller([1.0], [2.0]), "why")
    assert "why" not in agreed.to_dict(), "nothing to explain"


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "report.json"
    example().write_json(path)
    assert json.loads(path.read_text()) == example().to_dict()
    example(seed="001").write_json(path)
    assert json.loads(path.read_text())["seed"] == "001", "an older file is replaced"


def test_the_environment_says_what_matters_and_not_who() -> None:
    found = environment()
    assert set(found) == {"python", "machine", "processor", "cores", "versions"}
    assert {"numba", "numpy", "pyarrow"} <= set(found["versions"])
    assert str(Path.home()) not in json.dumps(found)


@pytest.mark.parametrize(
    ("value", "limit", "holds"),
    [(0.5, 1.0, True), (1.0, 1.0, True), (1.01, 1.0, False), (float("nan"), 1.0, False)],
)
def test_a_claim_holds_when_the_measurement_says_so(
    value: float, limit: float, holds: bool
) -> None:
    claim = at_most("id", "claim", value, limit, "bytes")
    assert claim.holds is holds
    assert claim.bound == "at most 1"
    assert claim.measured.endswith(" bytes")


def test_systems_that_agree_and_systems_that_do_not() -> None:
    agreeing = equal("id", "claim", [(1, 2), (1, 2)])
    assert (agreeing.measured, agreeing.value, agreeing.holds) == ("(1, 2)", 1.0, True)
    differing = equal("id", "claim", [7, 7, 8])
    assert not differing.holds
    assert differing.measured == "7, 8"
    assert not equal("id", "claim", []).holds, "nobody found anything"


def test_a_report_holds_when_all_its_claims_do() -> None:
    report, verdicts = example(), []
    for value in (1.0, 2.0, 0.5):
        report.claims.append(at_most("more", "claim", value, 1.0))
        verdicts.append(report.holds)
    assert verdicts == [True, False, False]
    assert [c["holds"] for c in report.to_dict()["claims"]] == [True, True, False, True]


def test_the_spread_of_repeated_runs() -> None:
    assert spread([4.0, 1.0, 2.0, 3.0]) == {"median": 2.5, "min": 1.0, "max": 4.0, "runs": 4}
    assert ratio_spread([2.0, 9.0], [1.0, 3.0]) == spread([2.0, 3.0])
    with pytest.raises(ValueError, match=r"zip\(\)"):
        ratio_spread([1.0], [1.0, 2.0])
