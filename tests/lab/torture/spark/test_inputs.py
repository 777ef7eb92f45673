"""Files of a round on Spark: of each batch as many as it takes, some of which nobody reads."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
from tests.lab.torture.stories import story_with

from plait_lab.torture.spark.inputs import release, write_inputs
from plait_lab.torture.spark.rounds import Story


def _written(story: Story, folder: Path) -> dict[tuple[str, int], list[object]]:
    """The numbers of the rows that are read, by stream and batch, in the order of their files."""
    found: dict[tuple[str, int], list[object]] = {}
    for stream in story.round.query.streams:
        paths = sorted((folder / "in" / stream.name).rglob("*.parquet"), key=_when)
        assert len(set(map(_when, paths))) == len(paths), "Spark goes by the times of the files"
        for n, path in enumerate(paths):
            batch = int(path.name.partition("-")[0])
            assert n // story.round.files == batch, "each batch takes its own files"
            kept = path.parent.name == "kept=1"
            rows = pq.ParquetFile(path).read().column("id").to_pylist() if kept else []
            found.setdefault((stream.name, batch), []).extend(rows)
    return found


def _when(path: Path) -> float:
    return path.stat().st_mtime


def test_each_row_is_read_in_its_batch(tmp_path: Path) -> None:
    story = story_with(tmp_path, lambda s: s.round.files > 1 and not s.round.later)
    streams = story.round.query.streams
    write_inputs(tmp_path, streams, story.batches, story.round.files, set())
    found = _written(story, tmp_path)
    for number, batch in enumerate(story.batches):
        for stream in streams:
            wanted = [row["id"] for row in batch[stream.name]]
            assert found.get((stream.name, number), []) == wanted


def test_some_batches_have_nothing_to_read(tmp_path: Path) -> None:
    story = story_with(tmp_path, lambda s: any(not any(b.values()) for b in s.batches))
    streams, files = story.round.query.streams, story.round.files
    empty = write_inputs(tmp_path, streams, story.batches, files, set())
    kept = {int(p.name.partition("-")[0]) for p in tmp_path.rglob("kept=1/*.parquet")}
    every = {int(p.name.partition("-")[0]) for p in tmp_path.rglob("*.parquet")}
    assert len(every - kept) == empty > 0


def test_files_of_a_later_phase_come_when_they_are_let(tmp_path: Path) -> None:
    story = story_with(tmp_path, lambda s: len(s.round.later) == 1)
    streams, files, since = story.round.query.streams, story.round.files, story.round.later[0].since
    write_inputs(tmp_path, streams, story.batches, files, {since})

    def batches() -> set[int]:
        return {int(p.name.partition("-")[0]) for p in (tmp_path / "in").rglob("*.parquet")}

    assert max(batches()) < since
    for _ in range(2):  # again, if somebody died in the middle
        release(tmp_path, 1)
    assert max(batches()) == len(story.batches) - 1
