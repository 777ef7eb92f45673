"""Windows 1 to 30 times as long, with the same number of results per row.

The work for a row is its insertion, its lookups, its results and its removal, none of which grows
with the window; only cache misses may. Keys scale with the window, so that the results per row
stay the same. Time is taken when the window is full, from then on.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass

import pyarrow as pa

from plait.local.host import LocalRun
from plait.query.query import Query
from plait.testing.oracle.checksum import checksum
from plait.testing.oracle.duck import count_and_checksum
from plait_lab.reporting.report import Note, Report, Series, at_most, equal, spread
from plait_lab.workloads.keyed import RATE, keyed_query, keyed_tables

_FACTORS = (1, 3, 10, 30)
_LIMITS = {10: 1.3, 30: 1.6}
_DISORDERED_LIMIT = 1.5
_STREAMS = 3


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    rows: int = 200_000
    """Rows per stream that are timed, after the window has filled."""
    keys: int = 5_000
    window_seconds: int = 5
    batch_seconds: int = 10
    repeats: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class _Run:
    nanoseconds: float
    results_per_row: float
    state_rows: int
    bytes_per_row: float


def window_scaling(options: Options, note: Note) -> Report:
    """The cost of a row as the window grows, in order and with rows out of order."""
    report = Report("kernel-window-scaling", asdict(options))
    times: dict[tuple[int, bool], list[float]] = {}
    last: dict[tuple[int, bool], _Run] = {}
    for repeat in range(options.repeats):
        for factor in _FACTORS:
            for disordered in (False, True):
                note(
                    f"round {repeat + 1} of {options.repeats}: window x {factor}, "
                    + ("10 % out of order" if disordered else "in order")
                )
                run = _measure(options, factor, disordered)
                times.setdefault((factor, disordered), []).append(run.nanoseconds)
                last[factor, disordered] = run
    for disordered, label in ((False, "in order"), (True, "10 % of the rows out of order")):
        medians = [spread(times[f, disordered])["median"] for f in _FACTORS]
        report.series.append(Series(label, _FACTORS, medians, "ns per row", "times the window"))
        report.systems[f"plait, {label}"] = {
            f"window x {f}": spread(times[f, disordered]) | asdict(last[f, disordered])
            for f in _FACTORS
        }
    for factor in _FACTORS[1:]:
        ratio = _ratio(times[factor, False], times[1, False])
        report.ratios[f"in order, x {factor} / x 1"] = ratio
        if factor in _LIMITS:
            limit = _LIMITS[factor]
            report.claims.append(
                at_most(
                    f"window-{factor}",
                    f"a row costs at most {limit} times as much when the window is {factor} times "
                    "as long",
                    ratio["median"],
                    limit,
                )
            )
    for factor in _FACTORS:
        ratio = _ratio(times[factor, True], times[factor, False])
        report.ratios[f"x {factor}, out of order / in order"] = ratio
        report.claims.append(
            at_most(
                f"disorder-{factor}",
                f"with a window x {factor}, rows out of order cost at most "
                f"{_DISORDERED_LIMIT} times as much",
                ratio["median"],
                _DISORDERED_LIMIT,
            )
        )
    for factor in (_FACTORS[0], _FACTORS[-1]):
        for disordered in (False, True):
            note(f"checking the results with a window x {factor}")
            query, tables, _ = _workload(options, factor, disordered)
            own = _results(query, tables, options)
            report.claims.append(
                equal(
                    f"same-{factor}-{'disordered' if disordered else 'ordered'}",
                    f"DuckDB finds the same results with a window x {factor}"
                    + (", rows out of order" if disordered else ""),
                    [own, count_and_checksum(query, tables)],
                )
            )
    per_row = [round(last[f, d].results_per_row, 1) for f in _FACTORS for d in (False, True)]
    near = max(per_row) - min(per_row) <= 0.1 * max(per_row)
    report.claims.append(
        equal("results", "results per row stay within 10 % at all sizes", [near, True])
    )
    return report


def _ratio(top: list[float], bottom: list[float]) -> dict[str, float]:
    return spread([t / b for t, b in zip(top, bottom, strict=True)])


def _results(query: Query, tables: dict[str, pa.Table], options: Options) -> tuple[int, int]:
    """How many results there are, and their checksum."""
    run, size = LocalRun(query), options.batch_seconds * RATE
    total = 0
    for start in range(0, max(map(len, tables.values())), size):
        total += checksum(run.push({n: t.slice(start, size) for n, t in tables.items()}))
    return run.counts.results, total % 2**64


def _workload(
    options: Options, factor: int, disordered: bool
) -> tuple[Query, dict[str, pa.Table], int]:
    """The query, its rows in order of arrival, and how many rows fill the windows first."""
    window = options.window_seconds * factor * 1_000_000
    disorder = window // 5 if disordered else 0
    query = keyed_query([["k"]] * _STREAMS, window, delay=disorder)
    filling = 2 * options.window_seconds * factor * RATE
    tables = keyed_tables(
        query,
        filling + options.rows,
        options.keys * factor,
        options.seed,
        disorder=disorder,
        share=0.1 if disordered else 0.0,
    )
    return query, tables, filling


def _measure(options: Options, factor: int, disordered: bool) -> _Run:
    query, tables, filling = _workload(options, factor, disordered)
    pa.set_cpu_count(1)
    run = LocalRun(query)
    size = options.batch_seconds * RATE
    began = results = rows = 0.0
    for start in range(0, filling + options.rows, size):
        if start >= filling and not began:
            results, rows = -run.counts.results, -sum(run.counts.rows.values())
            began = time.perf_counter()
        for batch in run.stream({n: t.slice(start, size) for n, t in tables.items()}):
            del batch
    seconds = time.perf_counter() - began
    rows += sum(run.counts.rows.values())
    results += run.counts.results
    sizes = run.engine.sizes()
    stored = sum(s.rows for s in sizes)
    return _Run(seconds / rows * 1e9, results / rows, stored, sum(s.bytes for s in sizes) / stored)
