"""Three streams joined on one key, beside DuckDB on the same rows: many results, and few."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plait_lab.bench.peers import compare
from plait_lab.reporting.report import Note, Report
from plait_lab.workloads.keyed import keyed_query, keyed_tables


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Many results: about 74 for each row of a stream."""

    rows: int = 200_000
    keys: int = 1_000
    window_seconds: int = 5
    batches: int = 10
    repeats: int = 5
    seed: int = 1


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Few results: about one for 1,200 rows of a stream."""

    rows: int = 3_000_000
    keys: int = 300_000
    window_seconds: int = 5
    batches: int = 10
    repeats: int = 5
    seed: int = 1


def output(options: OutputOptions, note: Note) -> Report:
    """How fast results are found and materialised, beside DuckDB."""
    return _run("kernel-output", options, 1.0, note)


def ingest(options: IngestOptions, note: Note) -> Report:
    """How fast rows are taken in, indexed, probed and dropped, beside DuckDB."""
    return _run("kernel-ingest", options, 1.5, note)


def _run(name: str, options: OutputOptions | IngestOptions, limit: float, note: Note) -> Report:
    query = keyed_query([["k"]] * 3, options.window_seconds * 1_000_000)
    tables = keyed_tables(query, options.rows, options.keys, options.seed)
    return compare(
        Report(name, asdict(options)),
        query,
        tables,
        batches=options.batches,
        repeats=options.repeats,
        limit=limit,
        note=note,
    )
