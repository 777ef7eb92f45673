"""What the systems are given, and the checksum by which they are compared."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.local.host import LocalRun
from plait_lab.bench.spark.flink_job import write_csv
from plait_lab.bench.spark.systems import reference
from plait_lab.workloads.files import Workload, row_checksum, write_parquet

ONE_KEY = (("k",),) * 3
CHAIN = (("a",), ("a", "b"), ("b", "c"), ("c",))


def summed(rows: list[tuple[int, int, int]]) -> int:
    values = ", ".join(str(row) for row in rows)
    text = f"SELECT sum({row_checksum(['a', 'b', 'c'])}) FROM (VALUES {values}) AS t(a, b, c)"
    found = duckdb.execute(text).fetchone()
    assert found is not None
    return int(found[0])


def test_the_checksum_is_that_of_a_multiset() -> None:
    rows = [(1, 2, 3), (4, 5, 6), (2**40, 7, 8)]
    assert summed(rows) == summed(rows[::-1])
    assert summed(rows) != summed([*rows, rows[0]])
    assert summed(rows) != summed([(1, 5, 3), (4, 2, 6), rows[2]]), "partners were exchanged"
    assert summed(rows) != summed([(2, 1, 3), *rows[1:]]), "columns were exchanged"


def test_files_have_all_rows_in_order_of_time_and_of_modification(tmp_path: Path) -> None:
    workload = Workload(ONE_KEY, 1_000_000, 100, 10, batches=3)
    tables = workload.tables()
    write_parquet(tables, workload.batches, tmp_path)
    for name in workload.streams:
        files = sorted((tmp_path / name).iterdir())
        assert [f.name for f in files] == ["000.parquet", "001.parquet", "002.parquet"]
        assert [f.stat().st_mtime for f in files] == sorted({f.stat().st_mtime for f in files})
        rows = pa.concat_tables([pq.read_table(f) for f in files])
        assert rows.equals(tables[name])
        times = rows["ts"].cast(pa.int64()).to_pylist()
        assert times == sorted(times)
        assert all(t % 1000 == 0 for t in times), "Flink's event times are milliseconds"


@pytest.mark.parametrize("keys", [ONE_KEY, CHAIN])
def test_differential_duckdb_and_plait_here_find_as_much(
    keys: tuple[tuple[str, ...], ...], tmp_path: Path
) -> None:
    workload = Workload(keys, 300_000, 400, 40, batches=2)
    tables = workload.tables()
    write_parquet(tables, workload.batches, tmp_path)
    count, checksum, _ = reference(workload, tmp_path, threads=1)
    naive = {
        name: t.set_column(t.schema.get_field_index("ts"), "ts", t["ts"].cast(pa.timestamp("us")))
        for name, t in tables.items()
    }
    assert count == LocalRun(workload.query).push(naive).num_rows > 0
    assert checksum > 0


def test_csv_has_times_in_milliseconds_and_microseconds(tmp_path: Path) -> None:
    workload = Workload(ONE_KEY, 1_000_000, 5, 10, batches=1)
    write_csv(workload.tables(), tmp_path / "csv")
    key, text, value, micros = (tmp_path / "csv" / "s0.csv").read_text().split("\n")[0].split(",")
    assert len(text) == len("2023-11-14 22:13:20.000")
    assert 0 <= int(key) < 10
    assert int(value) >= 0
    assert int(micros) % 1000 == 0
    assert text.endswith(f".{int(micros) // 1000 % 1000:03}")
