"""What Flink is asked: the workload in its SQL, over CSV files of the same rows."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv

from plait_lab.bench.spark.job import MARK
from plait_lab.workloads.files import Workload, owners, row_checksum

PYTHON = "PLAIT_PEERS_PYTHON"
"""The environment variable that names the Python with Flink, if it is elsewhere."""


def flink_python() -> Path | None:
    """The Python of the peers' environment: beside our own, as `./dev setup --peers` makes it."""
    named = os.environ.get(PYTHON)
    ours = Path(sys.prefix)
    path = Path(named) if named else ours.with_name(f"{ours.name}-peers") / "bin" / "python"
    return path if path.exists() else None


def write_csv(tables: dict[str, pa.Table], where: Path) -> None:
    """One file for each stream; times as text in milliseconds, and as microseconds."""
    where.mkdir(parents=True)
    options = pcsv.WriteOptions(include_header=False, quoting_style="none")
    for name, table in tables.items():
        at = table.schema.get_field_index("ts")
        millis = table["ts"].cast(pa.timestamp("ms"))
        text = pc.strftime(millis, format="%Y-%m-%d %H:%M:%S")
        rows = table.set_column(at, "ts", text).append_column("us", table["ts"].cast(pa.int64()))
        pcsv.write_csv(rows, where / f"{name}.csv", options)


def flink_job(workload: Workload, files: Path, cores: int, *, rocksdb: bool) -> dict[str, Any]:
    """The job for `flink.py`."""
    return {
        "mark": MARK,
        "settings": {
            "parallelism.default": str(cores),
            "state.backend.type": "rocksdb" if rocksdb else "hashmap",
            "table.exec.mini-batch.enabled": "true",
            "table.exec.mini-batch.allow-latency": "1 s",
            "table.exec.mini-batch.size": "50000",
            "taskmanager.memory.process.size": "3g",
            "rest.address": "localhost",
            "rest.bind-address": "localhost",
        },
        "tables": [_table(workload, i, files) for i in range(len(workload.keys))],
        "query": flink_query(workload.keys, workload.window),
    }


def _table(workload: Workload, number: int, files: Path) -> str:
    keys = "".join(f"{k} BIGINT, " for k in workload.keys[number])
    return (
        f"CREATE TABLE s{number} ({keys}ts TIMESTAMP(3), v BIGINT, us BIGINT, "
        "WATERMARK FOR ts AS ts - INTERVAL '0.001' SECOND) WITH ('connector' = 'filesystem', "
        f"'path' = 'file://{files}/s{number}.csv', 'format' = 'csv')"
    )


def flink_query(keys: Sequence[Sequence[str]], window: int) -> str:
    """Number and checksum of the results, from chained interval joins.

    The intervals with the first stream's time make them interval joins; the others, which Flink
    cannot take as such after the first join, are arithmetic on microseconds.

    >>> print(*flink_query([["k"], ["k"]], 5_000_000).splitlines()[1:], sep="\\n")
    FROM s0
    JOIN s1 ON s0.k = s1.k
     AND s1.ts BETWEEN s0.ts - INTERVAL '5.000' SECOND AND s0.ts + INTERVAL '5.000' SECOND
    """
    span = f"INTERVAL '{window / 1e6:.3f}' SECOND"
    names = list(dict.fromkeys(k for own in keys for k in own))
    values = [f"s{owners(keys, k)[0]}.{k}" for k in names]
    values += [f"s{i}.{c}" for i in range(len(keys)) for c in ("us", "v")]
    lines = [f"SELECT COUNT(*), SUM({row_checksum(values)})", "FROM s0"]
    for i in range(1, len(keys)):
        conditions = []
        for k in keys[i]:
            earlier = [j for j in owners(keys, k) if j < i]
            conditions += [f"s{j}.{k} = s{i}.{k}" for j in earlier[:1]]
        conditions.append(f"s{i}.ts BETWEEN s0.ts - {span} AND s0.ts + {span}")
        conditions += [f"ABS(s{i}.us - s{j}.us) <= {window}" for j in range(1, i)]
        lines.append(f"JOIN s{i} ON {' AND '.join(conditions)}")
    return "\n".join(lines)
