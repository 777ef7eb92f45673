"""The commands `bench`, `experiment` and `torture`, with their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from plait.cli.entry import new_app
from plait.cli.options import JsonOption
from plait.errors import PlaitError

app = new_app("plait-lab", "How Plait is tested and measured.")

NameArgument = Annotated[str | None, typer.Argument(metavar="NAME", help="Which one.")]
ListOption = Annotated[bool, typer.Option("--list", help="Print the names, one per line.")]
PlotOption = Annotated[
    Path | None, typer.Option("--plot", metavar="DIR", help="Draw the figure into a directory.")
]
SettingOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", metavar="KEY=VALUE", help="Override a parameter."),
]


@app.command()
def bench(
    name: NameArgument = None,
    list_: ListOption = False,
    json: JsonOption = None,
    plot: PlotOption = None,
    option: SettingOption = None,
    minutes: Annotated[
        float | None, typer.Option(metavar="M", help="How long, for those that run for a time.")
    ] = None,
    runtime: Annotated[
        Literal["local", "spark"] | None,
        typer.Option(help="Where, for those that can run on both; spark: on both."),
    ] = None,
) -> None:
    """Measure Plait, beside its peers."""
    from plait_lab.cli.measuring import measure

    given = [*(option or []), *([] if minutes is None else [f"minutes={minutes:g}"])]
    if runtime is not None:
        given.append(f"runtimes={'local' if runtime == 'local' else 'local,spark'}")
    measure("bench", name, list_, json, plot, given)


@app.command()
def experiment(
    name: NameArgument = None,
    list_: ListOption = False,
    json: JsonOption = None,
    plot: PlotOption = None,
    option: SettingOption = None,
    all_: Annotated[
        bool, typer.Option("--all", help="Repeat all of them; --json is then a directory.")
    ] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report", help="Write docs/reproduction.md from the figures in the directory."
        ),
    ] = False,
) -> None:
    """Repeat an experiment of the papers, or all of them."""
    from plait_lab.cli.measuring import measure, measure_all

    if (all_ or report) and name is None:
        measure_all(json, run=all_, report=report)
        return
    if all_ or report:
        raise PlaitError("one experiment, or all of them?", remedy="leave out the name, or --all")
    measure("experiment", name, list_, json, plot, option or [])


@app.command(short_help="Try to make Plait give a wrong answer.")
def torture(
    host: Annotated[
        Literal[
            "local",
            "simulated",
            "simulated-upgrades",
            "simulated-sites",
            "spark",
            "spark-local",
            "spark-cluster",
            "spark-sites",
        ],
        typer.Option(help="Where: one process, simulated processors or sites that crash, Spark."),
    ] = "local",
    everything: Annotated[
        bool, typer.Option("--all", help="All of them, one after the other, within that time.")
    ] = False,
    seconds: Annotated[float, typer.Option(min=0.1, metavar="S", help="How long.")] = 60.0,
    seed: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="What everything is drawn from; today's date."),
    ] = None,
    case: Annotated[
        str | None, typer.Option(metavar="NAME", help="Run one case again, as it was printed.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="Rows of the largest case.")
    ] = 1_000_000,
    json: JsonOption = None,
) -> None:
    """Try to make Plait give a wrong answer: random queries, data, plans, migrations and crashes.

    Every answer is compared with the definition, or with DuckDB where it is large. A failure is
    made as small as it gets, and what repeats it is printed.
    """
    import datetime

    from plait_lab.cli.torturing import torture as run_torture

    today = int(f"{datetime.datetime.now(datetime.UTC):%Y%m%d}")
    number = today if seed is None else seed
    run_torture(host, seconds, number, case, rows, json, everything=everything)
