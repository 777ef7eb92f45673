"""Plait and DuckDB on the same rows: the same results, timed side by side."""

from __future__ import annotations

import time
from dataclasses import dataclass

import duckdb
import pyarrow as pa

from plait.local.host import LocalRun
from plait.query.query import Query
from plait.testing.oracle.checksum import checksum
from plait_lab.reporting.report import Claim, Note, Report, at_most, equal, ratio_spread, spread

DUCKDB_THREADS = 2


@dataclass(frozen=True, slots=True)
class Measured:
    """One run of one system."""

    seconds: float
    results: int
    checksum: int


def run_plait(query: Query, tables: dict[str, pa.Table], batches: int) -> Measured:
    """One thread, the rows in equal batches, all selected columns materialised."""
    return timed_run(LocalRun(query), tables, batches)


def timed_run(run: LocalRun, tables: dict[str, pa.Table], batches: int) -> Measured:
    """Like `run_plait`, with a run that can be looked at afterwards."""
    pa.set_cpu_count(1)
    outputs = []
    began = time.perf_counter()
    for b in range(batches):
        batch = {}
        for name, table in tables.items():
            start, stop = (len(table) * x // batches for x in (b, b + 1))
            batch[name] = table.slice(start, stop - start)
        outputs.append(run.push(batch))
    seconds = time.perf_counter() - began
    results = pa.concat_tables(outputs)
    return Measured(seconds, results.num_rows, checksum(results))


class DuckPeer:
    """The whole input joined at once by DuckDB, from its own tables, to Arrow.

    Event times are integers, which DuckDB compares faster than timestamps.
    """

    def __init__(self, query: Query, tables: dict[str, pa.Table]) -> None:
        self._connection = duckdb.connect(config={"threads": str(DUCKDB_THREADS)})
        for name, table in tables.items():
            at = table.schema.get_field_index("ts")
            rows = table.set_column(at, "ts", table["ts"].cast(pa.int64()))
            self._connection.register("rows", rows)
            self._connection.execute(f'CREATE TABLE "{name}" AS SELECT * FROM rows')
            self._connection.unregister("rows")
        window = query.bounds.uniform
        names = query.names
        near = [
            f"{b}.ts BETWEEN {a}.ts - {window} AND {a}.ts + {window}"
            for i, a in enumerate(names)
            for b in names[i + 1 :]
        ]
        where = " AND ".join([str(e) for e in query.equalities] + near)
        columns = ", ".join(f"{o.expr} AS {o.name}" for o in query.select)
        self.sql = f"SELECT {columns} FROM {', '.join(names)} WHERE {where}"

    def run(self) -> Measured:
        """Join everything once."""
        began = time.perf_counter()
        table = self._connection.sql(self.sql).to_arrow_table()
        seconds = time.perf_counter() - began
        return Measured(seconds, table.num_rows, checksum(table))


def compare(
    report: Report,
    query: Query,
    tables: dict[str, pa.Table],
    *,
    batches: int,
    repeats: int,
    limit: float,
    note: Note,
) -> Report:
    """Run both systems in turn and fill the report."""
    rows = sum(map(len, tables.values()))
    peer = DuckPeer(query, tables)
    note("warming up")
    run_plait(query, tables, batches)
    peer.run()
    plait, duck = [], []
    for repeat in range(repeats):
        note(f"run {repeat + 1} of {repeats}")
        plait.append(run_plait(query, tables, batches))
        duck.append(peer.run())
    for name, runs in (("plait", plait), ("duckdb", duck)):
        seconds = spread([m.seconds for m in runs])
        report.systems[name] = {
            "seconds": seconds["median"],
            "spread": seconds,
            "steady_rows_per_s": rows / seconds["median"],
            "results": runs[0].results,
            "checksum": runs[0].checksum,
            "threads": 1 if name == "plait" else DUCKDB_THREADS,
        }
    ratio = ratio_spread([m.seconds for m in plait], [m.seconds for m in duck])
    report.ratios["plait/duckdb seconds"] = ratio
    report.claims += [
        at_most(
            "no-slower",
            f"one thread of Plait takes at most {limit:g} times as long as DuckDB's "
            f"whole-input join with {DUCKDB_THREADS} threads",
            ratio["median"],
            limit,
        ),
        *_agreement(plait + duck),
    ]
    return report


def _agreement(runs: list[Measured]) -> list[Claim]:
    return [
        equal("results", "both find the same number of results", [m.results for m in runs]),
        equal("checksum", "both find the same results", [m.checksum for m in runs]),
    ]
