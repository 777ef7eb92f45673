"""Each file of a checkpoint and of its control directory, damaged in every way.

A query is run for three batches and stopped. For every case its checkpoint is copied, one file of
the copy is damaged, and the query is started again with one more batch to do. Then one of these
must hold; never may results be lost or repeated:

    refused     to_df(checkpoint=...) raises one of Plait's errors; and without `checkpoint`, one of
                the following holds, but for `UNTOLD`
    explained   Spark fails, and Running.why says in a sentence what is damaged, and what to do
    harmless    the results are exact

A sample of the cases is run, by default ten. `PLAIT_DAMAGES=all` runs all of them, `PLAIT_SEED=x`
chooses others. Checksums of files are those that Hadoop keeps on a local disk; a store without
them, where a bit of a log flips unnoticed, is beyond what a query can find out.
"""

from __future__ import annotations

import os
import random
import shutil
import struct
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from tests.spark.test_checkpoints import answer, question

import plait
from plait.api.join import Join
from plait.errors import CheckpointDamaged, CheckpointMismatch, MissingRequirement, PlaitError
from plait.plan.jtree import parse_shape
from plait.spark.control.directory import Control
from plait.testing.oracle.answer import Result, multiset

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

FILES = {
    "metadata": "metadata",
    "offsets": "offsets/2",
    "offsets before": "offsets/1",
    "commit": "commits/2",
    "commit before": "commits/1",
    "source log": "sources/0/2",
    "source log before": "sources/1/1",
    "operator": "state/0/_metadata/v2/0",
    "schema": "state/0/_stateSchema/default/[0-9]*",
    "changelog": "state/0/0/3.changelog",
    "changelog before": "state/0/1/2.changelog",
    "changelog unused": "state/0/0/1.changelog",
    "snapshot": "state/0/0/1.zip",
    "table": "state/0/1/SSTs/[0-9]*.sst",
    "epoch": "plait/join/epochs/000001.json",
    "report": "plait/join/reports/*/2-0.json",
    "events": "plait/join/events/0.jsonl",
}
NEXT = {
    "offsets": "3", "commit": "3", "source log": "3", "changelog": "4.changelog",
    "snapshot": "2.zip", "epoch": "000002.json", "report": "3-0.json",
}  # fmt: skip
"""As what a file is duplicated; others get a name that means nothing."""


def truncated(path: Path, other: Path, kind: str) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flipped(path: Path, other: Path, kind: str) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0x10
    path.write_bytes(content)


def deleted(path: Path, other: Path, kind: str) -> None:
    path.unlink()


def duplicated(path: Path, other: Path, kind: str) -> None:
    copy(path, path.parent / NEXT.get(kind, f"{path.name}~"))


def foreign(path: Path, other: Path, kind: str) -> None:
    """The same file of another query, with the same sources and another window."""
    copy(found(other, kind), path)


def replaced(path: Path, other: Path, kind: str) -> None:
    """By the file before it, as when a disk brings an old block back; its checksum is right."""
    before = [p for p in path.parent.iterdir() if p.is_file() and p.suffix == path.suffix]
    copy(min(p for p in before if not p.name.startswith(".")), path)


def versioned(path: Path, other: Path, kind: str) -> None:
    content = path.read_bytes()
    for old, new in ((b"v1\n", b"v9\n"), (b"v2\n", b"v9\n"), (b'{"number"', b'{"v9": 0, "number"')):
        content = content.replace(old, new, 1)
    path.write_bytes(content.replace(b'{"processor"', b'{"v9": 0, "processor"', 1))
    seal(path)


PRECEDED = ("offsets", "commit", "source log", "changelog", "changelog before", "report")
"""Files that can be replaced by the one before."""

UNTOLD = ("offsets replaced", "source log replaced", "source log duplicated")
"""A log of Spark that is whole and yet an old one: Spark goes on from there, and reads files again.
Where `to_df` is told the checkpoint, it is refused; nobody else could notice."""

DAMAGES: tuple[Callable[[Path, Path, str], None], ...] = (
    truncated, flipped, deleted, duplicated, foreign, replaced, versioned,
)  # fmt: skip
BINARY = ("schema", "changelog", "changelog before", "changelog unused", "snapshot", "table")


class Case(NamedTuple):
    """One file, damaged in one way."""

    kind: str
    damage: Callable[[Path, Path, str], None]

    def __str__(self) -> str:
        return f"{self.kind} {self.damage.__name__}"


def chosen() -> list[Case]:
    """The cases to run: a sample, or all."""
    everything = [
        Case(kind, damage)
        for kind in FILES
        for damage in DAMAGES
        if not (damage is versioned and (kind in BINARY or kind in ("metadata", "events")))
        and (damage is not replaced or kind in PRECEDED)
    ]
    wanted = os.environ.get("PLAIT_DAMAGES", "10")
    if wanted == "all":
        return everything
    return random.Random(os.environ.get("PLAIT_SEED", "1")).sample(everything, int(wanted))


class Whole(NamedTuple):
    """The stopped query."""

    where: Path
    checkpoint: Path
    other: Path
    results: dict[int, Counter[Result]]


@pytest.fixture(scope="module")
def whole(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    where = tmp_path_factory.mktemp("corruption")
    asked = question(spark, where, 3)
    checkpoint, other = where / "whole", where / "other"
    results = run(asked, checkpoint, str(checkpoint))[0]
    run(asked.within("3 seconds"), other, str(other))
    for place in (checkpoint, other):
        control = Control.of(str(place), None, "run", "local[2]")
        control.epochs.add(parse_shape(asked.query, "(left right)"), "auto")
    return Whole(where, checkpoint, other, results)


@pytest.mark.parametrize("case", chosen(), ids=str)
def test_oracle_damage_is_named_or_harmless(spark: SparkSession, whole: Whole, case: Case) -> None:
    place = whole.where / str(case).replace(" ", "-")
    moved(whole.checkpoint, place)
    case.damage(found(place, case.kind), whole.other, case.kind)
    asked = question(spark, whole.where, 4)
    verdict = judged(asked, place, whole, checkpoint=str(place))
    if verdict.startswith("refused") and str(case) not in UNTOLD:
        verdict += "; untold: " + judged(asked, place, whole, checkpoint=None)
    print(f"{case}: {verdict.replace(str(whole.where), '')}")
    shutil.rmtree(place)


def judged(asked: Join, place: Path, whole: Whole, checkpoint: str | None) -> str:
    """What became of a restart; fails if that is none of what may be."""
    try:
        results, query = run(asked, place, checkpoint)
    except PlaitError as error:
        assert checkpoint is not None and error.remedy and str(place) in str(error)
        return f"refused: {error.message}"
    except Exception as error:
        cause = plait.spark.why(error, str(place))
        assert cause is not None, f"Spark failed and nobody knows why: {error}"
        assert isinstance(cause, CheckpointDamaged | CheckpointMismatch) and ";" in str(cause)
        return f"explained: {cause}"
    every = sum({**whole.results, **results}.values(), Counter[Result]())
    expected = answer(asked, 4)
    assert every == expected, f"lost {expected - every}, repeated {every - expected}"
    notes = plait.attach(query).progress().notes
    return "harmless" + "".join(f"; {note}" for _, note in notes[-1:])


def run(
    asked: Join, place: Path, checkpoint: str | None, patience: int = 9
) -> tuple[dict[int, Counter[Result]], StreamingQuery]:
    """Results by batch: one that is repeated replaces what it gave before, as in any sink.

    If Spark's Python workers do not start within its ten seconds, the query is started again.
    """
    results: dict[int, Counter[Result]] = {}

    def collect(rows: Any, batch: int) -> None:
        results[batch] = multiset(rows.toArrow().cast(asked.query.schema))

    while True:
        writer = asked.to_df(checkpoint=checkpoint).writeStream.foreachBatch(collect)
        writer = writer.option("checkpointLocation", str(place)).trigger(availableNow=True)
        query = writer.start()
        try:
            assert query.awaitTermination(600), "it hangs"
        except StreamingQueryException as error:
            patience -= 1
            if patience < 0 or not isinstance(
                plait.spark.why(error, str(place)), MissingRequirement
            ):
                raise
        else:
            return results, query
        finally:
            query.stop()


def found(place: Path, kind: str) -> Path:
    """The file of a kind."""
    return next(iter(sorted(place.glob(FILES[kind]))))


def copy(origin: Path, to: Path) -> None:
    """Copy a file with its checksum."""
    shutil.copy(origin, to)
    sums = origin.parent / f".{origin.name}.crc"
    if sums.exists():
        shutil.copy(sums, to.parent / f".{to.name}.crc")


def moved(origin: Path, to: Path) -> None:
    """A copy of a checkpoint that refers to itself."""
    shutil.copytree(origin, to)
    for path in to.glob("state/*/_metadata/*/[0-9]*"):
        path.write_bytes(path.read_bytes().replace(str(origin).encode(), str(to).encode()))
        seal(path)


def seal(path: Path) -> None:
    """Make the checksum of a file right again, if it has one."""
    sums = path.parent / f".{path.name}.crc"
    if sums.exists():
        content = path.read_bytes()
        parts = [zlib.crc32(content[at : at + 512]) for at in range(0, len(content), 512)]
        sums.write_bytes(b"crc\0" + struct.pack(f">i{len(parts)}I", 512, *parts))
