"""Batches are what Spark's logs say: a driver that died may have merged the files of two."""

from __future__ import annotations

import json
from pathlib import Path

from plait_lab.torture.spark.as_read import batches_as_read
from plait_lab.torture.spark.data import Batch

BATCHES: list[Batch] = [{"a": [{"id": n}], "b": [{"id": 10 + n}]} for n in range(4)]


def write_logs(checkpoint: Path, offsets: list[tuple[int, int]], entries: int = 4) -> None:
    """Write the logs of two sources, an entry per batch of the round, and of the offsets."""
    for source, name in enumerate("ab"):
        folder = checkpoint / "sources" / str(source)
        folder.mkdir(parents=True)
        for entry in range(entries):
            path = f"file:///round/in/{name}/kept=1/{entry}-0.parquet"
            line = json.dumps({"path": path, "timestamp": entry, "batchId": entry})
            (folder / str(entry)).write_text(f"v1\n{line}")
    (checkpoint / "offsets").mkdir()
    for number, ends in enumerate(offsets):
        lines = "\n".join("-" if end < 0 else json.dumps({"logOffset": end}) for end in ends)
        (checkpoint / "offsets" / str(number)).write_text(f"v1\n{{}}\n{lines}")


def ids(batches: list[Batch]) -> list[dict[str, list[object]]]:
    return [{name: [row["id"] for row in rows] for name, rows in b.items()} for b in batches]


def test_batches_are_those_of_the_round_where_nobody_died(tmp_path: Path) -> None:
    write_logs(tmp_path, [(0, 0), (1, 1), (2, 2), (3, 3)])
    assert batches_as_read(tmp_path, "ab", BATCHES) == (BATCHES, [0, 1, 2, 3])


def test_files_that_were_logged_without_a_batch_are_in_the_next_one(tmp_path: Path) -> None:
    write_logs(tmp_path, [(0, 0), (2, 1), (3, 2), (3, 3)])
    found, places = batches_as_read(tmp_path, "ab", BATCHES)
    assert ids(found) == [
        {"a": [0], "b": [10]},
        {"a": [1, 2], "b": [11]},
        {"a": [3], "b": [12]},
        {"a": [], "b": [13]},
    ]
    assert places == [0, 1, 1, 2]


def test_a_source_may_have_had_nothing_yet_and_a_batch_may_have_none(tmp_path: Path) -> None:
    write_logs(tmp_path, [(-1, 0), (0, 0), (0, 0), (3, 3)])
    found, places = batches_as_read(tmp_path, "ab", BATCHES)
    assert ids(found) == [
        {"a": [], "b": [10]},
        {"a": [0], "b": []},
        {"a": [], "b": []},
        {"a": [1, 2, 3], "b": [11, 12, 13]},
    ]
    assert places == [0, 3, 3, 3]


def test_what_was_there_before_the_round_stays(tmp_path: Path) -> None:
    write_logs(tmp_path, [(0, 0), (1, 1), (3, 2), (3, 3)])
    found, _ = batches_as_read(tmp_path, "ab", BATCHES, seen=2)
    assert found[:2] == BATCHES[:2] and ids(found[2:]) == [
        {"a": [2, 3], "b": [12]},
        {"a": [], "b": [13]},
    ]


def test_without_logs_batches_are_as_they_were_written(tmp_path: Path) -> None:
    assert batches_as_read(tmp_path, "ab", BATCHES) == (BATCHES, [0, 1, 2, 3])
