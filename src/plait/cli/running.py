"""`plait run`: the query over its sources, into files or a preview, with a summary."""

from __future__ import annotations

from contextlib import ExitStack

from plait.cli.inputs import chosen_plan, files_read, open_question
from plait.cli.live import progress, waiting
from plait.cli.options import PlanChoice, QuestionOptions, RunChoice
from plait.cli.outputs import Outputs, Preview, distinct
from plait.cli.show import aligned, say
from plait.figures import count, size
from plait.local.run import Execution
from plait.plan.jtree import Join, Leaf
from plait.plan.labels import plan_label
from plait.plan.routed import Plan


def run_query(question: QuestionOptions, choice: PlanChoice, options: RunChoice) -> None:
    """Run to the end, and say what became of the rows."""
    asked, titles = open_question(question, options.max_bad_rows)
    plan = chosen_plan(choice, asked)
    if options.adapt is not None:
        asked = asked.adapt(options.adapt)
    if options.explain:
        say(asked.explain(plan) + "\n")
    with ExitStack() as files:
        outputs = Outputs(files, asked.query, titles, options, files_read(question, choice))
        with waiting("looking at the event times ...", quiet=options.quiet):
            execution = asked.start(
                plan=plan,
                order=options.order,
                batch_rows=options.batch_rows,
                batch_seconds=options.batch_seconds,
                late=outputs.write_late if options.late is not None else None,
            )
        with progress(execution, quiet=options.quiet) as watch:
            for results in execution.results(watch):
                outputs.results.write(results)
        outputs.write_bad(execution.sources)
        outputs.complete(execution.run.events)
    if isinstance(outputs.results, Preview):
        outputs.results.show()
    if not options.quiet:
        if isinstance(outputs.results, Preview):
            say()
        summary(execution, titles, options)


def _plan_text(plan: Plan) -> str:
    return plan_label(plan) if isinstance(plan, Join | Leaf) else str(plan)


def summary(execution: Execution, titles: dict[str, str], options: RunChoice) -> None:
    """What became of the rows, and what it took."""
    counts = execution.counts
    bad = {name: len(source.bad) for name, source in execution.sources.items()}
    kinds = {
        "rows": counts.rows,
        "late": counts.late,
        "no time": counts.null_times,
        **({"ahead": counts.ahead} if any(counts.ahead.values()) else {}),
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


def _remarks(execution: Execution, options: RunChoice) -> list[str]:
    remarks = []
    late = sum(execution.counts.late.values())
    if late and options.late is None:
        remarks.append(
            f"{count(late, 'late row is', 'late rows are')} not in the results: --late PATH "
            "keeps them, a longer --watermark or --order event-time joins them"
        )
    bad = [row for source in distinct(execution.sources).values() for row in source.bad.rows]
    if bad and options.bad_rows is None:
        shown = "".join(f"\n  {row.file}, line {row.line}: {row.reason}" for row in bad[:3])
        more = f"\n  … and {len(bad) - 3:,} more" if len(bad) > 3 else ""
        remarks.append(
            f"{count(len(bad), 'malformed row was', 'malformed rows were')} set aside "
            f"(--bad-rows FILE writes them):{shown}{more}"
        )
    return remarks
