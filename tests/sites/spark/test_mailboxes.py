"""The reports in a mailbox, by the log of Spark's file sink."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import SourceError
from plait.sites.spark.mailboxes import ReportReader, described, is_mailbox, logged


def write_batch(
    mail: Path, batch: int, reports: list[dict[str, object]], *, name: str = ""
) -> None:
    """What Spark's file sink writes in a batch with these reports."""
    box, log = mail / "box=reports", mail / "_spark_metadata"
    box.mkdir(parents=True, exist_ok=True)
    log.mkdir(exist_ok=True)
    path = box / f"part-{batch}.parquet"
    bodies = [json.dumps(report).encode() for report in reports]
    pq.write_table(pa.table({"body": pa.array(bodies, pa.binary())}), path)
    entry = {"path": f"file:///elsewhere/mail/all/box%3Dreports/{path.name}", "action": "add"}
    (log / (name or str(batch))).write_text("v1\n" + json.dumps(entry))


def test_reports_are_read_once_each(tmp_path: Path) -> None:
    mail = tmp_path / "mail" / "all"
    write_batch(mail, 0, [{"site": "oslo", "step": 1}])
    reader = ReportReader(tmp_path)
    assert [report["step"] for report in reader.new()] == [1]
    write_batch(mail, 1, [{"site": "oslo", "step": 2}, {"site": "rome", "step": 1}])
    assert len(reader.new()) == 2
    assert not reader.new()


def test_only_files_in_the_log_count(tmp_path: Path) -> None:
    mail = tmp_path / "mail" / "all"
    write_batch(mail, 0, [{"step": 1}])
    write_batch(mail, 1, [{"step": 2}])
    (mail / "_spark_metadata" / "1").unlink()
    assert [path.name for path in logged(mail)] == ["part-0.parquet"]


def test_a_compacted_log_stands_for_all_before_it(tmp_path: Path) -> None:
    mail = tmp_path / "mail" / "all"
    write_batch(mail, 0, [{"step": 1}])
    write_batch(mail, 9, [{"step": 2}], name="9.compact")
    write_batch(mail, 10, [{"step": 3}])
    assert [path.name for path in logged(mail)] == ["part-9.parquet", "part-10.parquet"]


def test_what_is_no_mailbox_is_named(tmp_path: Path) -> None:
    assert not is_mailbox(tmp_path)
    with pytest.raises(SourceError, match="is no mailbox of sites"):
        described(tmp_path)
