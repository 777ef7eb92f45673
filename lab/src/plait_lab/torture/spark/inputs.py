"""The files that the streams of a round on Spark are read from.

A batch of a stream is one Parquet file; or it is several, in folders of which Spark prunes some by
a condition on their names (`KEPT`), so that there are batches without any partition, with several
files for one stream and none for another. The files of a later phase wait in a folder of their own
until the query is about to be started for it:

    in/STREAM/kept=1/7-0.parquet       a file with rows, or with none
    in/STREAM/kept=0/7-1.parquet       a file that no batch reads
    later/2/STREAM/kept=1/...          the files of phase 2
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from plait.query.query import Stream
from plait_lab.torture.spark.data import Batch, Row

KEPT = "kept"
"""The column that the names of the folders make; rows are read where it is 1."""

_BEGIN = 1_700_000_000
"""When the first file was written: Spark reads files in the order of their times."""


def stream_table(stream: Stream, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=stream.schema)


def write_inputs(
    folder: Path, streams: Sequence[Stream], batches: Sequence[Batch], files: int, begins: set[int]
) -> int:
    """Write all files of a round; how many batches have files and none that is read.

    `files` is how many of a stream a batch takes, 0 for one of which nothing is pruned. Phases
    begin at the batches in `begins`.
    """
    phase = empty = 0
    for stream in streams:
        (folder / "in" / stream.name).mkdir(parents=True)
    ends = _ends(batches, begins)
    for number, batch in enumerate(batches):
        phase += number in begins
        root = folder / (f"later/{phase}" if phase else "in")
        read = False
        for s, stream in enumerate(streams):
            rows = batch.get(stream.name, ())
            if not files:
                _write(root / stream.name / f"{number}.parquet", stream, rows, number)
                continue
            chance = Random(f"{folder.name} {number} {stream.name}")
            if s and number >= ends[stream.name, phase] and chance.random() < 0.7:
                continue  # it is the last one, or Spark would take the next file for it
            for part, (kept, some) in enumerate(_parts(rows, files, chance)):
                read |= kept
                place = root / stream.name / f"{KEPT}={int(kept)}" / f"{number}-{part}.parquet"
                _write(place, stream, some, number * files + part)
        empty += bool(files) and not read
    return empty


def _ends(batches: Sequence[Batch], begins: set[int]) -> dict[tuple[str, int], int]:
    """For each stream and phase, the batch from which on no rows come in it."""
    found: dict[tuple[str, int], int] = {}
    phase = 0
    for number, batch in enumerate(batches):
        phase += number in begins
        for name, rows in batch.items():
            found.setdefault((name, phase), number)
            if rows:
                found[name, phase] = number + 1
    return found


def _parts(rows: Sequence[Row], files: int, chance: Random) -> Iterator[tuple[bool, Sequence[Row]]]:
    """Whether each file of a batch is read, and its rows; those that are not have rows, too."""
    decoy = rows[:1]
    cuts = sorted(chance.randint(0, len(rows)) for _ in range(files - 1))
    for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
        some = rows[begin:end]
        yield (True, some) if some or chance.random() < 0.03 else (False, decoy)


def _write(path: Path, stream: Stream, rows: Sequence[Row], order: int) -> None:
    """Write a file in one step and with its final time."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{path.name}")
    pq.write_table(stream_table(stream, rows), new)
    os.utime(new, (_BEGIN + order, _BEGIN + order))
    new.rename(path)


def release(folder: Path, phase: int) -> None:
    """Let the files of a phase come; again, if somebody died in the middle."""
    later = folder / "later" / str(phase)
    for path in sorted(later.rglob("*.parquet")):
        target = folder / "in" / path.relative_to(later)
        target.parent.mkdir(parents=True, exist_ok=True)
        path.rename(target)
