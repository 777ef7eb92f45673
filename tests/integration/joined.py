"""Three streams of (time, key), and what DuckDB finds when they are joined within 5 seconds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SECOND = 1_000_000
_WITHIN = 5 * SECOND


def write_stream(path: Path, rows: Iterable[tuple[int, int]]) -> None:
    """A file of one stream: instants in microseconds, and keys."""
    listed = list(rows)
    path.parent.mkdir(parents=True, exist_ok=True)
    times = pa.array([ts for ts, _ in listed], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"ts": times, "k": [k for _, k in listed]}), path)


def joined(rows: Mapping[str, Sequence[tuple[int, int]]]) -> Counter[tuple[int, ...]]:
    """Of the streams a, b and c: the times of all three, and the key of the first behind its time.

    >>> joined({"a": [(1, 7)], "b": [(2, 7), (3, 8)], "c": [(5_000_001, 7)]})
    Counter({(1, 7, 2, 5000001): 1})
    """
    import duckdb

    with duckdb.connect() as connection:
        for name, given in rows.items():
            connection.execute(f"CREATE TABLE {name} (ts BIGINT, k BIGINT)")
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?)", given)
        near = " AND ".join(
            f"{x}.k = {y}.k AND abs({x}.ts - {y}.ts) <= {_WITHIN}"
            for x, y in combinations("abc", 2)
        )
        found = connection.execute(f"SELECT a.ts, a.k, b.ts, c.ts FROM a, b, c WHERE {near}")
        return Counter(found.fetchall())
