"""Commands for those who ask: run, explain, plan, generate and demo."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from plait.cli.options import (
    JsonOption,
    Limits,
    PlanChoice,
    QuestionOptions,
    RunChoice,
    SecondsOption,
    SeedOption,
    with_values,
)


@with_values
def run(question: QuestionOptions, choice: PlanChoice, running: RunChoice) -> None:
    """Run a query over files and write its results.

    Example: plait run query.sql -s trades=trades.parquet -s quotes=quotes.csv -t ts -o out.parquet
    """
    from plait.cli.running import run_query

    run_query(question, choice, running)


@with_values
def explain(
    question: QuestionOptions, choice: PlanChoice, limits: Limits, json: JsonOption = None
) -> None:
    """Show how a query is understood, and the plan that runs it."""
    from plait.cli.planning import explain_query

    explain_query(question, choice, limits, json)


@with_values
def plan(question: QuestionOptions, limits: Limits, json: JsonOption = None) -> None:
    """Choose a plan from statistics, within limits of CPU and memory; exit with 1 if none fits.

    The tables' columns come from --stream, or from "columns" in the statistics: then no rows are
    needed at all.
    """
    from plait.cli.planning import choose_plan

    raise typer.Exit(choose_plan(question, limits, json))


def generate(
    spec: Annotated[
        Path | None,
        typer.Argument(metavar="SPEC.json", help="A description of the streams; - reads stdin."),
    ] = None,
    preset: Annotated[
        str | None, typer.Option("--preset", metavar="NAME", help="A built-in description: market.")
    ] = None,
    example: Annotated[
        bool, typer.Option("--example", help="Print a description to start from.")
    ] = False,
    seconds: SecondsOption = 60.0,
    seed: SeedOption = 1,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="DIR", help="Where to write NAME.FORMAT files."),
    ] = None,
    format_: Annotated[
        Literal["parquet", "csv", "jsonl"], typer.Option("--format", help="The files' format.")
    ] = "parquet",
) -> None:
    """Write seeded streams to files, to try things out."""
    from plait.cli.generating import MARKET, description, generate_streams
    from plait.cli.show import say

    if example:
        say(MARKET)
    else:
        generate_streams(description(spec, preset), seconds, seed, out, format_)


def demo(
    seconds: SecondsOption = 46.0,
    seed: SeedOption = 1,
    local: Annotated[
        bool, typer.Option("--local", help="In one process, without Spark and Java.")
    ] = False,
) -> None:
    """Show a live join that changes its plan and moves its load, and check its answer."""
    from plait.cli.demo.story import show_demo

    show_demo(seconds, seed, local=local)
