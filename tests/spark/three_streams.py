"""Three streams of small files, and what DuckDB says that their join is."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from random import Random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000

Rows = dict[str, list[tuple[int, int]]]
"""By stream: times in microseconds, and keys."""


def write_streams(folder: Path, batches: range, seed: int) -> Rows:
    """A file of each stream for each batch; times ascend, so nothing is late."""
    chance, found = Random(seed), Rows()
    for name in ("a", "b", "c"):
        found[name] = []
        for batch in batches:
            rows = sorted(
                (batch * 10 * SECOND + chance.randrange(10 * SECOND), chance.randrange(4))
                for _ in range(20)
            )
            found[name] += rows
            path = folder / name / f"{batch}.parquet"
            write_stream(path, rows)
            os.utime(path, (1_700_000_000 + batch, 1_700_000_000 + batch))
    return found


def write_stream(path: Path, rows: Sequence[tuple[int, int]]) -> None:
    """A file of one stream."""
    path.parent.mkdir(parents=True, exist_ok=True)
    times = pa.array([ts for ts, _ in rows], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times, "k": [k for _, k in rows]}), path)


def joined(*parts: Rows) -> Counter[tuple[int, ...]]:
    """The join within five seconds, by DuckDB: time and key of a, times of b and c."""
    with duckdb.connect() as connection:
        for name in ("a", "b", "c"):
            connection.execute(f"CREATE TABLE {name} (ts BIGINT, k BIGINT)")
            for rows in parts:
                connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", rows[name])
        pairs = (("a", "b"), ("a", "c"), ("b", "c"))
        near = " AND ".join(f"abs({x}.ts - {y}.ts) <= {5 * SECOND}" for x, y in pairs)
        found = connection.execute(
            f"SELECT a.ts, a.k, b.ts, c.ts FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND {near}"
        )
        return Counter(found.fetchall())


def results_of(table: pa.Table) -> Counter[tuple[int, ...]]:
    """The rows of a table with these results, whose times may have any unit."""
    found = dict[str, list[int]]()
    for name in ("ts", "k", "bts", "cts"):
        column = table[name]
        if name != "k":
            column = column.cast(pa.timestamp("us", column.type.tz))
        found[name] = column.cast(pa.int64()).to_pylist()
    return Counter(zip(*found.values(), strict=True))
