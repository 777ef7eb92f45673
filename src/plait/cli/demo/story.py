"""`plait demo`: a live join whose streams turn over, beside the same join with its plan frozen.

On Spark where it can be had, and otherwise in this process. Every batch goes to both runs in turn.
At the end DuckDB checks the answer.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from plait.adapt.policy import PlanPolicy
from plait.api.sql import Sql, sql
from plait.cli.demo.batches import DemoBatch, RunBatch, bar, changes_of, has_moved, median
from plait.cli.demo.outage import (
    PLAN,
    QUERY,
    WATERMARK,
    Outage,
    cut_arrivals,
    streams,
    within_reach,
)
from plait.cli.live import waiting
from plait.cli.outputs import show_table
from plait.cli.show import aligned, say
from plait.errors import PlaitError
from plait.local.host import LocalRun
from plait.spark.environment import java
from plait.testing.oracle.checksum import checksum_batches
from plait.testing.oracle.duck import count_and_checksum

ADAPTIVE, FROZEN = "adaptive", "frozen"
SAMPLE = 5
MARGIN = 0.6
"""Only what pays a lot is shown: a change of plan must save this share of the CPU."""
_PACE = 2.2
"""Seconds between two batches in the hot spot, as live streams would bring them. Groups
move between batches that lie ahead: if one followed the other at once, many would pass first."""
_PART = 4.0
"""Seconds of requests that DuckDB joins at a time, with all that is within their reach: its
hash join does not look at time before it has paired all rows of a host."""
_LEAST_SCALE = 1.0
"""Seconds of the longest bar, at least."""


@dataclass(slots=True)
class DemoResults:
    """The results of a run: how many, which (as a checksum), and the first ones."""

    results: int = 0
    checksum: int = 0
    sample: list[pa.RecordBatch] = field(default_factory=list)

    def add(self, rows: pa.Table) -> None:
        """Count the results of a batch."""
        self.results += rows.num_rows
        self.checksum = (self.checksum + checksum_batches(rows.to_batches())) % 2**64
        if rows.num_rows and len(self.sample) < SAMPLE:
            self.sample += rows.slice(0, 1).to_batches()


def show_demo(seconds: float, seed: int, *, local: bool = False) -> None:
    """Generate, explain, run and check; `local` does without Spark."""
    if not 1 <= seconds < math.inf:
        raise PlaitError(f"--seconds is {seconds:g}", remedy="give a finite number, at least 1")
    course = Outage(seconds)
    with waiting("Generating streams ..."):
        tables = streams(course, seed)
    asked = _asked(tables)
    _title("Three live streams of a thousand hosts, and a question")
    rows = ", ".join(f"{table.num_rows:,} {name}" for name, table in tables.items())
    say(f"{seconds:g} s of them: {rows}. Up to 20 % arrive out of order, by up to 0.8 s.")
    say("Which requests were slow on a busy host, around an error there?\n")
    say(QUERY)
    _title("The plan to begin with: errors are rare, so look for their metrics first")
    say(asked.explain(PLAN).partition("\n\n")[2])
    if not local and (why := java.missing()):
        say(f"\nThis runs in one process, without Spark: {why}.", style="bold yellow")
        local = True
    where = "in this process" if local else "on Spark"
    _title(f"The run {where}, in batches of {course.batch:g} s of event time")
    say(f"Every batch goes to two runs in turn. Both begin with {PLAN}; the second keeps it.")
    say(
        "The case is made up for contrast: the first run changes its plan only to save "
        f"{MARGIN:.0%} of the CPU (margin={MARGIN:g}, by default {PlanPolicy().margin:g})."
    )
    with _running(tables, course, local=local) as (turns, found):
        _tell(turns, course, local=local)
        answers = {name: found(name) for name in (ADAPTIVE, FROZEN)}
    answer = answers[ADAPTIVE]
    if answer.sample:
        _title(f"{len(answer.sample)} of the results")
        show_table(pa.Table.from_batches(answer.sample, asked.query.schema))
    _title("The proof: the same join by DuckDB, which knows nothing of batches and plans")
    _prove(asked, answer)


def _asked(sources: Mapping[str, Any]) -> Sql:
    return sql(sources, QUERY, watermark=WATERMARK)


def _adaptive(sources: Mapping[str, Any]) -> Sql:
    return _asked(sources).adapt(PlanPolicy(margin=MARGIN))


def _frozen(sources: Mapping[str, Any]) -> Sql:
    return _asked(sources).adapt(False).balance(False)


# -- the story


def _tell(turns: Mapping[str, RunBatch], course: Outage, *, local: bool) -> None:
    """Run batch after batch, and say what happens."""
    both = _batches(course.hot, course)
    last = math.ceil(course.seconds / course.batch - 1e-9)
    news = {
        _batches(course.silent, course): "An outage begins: requests no longer get through.",
        _batches(course.flooded, course): "Errors flood in, and requests are rare. What was the "
        "best join order is now the worst.",
        both: "Nearly half of all rows are errors of one host now: a hot spot. "
        + (
            "In one process, they cannot go elsewhere."
            if local
            else f"(The frozen run stops here; from now on a batch begins every {_PACE:g} s.)"
        ),
    }
    ours: list[DemoBatch] = []
    theirs: list[DemoBatch] = []
    changed: list[int] = []
    due = 0.0
    for number in range(last):
        if number in news:
            _event(f"{_clock(number * course.batch)}  {news[number]}", "bold yellow")
        if number in (0, both):
            beside = "" if local else f"{'rows':<15}CPU, by processor"
            _header("seconds of the frozen run" if number < both else beside)
        what = f"batch {number + 1} of {last} ..."
        with waiting("batch 1, while everything starts ..." if number == 0 else what):
            if number >= both and not local:
                time.sleep(max(0.0, due - time.monotonic()))
                due = time.monotonic() + _PACE
            ours.append(turns[ADAPTIVE](number))
        if number < both:
            with waiting(what):
                theirs.append(turns[FROZEN](number))
        _line(ours, theirs, course, beside=number < both)
        for text in ours[-1].changes:
            changed.append(number)
            _event(f"{' ' * 5}  {text}", "bold green")
        for text in ours[-1].moves:
            _event(f"{' ' * 5}  {text}", "bold cyan")
    _sum_up(ours, theirs, course, changed)


def _sum_up(
    ours: Sequence[DemoBatch], theirs: Sequence[DemoBatch], course: Outage, changed: Sequence[int]
) -> None:
    flooded, both = _batches(course.flooded, course), _batches(course.hot, course)
    say("")
    rows, results = sum(batch.rows for batch in ours), sum(batch.results for batch in ours)
    say(f"{rows:,} rows, {results:,} results, {sum(batch.late for batch in ours):,} late rows.")
    after = [n for n in changed if flooded <= n < both]
    if after and after[-1] + 1 < both:
        before, then = slice(flooded, after[0] + 1), slice(after[-1] + 1, both)
        say(
            f"The flood: batches took {median(ours[before]):.2f} s until the plan changed and "
            f"{median(ours[then]):.2f} s afterwards; the frozen plan took "
            f"{median(theirs[then]):.2f} s for the same batches.",
            style="bold",
        )
    _sum_up_moves(ours[both:])


def _sum_up_moves(hot: Sequence[DemoBatch]) -> None:
    """Compare the load before it was decided to move groups with that after they had moved."""
    if hot and len(hot[-1].routed) > 1:
        say(f"The hot spot: {moves_summary(hot)}.", style="bold")


def moves_summary(hot: Sequence[DemoBatch]) -> str:
    """Tell what moving groups did, from the batches since the hot spot began."""
    decided = [i for i, batch in enumerate(hot) if batch.moves]
    moved = [i for i, batch in enumerate(hot) if any(has_moved(text) for text in batch.moves)]
    if not decided:
        return "the load is even enough, so no groups moved"
    if not moved:
        return "the streams ended before the move was complete"
    if moved[0] + 1 == len(hot):
        return "the move was complete with the last batch, too late to show what it gained"
    before, after = hot[: decided[0] + 1], hot[moved[-1] + 1 :] or hot[moved[0] + 1 :]
    return (
        f"the busier processor had {_busiest(before, 'routed'):.0%} of the rows and "
        f"{_busiest(before, 'loads'):.0%} of the CPU time before, and "
        f"{_busiest(after, 'routed'):.0%} and {_busiest(after, 'loads'):.0%} afterwards"
    )


def _busiest(batches: Sequence[DemoBatch], what: str) -> float:
    """The share of the processor that had most of it."""
    sums = [sum(parts) for parts in zip(*(getattr(batch, what) for batch in batches), strict=True)]
    return max(sums, default=0) / (sum(sums) or 1)


def _header(last: str) -> None:
    say(f"{'batch':>5}  {'time':>5} {'rows':>8} {'results':>8}  {'seconds':<32}{last}", "bold")


def _line(
    ours: Sequence[DemoBatch], theirs: Sequence[DemoBatch], course: Outage, *, beside: bool
) -> None:
    batch = ours[-1]
    # The first batch pays for the start of Spark; the others set the scale.
    usual = [*ours[1:], *theirs[1:]] or [batch]
    scale = max(_LEAST_SCALE, *(one.seconds for one in usual))
    other = _bar(theirs[-1].seconds, scale) if beside else batch.divided
    if len(ours) == 1:
        other += "   (the first batches pay for the start)"
    clock = _clock(batch.number * course.batch)
    say(
        f"{batch.number:>5}  {clock} {batch.rows:>8,} {batch.results:>8,}  "
        f"{_bar(batch.seconds, scale):<32}{other}"
    )


def _bar(seconds: float, scale: float) -> str:
    return f"{seconds:5.2f} {bar(seconds, scale)}"


def _batches(seconds: float, course: Outage) -> int:
    return round(seconds / course.batch)


def _clock(seconds: float) -> str:
    return f"{int(seconds) // 60:2}:{int(seconds) % 60:02}"


def _event(text: str, style: str) -> None:
    say(text, style=style)


def _title(text: str) -> None:
    say(f"\n{text}", style="bold")


# -- the runs


@contextmanager
def _running(
    tables: Mapping[str, pa.Table], course: Outage, *, local: bool
) -> Iterator[tuple[Mapping[str, RunBatch], Callable[[str], DemoResults]]]:
    """Both runs, and what gives the results of each when they are done."""
    if local:
        batches = cut_arrivals(tables, course.batch)
        runs = {
            ADAPTIVE: _LocalTurns(_adaptive(tables), batches),
            FROZEN: _LocalTurns(_frozen(tables), batches),
        }
        yield {name: run.turn for name, run in runs.items()}, lambda name: runs[name].found
        return
    from plait.cli.demo.on_spark import running_on_spark

    with tempfile.TemporaryDirectory(prefix="plait-demo-") as folder:
        scratch = Path(folder)
        schema = _asked(tables).query.schema

        def found(name: str) -> DemoResults:
            answer = DemoResults()
            for path in sorted((scratch / f"out-{name}").glob("*/*.parquet")):
                answer.add(pq.read_table(path).cast(schema))
            return answer

        asks = {
            ADAPTIVE: _adaptive,
            FROZEN: _frozen,
        }
        limits = {FROZEN: _batches(course.hot, course)}
        with running_on_spark(tables, asks, PLAN, course.batch, limits, scratch) as turns:
            yield turns, found


class _LocalTurns:
    """A run in this process."""

    def __init__(self, asked: Sql, batches: Sequence[Mapping[str, pa.Table]]) -> None:
        adapt = asked.adaptive if isinstance(asked.adaptive, PlanPolicy) else False
        self._run = LocalRun(asked.query, asked.plan(PLAN), adapt=adapt)
        self._batches = batches
        self._seen = 0
        self.found = DemoResults()

    def turn(self, number: int) -> DemoBatch:
        """Run one batch."""
        batch = self._batches[number]
        late = sum(self._run.counts.late.values())
        begin = time.perf_counter()
        results = self._run.push(batch)
        seconds = time.perf_counter() - begin
        self.found.add(results)
        events, self._seen = self._run.events[self._seen :], len(self._run.events)
        rows = sum(table.num_rows for table in batch.values())
        return DemoBatch(
            number=number + 1,
            rows=rows,
            results=results.num_rows,
            late=sum(self._run.counts.late.values()) - late,
            seconds=seconds,
            routed=(rows,),
            changes=changes_of(events),
        )


# -- the proof


def _prove(asked: Sql, answer: DemoResults) -> None:
    if importlib.util.find_spec("duckdb") is None:
        say("DuckDB is not installed; with it (pip install 'plait[bench]') the demo checks itself.")
        return
    begin = time.perf_counter()
    with waiting("DuckDB joins ..."):
        found = [
            count_and_checksum(asked.query, part) for part in within_reach(asked.sources, _PART)
        ]
    results, checksum = (sum(column) for column in zip(*found, strict=True))
    checksum %= 2**64
    took = time.perf_counter() - begin
    lines = [["", "results", "checksum"]]
    for name, count, total in (
        ("Plait", answer.results, answer.checksum),
        ("DuckDB", results, checksum),
    ):
        lines.append([name, f"{count:,}", f"{total:016x}"])
    for line in aligned(lines):
        say(line)
    if (answer.results, answer.checksum) != (results, checksum):
        raise PlaitError("the answers differ", remedy="this is a bug in Plait: please report it")
    say(
        f"The same results, every one of them. (DuckDB took {took:.1f} s.)",
        style="bold green",
    )
