"""Times from Spark's logs; what cannot be read is unknown."""

from __future__ import annotations

import os
from pathlib import Path

from plait.machine.stores import LocalStore
from plait.spark.control.spark_log import batch_times


def test_times_of_a_batch(tmp_path: Path) -> None:
    assert batch_times(LocalStore(tmp_path), 3) == (0.0, 0.0)
    for log in ("offsets", "commits"):
        (tmp_path / log).mkdir()
    (tmp_path / "offsets" / "3").write_text('v1\n{"batchTimestampMs":2500}\n{}\n')
    assert batch_times(LocalStore(tmp_path), 3) == (2.5, 0.0), "it has not ended"
    (tmp_path / "commits" / "3").write_text("v1\n{}")
    os.utime(tmp_path / "commits" / "3", (4, 4))
    assert batch_times(LocalStore(tmp_path), 3) == (2.5, 1.5)
    for broken in ("", "v1", "v1\n[]", "v1\n{}", "v1\nnull"):
        (tmp_path / "offsets" / "3").write_text(broken)
        assert batch_times(LocalStore(tmp_path), 3) == (0.0, 0.0)
