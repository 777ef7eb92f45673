"""What a control directory in an object store costs, in a tiny run."""

from __future__ import annotations

import pytest

from plait_lab import object_store
from plait_lab.bench.registry import run
from plait_lab.bench.spark import store


def test_without_its_set_up_it_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "missing", lambda: "moto is not installed: ./dev setup ...")
    report = run("store-overhead")
    assert report.systems == {
        "object store": {"left out": "moto is not installed: ./dev setup ..."}
    }
    assert not report.claims and not report.ratios


@pytest.mark.campaign
@pytest.mark.xdist_group("spark")
@pytest.mark.skipif(object_store.missing() is not None, reason=str(object_store.missing()))
def test_a_tiny_run_finds_the_same_results_and_counts_requests() -> None:
    report = run("store-overhead", {"rows": "2000", "batches": "5", "repeats": "1"})
    claims = {claim.id: claim for claim in report.claims}
    assert claims["results"].holds
    assert claims["overhead"].value > 0
    assert claims["requests"].value > 1, "an upload and a listing, for each processor and batch"
    without = report.systems["without a control directory, run 1"]
    assert not without["requests"], "nothing of Plait's is in the store"
