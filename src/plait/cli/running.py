"""`plait run`: the query over its sources, into files or a preview, with a summary."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from plait.adapt.events import write_events
from plait.adapt.policy import Policy
from plait.cli.explaining import explained
from plait.cli.inputs import Inputs
from plait.cli.live import progress, waiting
from plait.cli.show import aligned, cell, count, say, size
from plait.errors import OutputExists, PlaitError
from plait.plan.jtree import Join, Leaf
from plait.plan.labels import plan_label
from plait.plan.routed import Plan
from plait.query.query import Query
from plait.runtime.replay import Order
from plait.runtime.run import Execution, late_schema
from plait.runtime.sinks import EXTENSIONS, FileSink, Sink, late_paths
from plait.runtime.sources import Source
from plait.runtime.sources.bad import BAD_ROWS_SCHEMA, bad_rows_batch

PREVIEW_ROWS = 10


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line says about a run."""

    out: Path | None
    overwrite: bool
    late: Path | None
    bad_rows: Path | None
    order: Order
    batch_rows: int
    batch_seconds: float | None
    explain: bool
    quiet: bool
    adapt: bool | None = None
    """Whether the plan may change; by default it may, unless one is given."""
    events: Path | None = None


def run_query(inputs: Inputs, options: RunOptions) -> None:
    """Run to the end, and say what became of the rows."""
    asked, titles = inputs.asked_and_titles()
    query = asked.query
    plan = inputs.tree(query)
    if options.explain:
        say(explained(query, plan) + "\n")
    with ExitStack() as files:
        outputs = _Outputs(files, query, titles, options)
        with waiting("looking at the event times ...", quiet=options.quiet):
            execution = Execution(
                query,
                asked.sources,
                plan=plan,
                order=options.order,
                batch_rows=options.batch_rows,
                batch_seconds=options.batch_seconds,
                late=outputs.write_late if options.late is not None else None,
                adapt=Policy() if _adapts(inputs, options) else None,
            )
        with progress(execution, quiet=options.quiet) as watch:
            for results in execution.results(watch):
                outputs.results.write(results)
        outputs.write_bad(execution.sources)
    if options.events is not None:
        write_events(execution.run.events, options.events)
    if isinstance(outputs.results, Preview):
        outputs.results.show()
    if not options.quiet:
        if isinstance(outputs.results, Preview):
            say()
        summary(execution, titles, options)


def _plan_text(plan: Plan) -> str:
    return plan_label(plan) if isinstance(plan, Join | Leaf) else str(plan)


def _adapts(inputs: Inputs, options: RunOptions) -> bool:
    if options.events is not None and options.events.exists() and not options.overwrite:
        raise OutputExists(f"{options.events} is already there", remedy="use --overwrite")
    if options.events is not None:
        options.events.unlink(missing_ok=True)
    given = inputs.plan is not None or inputs.plan_file is not None
    return not given if options.adapt is None else options.adapt


class _Outputs:
    """Every file of a run. All are opened before the first row is read, and appear together."""

    def __init__(
        self, files: ExitStack, query: Query, titles: dict[str, str], options: RunOptions
    ) -> None:
        late = late_paths(options.late, titles) if options.late is not None else {}
        self._titles = titles
        wanted = [p for p in (options.out, options.bad_rows, *late.values()) if p is not None]
        if twice := next((p for p in wanted if wanted.count(p) > 1), None):
            raise PlaitError(f"two outputs are to be written to {twice}", remedy="rename one")
        if options.late is not None and options.late.suffix.lower() not in EXTENSIONS:
            options.late.mkdir(parents=True, exist_ok=True)

        def file(path: Path, schema: pa.Schema) -> FileSink:
            return files.enter_context(FileSink(path, schema, overwrite=options.overwrite))

        self.results: Sink = (
            Preview(query.schema) if options.out is None else file(options.out, query.schema)
        )
        self._late = {s.name: file(late[s.name], late_schema(s)) for s in query.streams if late}
        self._bad = None if options.bad_rows is None else file(options.bad_rows, BAD_ROWS_SCHEMA)

    def write_late(self, stream: str, rows: pa.Table) -> None:
        """Write late rows of a stream."""
        for batch in rows.to_batches():
            self._late[stream].write(batch)

    def write_bad(self, sources: dict[str, Source]) -> None:
        """Write the malformed rows, those of a table that is two streams once."""
        if self._bad is not None:
            for name, source in _distinct(sources).items():
                self._bad.write(bad_rows_batch(self._titles[name], source.bad.rows))


class Preview:
    """The first results, for a look."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema
        self._first: list[pa.RecordBatch] = []
        self._kept = 0
        self.rows = 0

    def write(self, rows: pa.RecordBatch) -> None:
        """Keep some of the rows, if there is room."""
        self.rows += rows.num_rows
        if self._kept < PREVIEW_ROWS:
            self._first.append(rows.slice(0, PREVIEW_ROWS - self._kept))
            self._kept += self._first[-1].num_rows

    def show(self) -> None:
        """Print the rows as a table."""
        table = pa.Table.from_batches(self._first, self._schema)
        show_table(table)
        if self.rows > self._kept:
            say(f"… and {count(self.rows - self._kept, 'more result')} (--out FILE writes all)")


def show_table(table: pa.Table) -> None:
    """Print rows under the names of their columns."""
    rows = [table.schema.names, *([cell(v) for v in row.values()] for row in table.to_pylist())]
    numeric = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    left = [i for i, f in enumerate(table.schema) if not any(is_(f.type) for is_ in numeric)]
    header, *lines = aligned(rows, left=left)
    say(header, style="bold")
    for line in lines:
        say(line)
    if not lines:
        say("no results")


def summary(execution: Execution, titles: dict[str, str], options: RunOptions) -> None:
    """What became of the rows, and what it took."""
    counts = execution.counts
    bad = {name: len(source.bad) for name, source in execution.sources.items()}
    kinds = {
        "rows": counts.rows,
        "late": counts.late,
        "no time": counts.null_times,
        "null key": counts.null_keys,
        "filtered": counts.filtered,
        "malformed": bad,
    }
    lines = [["stream", *kinds]]
    lines += [[titles[name], *(f"{c[name]:,}" for c in kinds.values())] for name in counts.rows]
    for line in aligned(lines):
        say(line)
    where = f" in {options.out}" if options.out is not None else ""
    rate = execution.rows / max(execution.seconds, 1e-9)
    say(f"{count(counts.results, 'result')}{where}")
    say(
        f"{execution.seconds:.2f} s, {rate:,.0f} rows/s; state at most "
        f"{count(execution.peak_state_rows, 'tuple')}, {size(execution.peak_state_bytes)}"
    )
    for moved in execution.run.migrations:
        if moved.status != "refused":
            say(f"after batch {moved.start} the plan became {_plan_text(moved.new)}")
    for remark in _remarks(execution, options):
        say(remark, style="yellow")


def _remarks(execution: Execution, options: RunOptions) -> list[str]:
    remarks = []
    late = sum(execution.counts.late.values())
    if late and options.late is None:
        remarks.append(
            f"{count(late, 'late row is', 'late rows are')} not in the results: --late PATH "
            "keeps them, a longer --watermark or --order event-time joins them"
        )
    bad = [row for source in _distinct(execution.sources).values() for row in source.bad.rows]
    if bad and options.bad_rows is None:
        shown = "".join(f"\n  {row.file}, line {row.line}: {row.reason}" for row in bad[:3])
        more = f"\n  … and {len(bad) - 3:,} more" if len(bad) > 3 else ""
        remarks.append(
            f"{count(len(bad), 'malformed row was', 'malformed rows were')} set aside "
            f"(--bad-rows FILE writes them):{shown}{more}"
        )
    return remarks


def _distinct(sources: dict[str, Source]) -> dict[str, Source]:
    """The sources, each under the first of its streams."""
    seen: dict[int, str] = {}
    for name, source in sources.items():
        seen.setdefault(id(source), name)
    return {name: sources[name] for name in seen.values()}
