"""`plait demo`: four live streams joined batch by batch, and the answer checked by DuckDB.

On Spark where it can be had, and otherwise in this process.
"""

from __future__ import annotations

import importlib.util
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from plait.api import Sql, sql
from plait.cli.live import Watch, throttled, waiting
from plait.cli.market import DISORDER, QUERY, WATERMARK, market
from plait.cli.outputs import show_table
from plait.cli.show import aligned, count, moment, on_terminal, say, size
from plait.errors import PlaitError
from plait.hosts.local.run import Execution
from plait.hosts.spark import java
from plait.query.durations import show_micros
from plait.workshop.oracle.checksum import checksum_batches
from plait.workshop.oracle.duck import count_and_checksum

BATCH_SECONDS = 0.5
SPARK_BATCH_SECONDS = 5.0
LINE_SECONDS = 10
"""Event time between two lines, where the display cannot renew itself."""
SAMPLE = 5


@dataclass(frozen=True, slots=True)
class Answer:
    """What a system found: how many results, which (as a checksum), and how fast."""

    results: int
    checksum: int
    seconds: float


def show_demo(seconds: float, seed: int, *, local: bool = False) -> None:
    """Generate, explain, run and check; `local` does without Spark."""
    begin = time.perf_counter()
    with waiting("Generating a market ..."):
        tables = market(seconds, seed)
    _title("A market")
    rows = ", ".join(f"{table.num_rows:,} {name}" for name, table in tables.items())
    say(f"{seconds:g} s of {rows}; generated in {time.perf_counter() - begin:.1f} s.")
    say(DISORDER)
    _title("The question: which trades were above the ask, soon after an order and news?")
    say(QUERY)
    asked = sql(tables, QUERY, watermark=WATERMARK)
    _title("The plan")
    say(asked.explain().partition("\n\n")[2])
    if not local and (why := java.missing()):
        say(f"\nThis runs in one process, without Spark: {why}.", style="bold yellow")
        local = True
    if local:
        _title(f"The run, in batches of {BATCH_SECONDS:g} s of event time")
        answer, sample = _run(asked)
    else:
        _title(f"The run on Spark, in batches of {SPARK_BATCH_SECONDS:g} s of event time")
        answer, sample = _run_on_spark(asked, tables)
    _title(f"{sample.num_rows} of the results")
    show_table(sample)
    _title("The proof: the same join by DuckDB, over the whole input at once")
    _prove(asked, answer)
    if not local:
        say(
            "DuckDB had all rows at once and kept nothing. Plait had them batch by batch, made its "
            "state durable\nin each, and could have been stopped and resumed at any; its seconds "
            "include Spark's start."
        )


def _run_on_spark(asked: Sql, tables: dict[str, pa.Table]) -> tuple[Answer, pa.Table]:
    """The answer, read back from the files that Spark wrote, and some of the results."""
    from plait.cli.demo_spark import run_on_spark, summary

    with tempfile.TemporaryDirectory(prefix="plait-demo-") as scratch:
        running = run_on_spark(tables, QUERY, WATERMARK, SPARK_BATCH_SECONDS, Path(scratch))
        with running as ran:
            summary(ran.batches, ran.seconds)
            say(
                f"Late rows: {sum(b.late for b in ran.batches):,}. The state was at most "
                f"{count(max(b.state_rows for b in ran.batches), 'tuple')}, "
                f"{size(max(b.state_bytes for b in ran.batches))}."
            )
            results, total = 0, 0
            sample: list[pa.RecordBatch] = []
            for path in ran.files:
                rows = pq.read_table(path).cast(asked.query.schema)
                results += rows.num_rows
                total += checksum_batches(rows.to_batches())
                if len(sample) < SAMPLE:
                    sample += rows.slice(0, 1).to_batches()
    table = pa.Table.from_batches(sample, asked.query.schema)
    return Answer(results, total % 2**64, ran.seconds), table


def _run(asked: Sql) -> tuple[Answer, pa.Table]:
    """The answer, and some of the results."""
    # The first rows of any run load the compiled kernels; they do not count.
    asked = asked.adapt(False)
    first = {name: table.slice(0, 1000) for name, table in asked.sources.items()}
    for _ in replace(asked, sources=first).start(order="file").results():
        pass
    # In the order of arrival: what is out of order stays so, and the watermarks must cope.
    execution = asked.start(order="file", batch_seconds=BATCH_SECONDS)
    sample: list[pa.RecordBatch] = []
    total, checking = 0, 0.0
    with _display(execution) as watch:
        for results in execution.results(watch):
            begin = time.perf_counter()
            total += checksum_batches([results])
            if len(sample) < SAMPLE:
                sample.append(results.slice(0, 1))
            checking += time.perf_counter() - begin
    counts, seconds = execution.counts, execution.seconds - checking
    say(
        f"{count(execution.rows, 'row')} and {count(counts.results, 'result')} in {seconds:.1f} s: "
        f"{execution.rows / seconds:,.0f} rows/s, {counts.results / seconds:,.0f} results/s."
    )
    say(
        f"Late rows: {sum(counts.late.values()):,}. The state was at most "
        f"{count(execution.peak_state_rows, 'tuple')}, {size(execution.peak_state_bytes)}."
    )
    table = pa.Table.from_batches(sample, asked.query.schema)
    return Answer(counts.results, total % 2**64, seconds), table


def _prove(asked: Sql, answer: Answer) -> None:
    if importlib.util.find_spec("duckdb") is None:
        say("DuckDB is not installed; with it (pip install 'plait[bench]') the demo checks itself.")
        return
    begin = time.perf_counter()
    with waiting("DuckDB joins ..."):
        expected = count_and_checksum(asked.query, asked.sources)
    other = Answer(*expected, time.perf_counter() - begin)
    lines = [["", "results", "checksum", "seconds"]]
    for name, a in (("Plait", answer), ("DuckDB", other)):
        lines.append([name, f"{a.results:,}", f"{a.checksum:016x}", f"{a.seconds:.1f}"])
    for line in aligned(lines):
        say(line)
    if (answer.results, answer.checksum) != (other.results, other.checksum):
        raise PlaitError("the answers differ", remedy="this is a bug in Plait: please report it")
    say("The same results, every one of them.", style="bold green")


@contextmanager
def _display(execution: Execution) -> Iterator[Watch]:
    """Shows the figures of a run: renewed in place on a terminal, now and then a line elsewhere."""
    if not on_terminal():
        shown = 0

        def line() -> None:
            nonlocal shown
            reached = (execution.reached or 0) // (LINE_SECONDS * 1_000_000)
            if reached != shown:
                shown = reached
                say(", ".join(f"{name} {value}" for name, value in _figures(execution)))

        yield line
        return
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

    def picture() -> Table:
        grid = Table.grid(padding=(0, 2))
        for name, value in _figures(execution):
            grid.add_row(name, value)
        return grid

    with Live(picture(), console=Console(stderr=True), transient=True) as live:
        yield throttled(lambda: live.update(picture(), refresh=True))


def _figures(execution: Execution) -> list[tuple[str, str]]:
    seconds = max(execution.seconds, 1e-9)
    return [
        ("event time", moment(execution.reached)[11:]),
        ("rows", f"{execution.rows:,}"),
        ("rows/s", f"{execution.rows / seconds:,.0f}"),
        ("results", f"{execution.counts.results:,}"),
        ("state", f"{count(execution.state_rows, 'tuple')}"),
        ("watermark lag", show_micros(execution.lag // 1000 * 1000)),
    ]


def _title(text: str) -> None:
    say(f"\n{text}", style="bold")
