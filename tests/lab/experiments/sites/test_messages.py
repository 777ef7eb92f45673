"""Table 3 of seed 001: message counts from the state machines."""

from __future__ import annotations

import json
from random import Random

from plait_lab.experiments import registry
from plait_lab.experiments.sites.messages import central, distributed, switched


def test_table_3() -> None:
    report = registry.run("sites/table3", {"orders": "2"})
    assert (report.name, report.seed, report.runtime) == ("sites/table3", "001", "virtual")
    json.dumps(report.to_dict())
    ours = [claim for claim in report.claims if claim.origin == "project"]
    assert {claim.id: claim.holds for claim in ours} == {
        "cnu-modification": True,
        "cnu-synchronization": True,
        "dnu-growth": True,
        "dnu-more": True,
        "same-plan": True,
        "any-order": True,
    }
    assert len(report.systems) == 8
    theirs = {claim.id: claim for claim in report.claims if claim.origin == "paper"}
    assert theirs["dnu-modification-count"].theirs == "65, 561, 59, 283"
    assert all(claim.holds or claim.why for claim in theirs.values())
    row = report.systems["DNU 4-way up"]
    assert (row["paper's migration"], row["paper's synchronization"]) == (61, 44)


def test_a_change_that_affects_nobody_sends_a_report_only() -> None:
    found = central(4, 100.0, 100.0, Random(1))
    assert found.kinds == {"modification": 1}
    assert distributed(4, 100.0, 100.0, Random(1)).columns["migration"] == 0


def test_synchronization_is_between_the_affected_sites() -> None:
    assert [len(switched([f"N{n}" for n in range(k)], Random(1))) for k in (0, 1, 2, 4, 8)] == [
        0, 0, 4, 24, 112,
    ]  # fmt: skip
