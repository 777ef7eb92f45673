"""Which rows each batch of a round on Spark had, by the logs of its checkpoint.

A round is written so that a batch takes the next files of each stream. But Spark logs the files of
a source before it logs the offsets of the batch. A driver that dies in between leaves files that
are logged and belong to no batch; after its restart, the next batch takes them together with the
files that follow. So what a batch was is read from the logs, and not assumed.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import urlparse

from plait_lab.torture.spark.data import Batch, Row


def batches_as_read(
    checkpoint: Path, streams: Sequence[str], batches: Sequence[Batch], seen: int = 0
) -> tuple[list[Batch], list[int]]:
    """Put the rows of a round into the batches that Spark made of them.

    Return these batches, and for each batch of the round the number of the one that it is in. The
    first `seen` batches were there before the round, and stay as they are.
    """
    if not (checkpoint / "offsets").exists():
        return list(batches), list(range(len(batches)))
    found: list[Batch] = list(batches[:seen])
    places = list(range(seen))
    read = [_files(checkpoint / "sources" / str(s)) for s in range(len(streams))]
    before = [-1] * len(streams)
    for number, offsets in enumerate(_offsets(checkpoint / "offsets", len(streams))):
        if number >= seen:
            joined: dict[str, list[Row]] = {name: [] for name in streams}
            for s, (begin, end) in enumerate(zip(before, offsets, strict=True)):
                for entry in range(begin + 1, end + 1):
                    for part in sorted(read[s].get(entry, ())):
                        joined[streams[s]] += batches[part].get(streams[s], ())
                        places += [number] * (part + 1 - len(places))
            found.append(joined)
        before = offsets
    return found, places


def _offsets(folder: Path, sources: int) -> Iterator[list[int]]:
    """The last entry of each source's log that a batch took, -1 for none."""
    for name in sorted(int(path.name) for path in folder.glob("[0-9]*")):
        lines = (folder / str(name)).read_text().splitlines()[-sources:]
        yield [json.loads(line)["logOffset"] if line != "-" else -1 for line in lines]


def _files(folder: Path) -> dict[int, set[int]]:
    """The batches of the round whose files are in each entry of a source's log."""
    found: dict[int, set[int]] = {}
    for path in folder.glob("[0-9]*"):
        for line in path.read_text().splitlines()[1:]:
            entry = json.loads(line)
            name = Path(urlparse(entry["path"]).path).stem
            found.setdefault(entry["batchId"], set()).add(int(name.partition("-")[0]))
    return found
