"""No claim passes for reversed input: every experiment, small, with its compared series flipped."""

from __future__ import annotations

import json

import pytest

from plait_lab.experiments import registry
from plait_lab.reporting.comparisons import Falls, Smaller

_SHORT = {"seconds": "14", "start": "5", "slices": "6", "seeds": "1"}
_CLUSTER = {"machines": "3", "groups": "6", "seeds": "1", "slices": "6"}
_CHANGE = {**_CLUSTER, "window": "8", "change": "4", "windows": "4", "compared": "3", "bin": "1",
           "fast": "40", "slow": "4", "every": "2", "speed": "0.002"}  # fmt: skip
_WINDOWS = {**_CLUSTER, "shortest": "3", "longest": "6", "points": "2", "every": "2",
            "speed": "0.0005"}  # fmt: skip
_SITES = {"streams": "3", "first": "0.6", "every": "1.2", "changes": "2", "seeds": "1"}
SMALL: dict[str, dict[str, str]] = {
    "cape/fig9": {"shortest": "2", "longest": "4", "step": "1", "tracks": "1", "slices": "10"},
    "cape/fig10": {"longest": "4", "repeats": "3", "checked": "1"},
    "cape/fig11": {"points": "3", "repeats": "3", "tracks": "1", "slices": "10"},
    "cape/fig12": {"longest": "1.5", "points": "3", "start": "4", "slices": "5", "repeats": "1",
                   "slow_start": "2"},
    "cape/fig13": _SHORT,
    "cape/fig14": _SHORT,
    "cape/fig15": _SHORT,
    "cape/fig16": _SHORT,
    "dcape/fig7": _CHANGE,
    "dcape/fig8": _CHANGE,
    "dcape/fig9": _WINDOWS,
    "dcape/fig10": _WINDOWS,
    "dcape/fig11": _WINDOWS,
    "dcape/fig12": {**_WINDOWS, "most": "6"},
    "dcape/fig13": {**_CHANGE, "balance": "6"},
    "dcape/scale": {"machines": "10,30", "groups": "12", "most": "60"},
    "qualified/fig7": {"windows": "2.5", "slices": "8", "seeds": "1"},
    "qualified/fig8": {"windows": "2.5", "slices": "8", "seeds": "1"},
    "qualified/fig13a": {"most": "5", "settings": "3", "general": "1"},
    "qualified/fig13b": {"most": "4", "settings": "12"},
    "qualified/fig13c": {"most": "4", "settings": "12"},
    "qualified/fig14": {"settings": "12"},
    "sites/fig4a": _SITES,
    "sites/fig4b": _SITES,
    "sites/fig5a": _SITES,
    "sites/fig5b": _SITES,
    "teddies/fig6": {"most": "64", "decisions": "150", "repeats": "1"},
    "teddies/fig7": {"most": "16", "decisions": "2000"},
    "teddies/fig8": {"most": "128", "rows": "20", "repeats": "1"},
    "teddies/drift": {"rows": "1000", "repeats": "1", "finals": "2", "window_seconds": "1"},
}  # fmt: skip
"""Settings with which an experiment takes a moment; one that is not listed runs as it is.

`dcape/spark` takes minutes on Spark; `dcape/test_on_spark.py` reverses its runs.
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in registry.names() if name != "dcape/spark"])
def test_the_opposite_measurements_change_the_verdict(name: str) -> None:
    report = registry.run(name, SMALL.get(name, {}))
    assert report.claims
    for claim in report.claims:
        found = claim.comparison
        assert found is not None or claim.origin == "project", f"{claim.id} compares nothing"
        if found is None:
            continue
        opposite = found.reversed().verdict
        if claim.verdict == "reproduced":
            assert opposite == "contradicted", f"{claim.id} holds both ways"
        elif isinstance(found, Smaller) and found.value != 1:
            assert opposite != claim.verdict, f"{claim.id} fails both ways"
        elif isinstance(found, Falls) and found.value > 0.8:
            assert opposite == "reproduced", f"{claim.id} fails both ways"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cape/fig15", "qualified/fig8", "teddies/fig7"])
def test_a_claim_says_whose_it_is_and_why_it_differs(name: str) -> None:
    data = registry.run(name, SMALL[name]).to_dict()
    json.dumps(data, allow_nan=False)
    for claim in data["claims"]:
        assert claim["origin"] in ("paper", "project")
        assert claim["verdict"] in ("reproduced", "deviates", "contradicted")
        assert claim["holds"] is (claim["verdict"] == "reproduced")
        if claim["origin"] == "paper":
            assert claim["place"].startswith("section")
            assert claim["verdict"] == "reproduced" or len(claim["why"]) > 20
