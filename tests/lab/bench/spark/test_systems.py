"""What is made of what a system says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from plait.errors import PlaitError
from plait_lab.bench.spark import systems
from plait_lab.bench.spark.systems import Machine, SystemOutcome, chosen_systems, run_flink
from plait_lab.workloads.files import Workload

WORKLOAD = Workload((("k",),) * 3, 1_000_000, 300, 10, batches=3)


def batch(seconds: float, results: int = 1) -> dict[str, Any]:
    durations = {"triggerExecution": round(seconds * 1000)}
    return {"durations": durations, "results": results, "checksum": 5, "reports": []}


def test_steady_state_begins_with_the_third_batch() -> None:
    outcome = SystemOutcome(
        "plait", [batch(9), batch(3), batch(1), batch(2), batch(1)], 16.0, 5, 25
    )
    assert outcome.steady == 1
    assert not outcome.bounded
    figures = outcome.figures(WORKLOAD)
    assert figures["first_batch_s"] == 9
    assert figures["steady_batch_s"] == {"median": 1, "min": 1, "max": 2, "runs": 3}
    assert figures["steady_rows_per_s"] == 300


def test_one_that_is_over_its_limit_gives_a_lower_bound() -> None:
    over = SystemOutcome("native-rocksdb", [batch(9)], 100.0, None, None, over=True, waiting=80.0)
    assert over.steady == 80
    assert over.bounded
    figures = over.figures(WORKLOAD)
    assert figures["ended"] == "after 1 batches, over 100 s"
    assert figures["steady_batch_s_over"] == 80
    assert "steady_batch_s" not in figures
    later = SystemOutcome(
        "native-rocksdb", [batch(9), batch(9), batch(7)], 100.0, None, None, over=True, waiting=1
    )
    assert later.steady == 7
    assert not later.bounded


def test_systems_by_name() -> None:
    assert chosen_systems("native-hdfs, plait") == ("native-hdfs", "plait")
    with pytest.raises(PlaitError, match="there is no system 'flunk'; did you mean 'flink'"):
        chosen_systems("plait,flunk")


def test_without_flink_the_report_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(systems, "flink_python", lambda: None)
    machine = Machine(1, "1g", 10.0)
    outcome = run_flink("flink", WORKLOAD, tmp_path, tmp_path / "x", machine, lambda _: None)
    assert "./dev setup --peers" in outcome.figures(WORKLOAD)["not_run"]
