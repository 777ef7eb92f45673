"""What all systems are given: the same query, and the same files in the same order.

Each stream is a directory with one Parquet file per batch. Event times are whole milliseconds,
because Flink's are. The query is a natural join over the key columns that streams share, all
within one window; a result has each key once, and the time and value of every stream.

Results are compared by their number and by a checksum that every system can compute in SQL with
64-bit integers and without overflow: for each result, the product of its values modulo primes; and
the sum of that. It does not depend on the order of results, it counts repeated ones, and it
changes when two results exchange a partner.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from plait.query.query import Query
from plait_lab.workloads.keyed import keyed_query, keyed_tables

_MODULUS = 2_147_483_647
_PRIMES = (2_147_483_629, 2_147_483_587, 2_147_483_579, 2_147_483_563, 2_147_483_549)
EPOCH = 1_700_000_000
"""When streams begin, in seconds; not at 0, where Spark's watermarks begin and rows would be late.

Files are modified one second after the other from here: Spark reads them in this order.
"""


@dataclass(frozen=True, slots=True)
class Workload:
    """Streams that share key columns (`keys[i]` are those of stream i), and their rows."""

    keys: tuple[tuple[str, ...], ...]
    window: int
    """In microseconds."""
    rows: int
    """Rows per stream."""
    domain: int
    """Distinct values of each key."""
    batches: int
    seed: int = 1
    many_results: bool = False
    """Whether results are many more than rows; it decides how they are summed up."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(f"s{i}" for i in range(len(self.keys)))

    @property
    def total_rows(self) -> int:
        """The rows of all streams."""
        return self.rows * len(self.keys)

    @property
    def query(self) -> Query:
        """The question."""
        return keyed_query(self.keys, self.window)

    def tables(self) -> dict[str, pa.Table]:
        """The rows, in order of event time; times are instants."""
        tables = keyed_tables(self.query, self.rows, self.domain, self.seed)
        for name, table in tables.items():
            at = table.schema.get_field_index("ts")
            micros = EPOCH * 1_000_000 + table["ts"].cast(pa.int64()).to_numpy() // 1000 * 1000
            times = pa.array(micros.astype(np.int64)).cast(pa.timestamp("us", "UTC"))
            tables[name] = table.set_column(at, "ts", times)
        return tables


def write_parquet(tables: dict[str, pa.Table], batches: int, where: Path) -> None:
    """The rows of each stream in so many batches of the same size."""
    write_batches(
        [
            {
                name: table.slice(len(table) * b // batches, _length(len(table), b, batches))
                for name, table in tables.items()
            }
            for b in range(batches)
        ],
        where,
    )


def _length(rows: int, batch: int, batches: int) -> int:
    return rows * (batch + 1) // batches - rows * batch // batches


def write_batches(batches: Sequence[Mapping[str, pa.Table]], where: Path) -> None:
    """One file for each stream and batch: `where/s0/000.parquet` and so on."""
    for b, batch in enumerate(batches):
        for name, table in batch.items():
            path = where / name / f"{b:03}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(table, path)
            os.utime(path, (EPOCH + b, EPOCH + b))


def result_columns(keys: Sequence[Sequence[str]]) -> list[str]:
    """The columns of a result, in order.

    >>> result_columns([["a"], ["a", "b"], ["b"]])
    ['a', 'b', 's0_ts', 's0_v', 's1_ts', 's1_v', 's2_ts', 's2_v']
    """
    names = list(dict.fromkeys(k for own in keys for k in own))
    return names + [f"s{i}_{c}" for i in range(len(keys)) for c in ("ts", "v")]


def owners(keys: Sequence[Sequence[str]], key: str) -> list[int]:
    """The streams that have a key column.

    >>> owners([["a"], ["a", "b"], ["b"]], "b")
    [1, 2]
    """
    return [i for i, own in enumerate(keys) if key in own]


def row_checksum(values: Sequence[str]) -> str:
    """The checksum of one result as SQL, from expressions of its values as 64-bit integers.

    >>> row_checksum(["k"])
    '(k % CAST(2147483629 AS BIGINT) + 1)'
    """
    product = ""
    for n, value in enumerate(values):
        # Another prime and another summand for each column, so that no two can be exchanged.
        factor = f"({value} % {_big(_PRIMES[n % len(_PRIMES)])} + {1 + 1_000_003 * n})"
        product = f"({product} * {factor}) % {_big(_MODULUS)}" if n else factor
    return product


def _big(number: int) -> str:
    """A 64-bit literal: some systems give a remainder the type of the divisor."""
    return f"CAST({number} AS BIGINT)"
