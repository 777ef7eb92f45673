"""A row of the year 9999: told where nothing bounds it, and harmless where something does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.spark.test_frame import start, streams

import plait
from plait.testing.oracle.answer import multiset, oracle, split_late
from plait.testing.oracle.fates import AHEAD, LATE, counts, set_aside

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

IN_9999 = 253_370_764_800_000_000
SCHEMA = pa.schema([("ts", pa.timestamp("us", tz="UTC")), ("sym", pa.string())])
BATCHES = 4


def made() -> list[dict[str, pa.Table]]:
    """Seconds of 1970 in order; the second batch of quotes has one row of the year 9999."""
    found = []
    for b in range(BATCHES):
        times = [1_000_000 * (10 * b + i) for i in range(10)]
        tables = {}
        for name in ("trades", "quotes", "fees"):
            far = [IN_9999] if name == "quotes" and b == 1 else []
            syms = ["AB"[i % 2] for i in range(len(times) + len(far))]
            tables[name] = pa.table([[*times, *far], syms], schema=SCHEMA)
        found.append(tables)
    return found


def asked(sources: Mapping[str, DataFrame]) -> plait.Join:
    return (
        plait.join(**sources)
        .watermark("2 seconds")
        .on("trades.sym = quotes.sym", "quotes.sym = fees.sym")
        .within("3 seconds")
        .select("trades.ts", "trades.sym", "quotes.ts AS quoted")
    )


def test_oracle_a_row_of_the_year_9999(spark: SparkSession, tmp_path: Path) -> None:
    batches = made()
    for name, bound in (("free", None), ("bounded", "1 hour")):
        join = asked(streams(spark, tmp_path / "in", batches))
        if bound is not None:
            join = join.ahead(bound)
        where = tmp_path / name
        query = start(join.to_df(late="aside", checkpoint=where / "checkpoint"), where)
        query.awaitTermination()
        found = spark.read.parquet(str(where / "out")).toArrow()
        results = found.filter(found["aside"].is_null()).drop_columns(["aside"])
        aside = Counter(row["reason"] for row in found["aside"].drop_null().to_pylist())
        clocks = [1_000_000_000_000_000] * BATCHES
        rows = [{n: t.to_pylist() for n, t in tables.items()} for tables in batches]
        rows = [
            {n: [{**row, "ts": t["ts"].cast(pa.int64())[i].as_py()} for i, row in enumerate(r)]
             for (n, r), t in zip(batch.items(), tables.values(), strict=True)}
            for batch, tables in zip(rows, batches, strict=True)
        ]  # fmt: skip
        asking = join.query
        wanted = oracle(asking, split_late(asking, rows, clocks)[0])
        assert multiset(results.cast(asking.schema)) == wanted and wanted, name
        fates = set_aside(asking, rows, clocks)
        for reason in (AHEAD, LATE):
            assert aside[reason] == counts(fates, reason).total(), (name, reason)
        told = [
            note
            for _, note in plait.attach(query).progress().notes
            if "ahead of all others" in note
        ]
        if bound is None:
            assert aside[LATE] == 20 and aside[AHEAD] == 0
            assert "since then 20 of 20 rows of quotes were late" in told[0]
        else:
            assert aside[AHEAD] == 1 and aside[LATE] == 0 and not told
            assert plait.attach(query).progress().total.ahead == {"quotes": 1}
