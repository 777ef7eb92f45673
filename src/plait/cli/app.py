"""The commands and their options; what they do is in the modules beside this one.

It is longer than others because it is one list: each command with the help of each option.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from plait import __version__

app = typer.Typer(
    name="plait",
    help="Exact, fast multi-way windowed joins of streams.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

QueryArgument = Annotated[
    str | None,
    typer.Argument(metavar="QUERY.sql", help="A file with the query; - reads standard input."),
]
TextOption = Annotated[
    str | None, typer.Option("--query", "-q", metavar="SQL", help="The query itself.")
]
StreamOption = Annotated[
    list[str] | None,
    typer.Option(
        "--stream",
        "-s",
        metavar="NAME=PATH",
        help="The rows of a table: a .parquet, .csv, .tsv or .jsonl file (text also .gz), "
        "a directory of them, or a quoted pattern.",
    ),
]
TimeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--time",
        "-t",
        metavar="[NAME=]COLUMN[:UNIT]",
        help="The event-time column, of one table or of all. With :s, :ms, :us or :ns, an "
        "integer column counts that unit since 1970.",
    ),
]
WatermarkOption = Annotated[
    list[str] | None,
    typer.Option(
        "--watermark",
        "-w",
        metavar="[NAME=]DURATION",
        help='How late rows may come, for one table or for all, for example "2 seconds".',
    ),
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type",
        metavar="NAME.COLUMN=TYPE",
        help="The type of a column in CSV or JSON, in place of what the first rows suggest.",
    ),
]
PlanOption = Annotated[
    str | None,
    typer.Option(
        "--plan",
        metavar="SHAPE",
        help='The join tree, for example "((a b) c)", or mjoin; or eddies or teddies, which do '
        "without.",
    ),
]
EngineOption = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="NAME",
        help='What runs it without a plan: teddies or eddies, or "teddies (lottery)" with the '
        "routing policy: lottery, ordered or random.",
    ),
]
PlanFileOption = Annotated[
    Path | None,
    typer.Option(
        "--plan-file",
        metavar="FILE",
        help="A file with the plan: JSON as plait explain --json writes it, or what --plan takes.",
    ),
]
StatsOption = Annotated[
    Path | None,
    typer.Option(
        "--stats",
        metavar="JSON",
        help="What is known of the streams, as docs/statistics.md says.",
    ),
]
CpuOption = Annotated[
    float | None,
    typer.Option("--cpu", metavar="CORES", help="CPU there is: 0.8 is 80 % of one core."),
]
MemoryOption = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help='Memory there is: "2 GB".')
]


@app.callback(invoke_without_command=True)
def _plait(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
) -> None:
    if version:
        print(f"plait {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command()
def run(
    query: QueryArgument = None,
    text: TextOption = None,
    stream: StreamOption = None,
    time: TimeOption = None,
    watermark: WatermarkOption = None,
    type_: TypeOption = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the results to a .parquet, .csv or .jsonl file.",
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace output files that exist.")
    ] = False,
    late: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            help="Write late rows: to DIR/NAME.parquet, or, with an extension, FILE-NAME.EXT.",
        ),
    ] = None,
    bad_rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write malformed rows with the reasons.")
    ] = None,
    max_bad_rows: Annotated[
        int, typer.Option(min=0, metavar="N", help="Malformed rows allowed per table.")
    ] = 1000,
    order: Annotated[
        Literal["event-time", "file"],
        typer.Option(
            help="event-time: each table sorted by time, no row is late. "
            "file: rows arrive as they stand, watermarks decide what is late."
        ),
    ] = "event-time",
    batch_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows per batch, over all streams.")
    ] = 100_000,
    batch_seconds: Annotated[
        float | None,
        typer.Option(metavar="S", help="Event time per batch, in place of --batch-rows."),
    ] = None,
    plan: PlanOption = None,
    engine: EngineOption = None,
    plan_file: PlanFileOption = None,
    adapt: Annotated[
        bool | None,
        typer.Option(
            "--adapt/--no-adapt",
            help="Change the plan while it runs, if another is better. [default: unless one is "
            "given]",
            show_default=False,
        ),
    ] = None,
    events: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write what was decided and why, for plait replay."),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan first.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
) -> None:
    """Run a query over files and write its results.

    Example: plait run query.sql -s trades=trades.parquet -s quotes=quotes.csv -t ts -o out.parquet
    """
    from plait.cli.inputs import Inputs, engine_or_plan
    from plait.cli.outputs import RunOptions
    from plait.cli.running import run_query

    plan = engine_or_plan(engine, plan)
    inputs = Inputs(query, text, stream, time, watermark, type_, plan, plan_file, max_bad_rows)
    options = RunOptions(
        out, overwrite, late, bad_rows, order, batch_rows, batch_seconds, explain, quiet, adapt,
        events,
    )  # fmt: skip
    run_query(inputs, options)


@app.command()
def explain(
    query: QueryArgument = None,
    text: TextOption = None,
    stream: StreamOption = None,
    time: TimeOption = None,
    watermark: WatermarkOption = None,
    type_: TypeOption = None,
    plan: PlanOption = None,
    engine: EngineOption = None,
    plan_file: PlanFileOption = None,
    stats: StatsOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, which --plan-file reads.")
    ] = False,
) -> None:
    """Show how a query is understood, and the plan that runs it."""
    from plait.cli.explaining import explain_query
    from plait.cli.inputs import Inputs, engine_or_plan
    from plait.cli.planning import Limits

    plan = engine_or_plan(engine, plan)
    inputs = Inputs(query, text, stream, time, watermark, type_, plan, plan_file)
    explain_query(inputs, Limits(stats, cpu, memory), as_json=as_json)


@app.command(short_help="Choose a plan for statistics and budgets.")
def plan(
    query: QueryArgument = None,
    text: TextOption = None,
    stream: StreamOption = None,
    time: TimeOption = None,
    watermark: WatermarkOption = None,
    type_: TypeOption = None,
    stats: StatsOption = None,
    cpu: CpuOption = None,
    memory: MemoryOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="As JSON, which --plan-file reads.")
    ] = False,
) -> None:
    """Choose a plan from statistics, within limits of CPU and memory; exit with 1 if none fits.

    The tables' columns come from --stream, or from "columns" in the statistics: then no rows are
    needed at all.
    """
    from plait.cli.inputs import Inputs
    from plait.cli.planning import Limits
    from plait.cli.planning import plan as choose_plan

    inputs = Inputs(query, text, stream, time, watermark, type_, None, None)
    raise typer.Exit(choose_plan(inputs, Limits(stats, cpu, memory), as_json=as_json))


@app.command(short_help="Measure what operations cost on this machine.")
def calibrate(
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to keep the costs, in place of the usual place."),
    ] = None,
    repeats: Annotated[
        int, typer.Option(min=1, metavar="N", help="Runs of each workload; the fastest counts.")
    ] = 3,
) -> None:
    """Measure what operations cost on this machine, for the cost model (some seconds)."""
    from plait.cli.planning import calibrate as measure_costs

    measure_costs(out, repeats)


@app.command()
def generate(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="SPEC.json", help="What the streams are like; - reads stdin."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(metavar="NAME", help="A built-in description: market.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a description to start from.")
    ] = False,
    seconds: Annotated[float, typer.Option(metavar="S", help="Event time to cover.")] = 60.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, other rows.")] = 1,
    out: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where to write NAME.FORMAT files.")
    ] = None,
    format_: Annotated[
        Literal["parquet", "csv", "jsonl"], typer.Option("--format", help="The files' format.")
    ] = "parquet",
) -> None:
    """Write seeded streams to files, to try things out."""
    from plait.cli.generating import generate_streams

    generate_streams(spec, preset, example, seconds, seed, out, format_)


@app.command(short_help="Ask what another policy would have decided.")
def replay(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="EVENTS", help="A log of events, or the folder events/ of a checkpoint."
        ),
    ],
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--policy", "-p", metavar="KEY=VALUE", help="Override a threshold of the policy."
        ),
    ] = None,
    as_json: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write the decisions as JSON.")
    ] = None,
) -> None:
    """Ask what another policy would have decided, from what was known then.

    Example: plait replay checkpoint/plait/join/events -p margin=0.5 -p rest=60
    """
    from plait.cli.replaying import replay_events

    replay_events(events, option or [], as_json)


@app.command(short_help="Let a stopped query go on with more or fewer processors.")
def rebalance(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The query's checkpointLocation.")
    ],
    processors: Annotated[
        int, typer.Option("--processors", "-p", min=1, metavar="N", help="How many from now on.")
    ],
    output: Annotated[
        str,
        typer.Option(
            metavar="DIR",
            help="The folder that the query writes to, if it writes files (parquet, csv, json, "
            "...); none if it writes elsewhere.",
        ),
    ],
) -> None:
    """Let a query on Spark that has stopped go on with another number of processors.

    Stop the query first, and start it again afterwards, as before. Its partition groups move to
    the new processors while it runs, and no result is lost or repeated.
    """
    from plait.cli.rebalancing import rebalance as run_rebalance

    run_rebalance(checkpoint, processors, output)


@app.command(short_help="Let a query go on although its question has changed.")
def upgrade(
    checkpoint: Annotated[
        str, typer.Argument(metavar="CHECKPOINT", help="The query's checkpointLocation.")
    ],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what the change means.")
    ] = False,
) -> None:
    """Let a query on Spark go on from its checkpoint although its question has changed.

    Make the changed query with to_df(checkpoint=...) first: it is refused, and what has changed is
    kept. This says what each change means, and agrees to it. Then start the query.
    """
    from plait.cli.upgrading import upgrade as run_upgrade

    run_upgrade(checkpoint, dry_run=dry_run)


CheckpointArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="The query's checkpointLocation, a folder or a URL such as s3://bucket/checkpoint; or "
        "the control directory of one of its joins.",
    ),
]


@app.command(short_help="Show a query on Spark in the browser, live.")
def console(
    checkpoint: CheckpointArgument,
    port: Annotated[
        int, typer.Option(min=0, max=65535, metavar="N", help="The port; 0 takes a free one.")
    ] = 0,
    control: Annotated[
        bool, typer.Option("--control", help="Let plans be asked for on its pages.")
    ] = False,
) -> None:
    """Show a query on Spark in the browser: its plans, estimates, decisions and loads.

    The query may run elsewhere or have ended: only its checkpoint is read. The console listens on
    this machine only and answers nothing without the token in the address that is printed.
    """
    from plait.cli.showing import serve_console

    serve_console(checkpoint, port, control=control)


@app.command(short_help="Write the pictures of the console into one HTML file.")
def report(
    checkpoint: CheckpointArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write it.")
    ] = Path("report.html"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that exists.")
    ] = False,
) -> None:
    """Write the pictures of the console into one HTML file, for example to attach to a ticket."""
    from plait.cli.showing import write_report

    write_report(checkpoint, out, overwrite=overwrite)


@app.command(short_help="Remove what failed batches have left in a Delta table.")
def vacuum(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The folder of a Delta table.")],
    older_than: Annotated[
        str,
        typer.Option(metavar="DURATION", help="How old files must be; no batch takes as long."),
    ] = "7 days",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only name them.")] = False,
) -> None:
    """Remove the files that batches which failed have left in the folder of a Delta table.

    Only files that write_delta wrote and that no version of the table names are removed.
    """
    from plait.cli.vacuuming import vacuum as run_vacuum

    run_vacuum(table, older_than, dry_run=dry_run)


@app.command(short_help="Print the folder of the Java that Spark runs on here.")
def java() -> None:
    """Print the folder of the Java that Spark runs on here: export JAVA_HOME=$(plait java)."""
    from plait.spark.environment.java import provide_java

    print(provide_java())


@app.command(short_help="See a live join change its plan and move its load.")
def demo(
    seconds: Annotated[
        float, typer.Option(min=1.0, metavar="S", help="Event time to cover.")
    ] = 46.0,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, other rows.")] = 1,
    local: Annotated[
        bool, typer.Option("--local", help="In one process, without Spark and Java.")
    ] = False,
) -> None:
    """Show a live join that changes its plan and moves its load, and check its answer."""
    from plait.cli.demo.story import show_demo

    show_demo(seconds, seed, local=local)
