"""Checkpoints of earlier versions, with the query and the rows that they were written for.

`checkpoints/format-N` is the checkpoint of the query below after two batches, in format N of
Plait's state. Spark writes absolute paths into some of its text files; here they begin with a
placeholder.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa

from plait.query.bounds import global_window
from plait.query.expr import Call, Column
from plait.query.query import Field, Output, Query, Stream, make_query

CHECKPOINTS = {path.name: path for path in sorted(Path(__file__).parent.glob("checkpoints/*"))}
"""The folder of each checkpoint, by the name of its format."""

CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
"""The checkpoints are small because they are logs of changes: this must be on to go on so."""

WRITTEN = 2
"""How many batches a checkpoint has seen."""

PROCESSORS = 2

_PLACE = "/PLACE"
_SECOND = 1_000_000


def golden_query() -> Query:
    """The query of the checkpoints."""
    fields = (
        Field("ts", pa.timestamp("us", tz="UTC")),
        Field("sym", pa.string()),
        Field("price", pa.float64()),
    )
    return make_query(
        [Stream(name, fields, "ts", 2 * _SECOND) for name in ("left", "right")],
        [Call("eq", (Column("left", "sym"), Column("right", "sym")))],
        global_window(2, 8 * _SECOND),
        [
            *(Output(name, Column("left", name)) for name in ("ts", "sym", "price")),
            Output("other", Column("right", "price")),
        ],
    )


def golden_rows(stream: int, batch: int) -> list[dict[str, object]]:
    """Nine rows of a stream; one of them is a batch late, one has no symbol."""
    seconds = [10 * batch + i for i in range(8)] + [10 * batch - 9]
    symbols = [None if i == 5 else "ABC"[(i + stream) % 3] for i in range(9)]
    return [
        {"ts": s * _SECOND, "sym": sym, "price": batch + i / 4}
        for i, (s, sym) in enumerate(zip(seconds, symbols, strict=True))
    ]


def unpack(checkpoint: Path, to: Path, inputs: Path) -> None:
    """Copy a golden checkpoint, for a query that reads the folders of its streams in `inputs`."""
    _copy(checkpoint, to, {f"{_PLACE}/checkpoint": str(to), _PLACE: str(inputs)})


def pack(checkpoint: Path, to: Path, inputs: Path) -> None:
    """Make a golden checkpoint of one that was written here."""
    _copy(checkpoint, to, {str(checkpoint): f"{_PLACE}/checkpoint", str(inputs): _PLACE})


def _copy(origin: Path, to: Path, paths: Mapping[str, str]) -> None:
    """Copy all but Hadoop's checksums; in texts, replace the paths."""
    for path in sorted(p for p in origin.rglob("*") if p.is_file() and p.suffix != ".crc"):
        content = path.read_bytes()
        if path.name.isdigit() and content.startswith(b"v"):
            for old, new in paths.items():
                content = content.replace(old.encode(), new.encode())
        target = to / path.relative_to(origin)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
