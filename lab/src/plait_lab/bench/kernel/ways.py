"""Chains and stars of 3 to 10 streams: time, and bytes per stored row.

More streams mean more work: each row is looked up in every other window. The work is counted
(rows stored, lookups, rows looked at, matches), and the time is set against it: what an operation
costs must not depend on the number of streams.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import pyarrow as pa

from plait.local.host import LocalRun
from plait.query.query import Query
from plait.testing.oracle.duck import count_and_checksum
from plait_lab.bench.peers import timed_run
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, spread
from plait_lab.workloads.keyed import keyed_query, keyed_tables

_WAYS = (3, 5, 8, 10)
_SHAPES = ("chain", "star")
_CHECKED = 5
"""Up to so many streams DuckDB is asked for the same join."""
_DEARER = 1.5
_INDEX_BYTES = 32


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 100_000
    keys: int = 20_000
    window_seconds: int = 20
    batches: int = 20
    repeats: int = 3
    seed: int = 1


@dataclass(frozen=True, slots=True)
class _Run:
    seconds: float
    results: int
    checksum: int
    operations: int
    bytes_per_row: float
    excess_bytes: float
    """Bytes per row and index beyond the columns, of the worst window."""


def shape_keys(shape: str, ways: int) -> list[list[str]]:
    """The key columns of each stream in a chain or a star.

    >>> shape_keys("chain", 3), shape_keys("star", 3)
    ([['k1'], ['k1', 'k2'], ['k2']], [['k1', 'k2'], ['k1'], ['k2']])
    """
    links = [f"k{i}" for i in range(1, ways)]
    if shape == "star":
        return [links, *([link] for link in links)]
    return [links[max(0, i - 1) : i + 1] for i in range(ways)]


def ways(options: Options, note: Note) -> Report:
    """The cost of an operation, and the bytes of a row, as the streams become more."""
    report = Report("kernel-ways", asdict(options))
    for shape in _SHAPES:
        costs: dict[int, list[float]] = {}
        last: dict[int, _Run] = {}
        for repeat in range(options.repeats + 1):
            for m in _WAYS:
                note(f"{shape} of {m}: " + (f"run {repeat}" if repeat else "warming up"))
                query = keyed_query(shape_keys(shape, m), options.window_seconds * 1_000_000)
                tables = keyed_tables(query, options.rows, options.keys, options.seed)
                run = _measure(query, tables, options.batches)
                if repeat:
                    costs.setdefault(m, []).append(run.seconds / run.operations * 1e9)
                elif m <= _CHECKED:
                    count, total = count_and_checksum(query, tables)
                    report.claims.append(
                        equal(
                            f"{shape}-{m}-results",
                            f"DuckDB finds the same results for the {shape} of {m}",
                            [(run.results, run.checksum), (count, total)],
                        )
                    )
                last[m] = run
        _fill(report, shape, costs, last, options)
    return report


def _fill(
    report: Report,
    shape: str,
    costs: dict[int, list[float]],
    last: dict[int, _Run],
    options: Options,
) -> None:
    medians = [spread(costs[m])["median"] for m in _WAYS]
    per_row = [last[m].seconds / (m * options.rows) * 1e9 for m in _WAYS]
    report.series += [
        Series(f"{shape}, per operation", _WAYS, medians, "ns", "streams"),
        Series(f"{shape}, per row", _WAYS, per_row, "ns", "streams"),
    ]
    report.systems[f"plait, {shape}"] = {
        f"{m} streams": asdict(last[m])
        | {
            "ns_per_operation": spread(costs[m]),
            "steady_rows_per_s": m * options.rows / last[m].seconds,
        }
        for m in _WAYS
    }
    most = _WAYS[-1]
    ratios = [a / b for a, b in zip(costs[most], costs[_WAYS[0]], strict=True)]
    report.ratios[f"{shape}: {most} / {_WAYS[0]} streams, per operation"] = spread(ratios)
    report.claims += [
        at_most(
            f"{shape}-work",
            f"an operation in a {shape} of {most} streams costs at most {_DEARER} times as much "
            f"as in one of {_WAYS[0]}",
            spread(ratios)["median"],
            _DEARER,
        ),
        at_most(
            f"{shape}-bytes",
            "a stored row takes at most its columns and 32 bytes per index",
            max(last[m].excess_bytes for m in _WAYS),
            _INDEX_BYTES,
            "bytes per index",
        ),
    ]


def _measure(query: Query, tables: dict[str, pa.Table], batches: int) -> _Run:
    run = LocalRun(query)
    measured = timed_run(run, tables, batches)
    inputs = [i for operator in run.engine.counters for i in operator.inputs]
    operations = sum(i.inserts + i.deletes for i in inputs)
    operations += sum(s.probes + s.visited + s.matches for i in inputs for s in i.steps)
    sizes = run.engine.sizes()
    return _Run(
        measured.seconds,
        measured.results,
        measured.checksum,
        operations,
        sum(s.bytes for s in sizes) / sum(s.rows for s in sizes),
        max((s.bytes / s.rows - s.row_bytes) / s.indexes for s in sizes),
    )
