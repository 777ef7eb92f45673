"""Ratios and claims from what the systems did; the systems themselves are stood in for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plait_lab.bench.spark import peers
from plait_lab.bench.spark.systems import Machine, SystemOutcome, reference
from plait_lab.reporting.report import Note
from plait_lab.workloads.files import Workload

SMALL = {"rows": 200, "keys": 20}


def stand_in(
    steady: dict[str, float], *, wrong: str = "", over: str = "", missing: str = ""
) -> Callable[..., SystemOutcome]:
    """Systems whose steady batches take given seconds."""

    def run(
        system: str, workload: Workload, files: Path, scratch: Path, machine: Machine, note: Note
    ) -> SystemOutcome:
        assert machine.limit > 0
        if system == missing:
            return SystemOutcome(system, [], 0.0, None, None, missing="not here")
        if system == over:
            return SystemOutcome(system, [], 99.0, None, None, over=True, waiting=steady[system])
        count, checksum, _ = reference(workload, files, 1)
        durations = {"triggerExecution": round(steady[system] * 1000)}
        checksum += system == wrong
        each: dict[str, Any] = {
            "durations": durations,
            "reports": [],
            "results": count,
            "checksum": checksum,
        }
        return SystemOutcome(system, [each] * workload.batches, 9.0, count, checksum)

    return run


def measured(
    monkeypatch: pytest.MonkeyPatch, steady: dict[str, float], batches: int = 4, **others: str
) -> dict[str, Any]:
    monkeypatch.setattr(peers, "run_spark", stand_in(steady, **others))
    options = peers.OutputOptions(
        **SMALL, batches=batches, fewer_batches=3, systems=",".join(steady)
    )
    report = peers.output(options, lambda _: None).to_dict()
    report["verdicts"] = {claim["id"]: claim["holds"] for claim in report["claims"]}
    return report


@pytest.mark.slow
def test_floors_are_checked_in_both_batch_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    steady = {"plait": 1.0, "native-hdfs": 8.0, "native-rocksdb": 19.0}
    report = measured(monkeypatch, steady)
    assert report["ratios"]["native-hdfs / plait, steady batch, 4 batches"] == 8
    assert report["verdicts"] == {
        "native-hdfs-4-batches": True,
        "native-rocksdb-4-batches": False,
        "results-4-batches": True,
        "checksum-4-batches": True,
        "batches-4-batches": True,
        "native-hdfs-3-batches": False,
        "results-3-batches": True,
        "checksum-3-batches": True,
        "batches-3-batches": True,
    }


@pytest.mark.slow
def test_a_wrong_result_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(monkeypatch, {"plait": 1.0, "native-hdfs": 8.0}, wrong="native-hdfs")
    assert report["verdicts"]["results-4-batches"]
    assert not report["verdicts"]["checksum-4-batches"]
    assert not report["verdicts"]["batches-4-batches"]


@pytest.mark.slow
def test_a_peer_over_its_limit_bounds_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(monkeypatch, {"plait": 1.0, "native-hdfs": 50.0}, over="native-hdfs")
    assert report["ratios"]["at least native-hdfs / plait, steady batch, 4 batches"] == 50
    assert report["verdicts"]["native-hdfs-4-batches"]
    assert report["verdicts"]["checksum-4-batches"], "those that ended agree"


def test_where_nobody_ended_nothing_is_proved(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(monkeypatch, {"native-hdfs": 50.0}, over="native-hdfs")
    assert not report["verdicts"]["checksum-4-batches"]


@pytest.mark.slow
def test_a_peer_that_failed_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(monkeypatch, {"plait": 1.0, "native-hdfs": 50.0}, missing="native-hdfs")
    assert not report["verdicts"]["native-hdfs-4-batches"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("bench", "kind"),
    [
        (peers.ingest, peers.IngestOptions),
        (peers.tiny, peers.TinyOptions),
        (peers.chain, peers.ChainOptions),
    ],
)
def test_the_others_have_their_floors_too(
    bench: Callable[..., Any], kind: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peers, "run_spark", stand_in({"plait": 1.0, "native-hdfs": 5.0}))
    options = kind(**SMALL, batches=3, systems="plait,native-hdfs")
    report = bench(options, lambda _: None)
    assert [c.id for c in report.claims if "native" in c.id] == ["native-hdfs-3-batches"]
    assert report.holds
