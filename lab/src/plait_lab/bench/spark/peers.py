"""Plait on Spark, Spark's own joins, and Flink, on the same files: results, then times.

Steady state is the median batch after the first two, as Spark's progress tells it; the total is
from the start of the query to its end, with Spark's first batch, which costs some seconds of
start-up whatever runs in it. Flink has no batches: only its total counts. DuckDB joins the whole
input at once and says what the results are.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plait_lab.bench.spark.flink_job import write_csv
from plait_lab.bench.spark.systems import (
    FLINK,
    FLINK_ROCKSDB,
    NATIVE,
    PLAIT,
    ROCKSDB,
    Machine,
    SystemOutcome,
    chosen_systems,
    reference,
    run_flink,
    run_spark,
)
from plait_lab.reporting.report import Claim, Note, Report, Series, at_least, equal
from plait_lab.workloads.files import Workload, write_parquet

_CORES = os.cpu_count() or 2
_ONE_KEY = (("k",),) * 3
_CHAIN = (("a",), ("a", "b"), ("b", "c"), ("c",))


@dataclass(frozen=True, slots=True)
class OutputOptions:
    """Many results: about 74 for each row of a stream."""

    rows: int = 200_000
    keys: int = 1_000
    window_seconds: float = 5.0
    batches: int = 10
    fewer_batches: int = 5
    """The same rows once more in fewer and larger batches."""
    systems: str = "all"
    limit_seconds: float = 420.0
    """What one system may take; one that takes longer is ended, and reported as such."""
    cores: int = _CORES
    memory_mb: int = 3_000
    seed: int = 1


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """Few results: about one for 1,200 rows of a stream."""

    rows: int = 3_000_000
    keys: int = 300_000
    window_seconds: float = 5.0
    batches: int = 10
    systems: str = "all"
    limit_seconds: float = 420.0
    cores: int = _CORES
    memory_mb: int = 3_000
    seed: int = 1


@dataclass(frozen=True, slots=True)
class TinyOptions:
    """Small batches, whose cost is what Spark and the operators cost at all."""

    rows: int = 20_000
    keys: int = 1_000
    window_seconds: float = 5.0
    batches: int = 20
    systems: str = "plait,native-hdfs,native-rocksdb"
    limit_seconds: float = 300.0
    cores: int = _CORES
    memory_mb: int = 3_000
    seed: int = 1


@dataclass(frozen=True, slots=True)
class ChainOptions:
    """Four streams, three keys: R.1 = S.1, S.2 = T.1, T.2 = U.1."""

    rows: int = 200_000
    keys: int = 4_000
    window_seconds: float = 5.0
    batches: int = 10
    systems: str = "all"
    limit_seconds: float = 420.0
    cores: int = _CORES
    memory_mb: int = 3_000
    seed: int = 1


Options = OutputOptions | IngestOptions | TinyOptions | ChainOptions


@dataclass(frozen=True, slots=True)
class Floor:
    """How many times faster than a peer Plait must be in steady state."""

    peer: str
    times: float


def output(options: OutputOptions, note: Note) -> Report:
    """Three streams on one key with many results, beside Spark's own joins and Flink."""
    report = Report("peers-output", asdict(options), runtime="spark")
    fewer = tuple(s for s in chosen_systems(options.systems) if s in (PLAIT, NATIVE))
    with tempfile.TemporaryDirectory(prefix="plait-peers-") as scratch:
        _compare(
            report,
            _workload(options, _ONE_KEY, options.batches),
            options,
            chosen_systems(options.systems),
            [Floor(NATIVE, 6.0), Floor(ROCKSDB, 20.0)],
            Path(scratch) / "more",
            note,
        )
        if fewer and options.fewer_batches != options.batches:
            _compare(
                report,
                _workload(options, _ONE_KEY, options.fewer_batches),
                options,
                fewer,
                [Floor(NATIVE, 10.0)],
                Path(scratch) / "fewer",
                note,
            )
    return report


def ingest(options: IngestOptions, note: Note) -> Report:
    """Three streams on one key with many rows and few results, beside Spark's joins and Flink."""
    return _one("peers-ingest", options, _ONE_KEY, [Floor(NATIVE, 4.0)], note)


def tiny(options: TinyOptions, note: Note) -> Report:
    """What a batch costs at the least, beside Spark's own joins."""
    return _one("peers-tiny", options, _ONE_KEY, [Floor(NATIVE, 1.0)], note)


def chain(options: ChainOptions, note: Note) -> Report:
    """Four streams joined in a chain over different keys, beside Spark's own joins and Flink."""
    floors = [Floor(NATIVE, 1.0), Floor(ROCKSDB, 1.0)]
    return _one("peers-chain", options, _CHAIN, floors, note)


def _one(
    name: str,
    options: Options,
    keys: tuple[tuple[str, ...], ...],
    floors: Sequence[Floor],
    note: Note,
) -> Report:
    report = Report(name, asdict(options), runtime="spark")
    workload = _workload(options, keys, options.batches)
    with tempfile.TemporaryDirectory(prefix="plait-peers-") as scratch:
        systems = chosen_systems(options.systems)
        _compare(report, workload, options, systems, floors, Path(scratch), note)
    return report


def _workload(options: Options, keys: tuple[tuple[str, ...], ...], batches: int) -> Workload:
    window = round(options.window_seconds * 1000) * 1000
    many = isinstance(options, OutputOptions | ChainOptions)
    return Workload(keys, window, options.rows, options.keys, batches, options.seed, many)


def _compare(
    report: Report,
    workload: Workload,
    options: Options,
    systems: Sequence[str],
    floors: Sequence[Floor],
    scratch: Path,
    note: Note,
) -> None:
    """Run the systems one after the other and add what they did to the report."""
    machine = Machine(options.cores, f"{options.memory_mb}m", options.limit_seconds)
    note("generating the streams")
    tables = workload.tables()
    files, csv = scratch / "parquet", scratch / "csv"
    write_parquet(tables, workload.batches, files)
    if {FLINK, FLINK_ROCKSDB} & set(systems):
        write_csv(tables, csv)
    del tables
    note("DuckDB joins everything at once, for the results to compare with")
    count, checksum, seconds = reference(workload, files, options.cores)
    label = f"{workload.batches} batches"
    report.systems["duckdb, 1 batch"] = {
        "seconds": seconds,
        "results": count,
        "checksum": checksum,
        "set_up": "the whole input at once, from tables in memory",
    }
    found: dict[str, SystemOutcome] = {}
    for system in systems:
        run: Callable[..., SystemOutcome] = run_flink if system.startswith("flink") else run_spark
        where = csv if system.startswith("flink") else files
        outcome = run(system, workload, where, scratch / system, machine, note)
        found[system] = outcome
        report.systems[_title(system, label)] = outcome.figures(workload)
        if outcome.batches:
            numbers = list(range(1, len(outcome.batches) + 1))
            report.series.append(
                Series(_title(system, label), numbers, outcome.batch_seconds, "s", "batch")
            )
    if PLAIT in found:
        _ratios(report, found, label)
        report.claims += [_faster(floor, found, label) for floor in floors if floor.peer in found]
    report.claims += _agreement(found, (count, checksum), label)


def _title(system: str, label: str) -> str:
    return system if system.startswith("flink") else f"{system}, {label}"


def _ratios(report: Report, found: dict[str, SystemOutcome], label: str) -> None:
    ours = found[PLAIT]
    for system, other in found.items():
        if system == PLAIT or other.missing:
            continue
        least = "at least " if other.over else ""
        if not ours.over:
            report.ratios[f"{least}{system} / plait, total seconds, {label}"] = (
                other.seconds / ours.seconds
            )
        if (ratio := _steady_ratio(ours, other)) is not None:
            least = "at least " if other.bounded else ""
            report.ratios[f"{least}{system} / plait, steady batch, {label}"] = ratio


def _steady_ratio(ours: SystemOutcome, other: SystemOutcome) -> float | None:
    if ours.steady is None or ours.bounded or other.steady is None:
        return None
    return other.steady / ours.steady


def _faster(floor: Floor, found: dict[str, SystemOutcome], label: str) -> Claim:
    id_ = f"{floor.peer}-{label.replace(' ', '-')}"
    text = (
        f"a steady batch of {floor.peer} takes at least {floor.times:g} times as long as Plait's, "
        f"{label}"
    )
    other = found[floor.peer]
    ratio = _steady_ratio(found[PLAIT], other)
    if ratio is None:
        why = other.missing or "there is no steady batch to compare"
        return Claim(id_, text, why, 0.0, f"at least {floor.times:g}", False)
    return at_least(id_, text, ratio, floor.times)


def _agreement(found: dict[str, SystemOutcome], truth: tuple[int, int], label: str) -> list[Claim]:
    """Those that came to their end found what DuckDB finds; the others agree as far as they came.

    Nobody holds a result back, so systems on the same batches agree in every single one.
    """
    tag = label.replace(" ", "-")
    claims = []
    ended = [o for o in found.values() if not o.over and not o.missing]
    names = ", ".join(["duckdb", *(o.system for o in ended)])
    pairs: list[tuple[str, str, list[Any]]] = [
        ("results", "find the same number of results", [truth[0], *(o.results for o in ended)]),
        ("checksum", "find the same results", [truth[1], *(o.checksum for o in ended)]),
    ]
    for id_, text, values in pairs:
        if ended:
            claims.append(equal(f"{id_}-{tag}", f"{names} {text}, {label}", values))
        else:
            why = "no system came to its end"
            claims.append(Claim(f"{id_}-{tag}", f"all {text}, {label}", why, 0.0, "equal", False))
    batched = [o for o in found.values() if o.batches]
    if len(batched) > 1:
        common = min(len(o.batches) for o in batched)
        sums = [tuple((b["results"], b["checksum"]) for b in o.batches[:common]) for o in batched]
        names = ", ".join(o.system for o in batched)
        same = len(set(sums)) == 1
        text = f"{names} find the same results in each of the first {common} batches, {label}"
        measured = f"{len(set(sums))} different answer{'s' if len(set(sums)) > 1 else ''}"
        claims.append(Claim(f"batches-{tag}", text, measured, float(same), "one answer", same))
    return claims
