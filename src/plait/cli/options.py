"""The options that commands share, each declared once.

An option that stands alone is an annotated type. Options that belong together are the fields of a
value: `with_values` gives a command that takes such a value one option for each of its fields.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from plait.local.options import BATCH_ROWS, Order

JsonOption = Annotated[
    Path | None,
    typer.Option("--json", metavar="FILE", help="Write it as JSON; - is standard output."),
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", help="Replace files that exist.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Only say what it would do, and change nothing.")
]
SecondsOption = Annotated[
    float, typer.Option("--seconds", metavar="S", help="Event time to cover.")
]
SeedOption = Annotated[
    int, typer.Option("--seed", min=0, metavar="N", help="Another seed generates other rows.")
]
CheckpointArgument = Annotated[
    str,
    typer.Argument(
        metavar="CHECKPOINT",
        help="The query's checkpointLocation: a folder, or a URL such as s3://bucket/checkpoint.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionOptions:
    """What is asked, as it was typed: the query and the tables it reads."""

    file: Annotated[
        str | None,
        typer.Argument(metavar="QUERY.sql", help="A file with the query; - reads standard input."),
    ] = None
    text: Annotated[
        str | None, typer.Option("--query", "-q", metavar="SQL", help="The query itself.")
    ] = None
    streams: Annotated[
        list[str] | None,
        typer.Option(
            "--stream",
            "-s",
            metavar="NAME=PATH",
            help="The rows of a table: a .parquet, .csv, .tsv or .jsonl file (text also .gz), "
            "a directory of them, or a quoted pattern.",
        ),
    ] = None
    times: Annotated[
        list[str] | None,
        typer.Option(
            "--time",
            "-t",
            metavar="[NAME=]COLUMN[:UNIT]",
            help="The event-time column, of one table or of all. With :s, :ms, :us or :ns, an "
            "integer column counts that unit since 1970.",
        ),
    ] = None
    watermarks: Annotated[
        list[str] | None,
        typer.Option(
            "--watermark",
            "-w",
            metavar="[NAME=]DURATION",
            help='How late rows may come, for one table or for all, for example "2 seconds".',
        ),
    ] = None
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="NAME.COLUMN=TYPE",
            help="The type of a column in CSV or JSON, in place of what the first rows suggest.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanChoice:
    """The plan or the engine that the user chose, as it was typed."""

    plan: Annotated[
        str | None,
        typer.Option(
            "--plan",
            metavar="SHAPE",
            help='The join tree, for example "((a b) c)", or mjoin; or eddies or teddies, which '
            "do without.",
        ),
    ] = None
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            metavar="NAME",
            help='What runs it without a plan: teddies or eddies, or "teddies (lottery)" with the '
            "routing policy: lottery, ordered or random.",
        ),
    ] = None
    plan_file: Annotated[
        Path | None,
        typer.Option(
            "--plan-file",
            metavar="FILE",
            help="A file with the plan: JSON as plait explain --json FILE writes it, or what "
            "--plan takes.",
        ),
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is known of the streams, and the resources there are, as it was typed."""

    stats: Annotated[
        Path | None,
        typer.Option(
            "--stats",
            metavar="FILE",
            help="What is known of the streams, in JSON, as docs/statistics.md says.",
        ),
    ] = None
    cpu: Annotated[
        float | None,
        typer.Option("--cpu", metavar="CORES", help="CPU there is: 0.8 is 80 % of one core."),
    ] = None
    memory: Annotated[
        str | None, typer.Option("--memory", metavar="SIZE", help='Memory there is: "2 GB".')
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """How a query is run and where its rows go, as it was typed."""

    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help="Write the results to a .parquet, .csv or .jsonl file.",
        ),
    ] = None
    overwrite: OverwriteOption = False
    late: Annotated[
        Path | None,
        typer.Option(
            "--late",
            metavar="PATH",
            help="Write late rows: to DIR/NAME.parquet, or, with an extension, FILE-NAME.EXT.",
        ),
    ] = None
    bad_rows: Annotated[
        Path | None,
        typer.Option("--bad-rows", metavar="FILE", help="Write malformed rows with the reasons."),
    ] = None
    max_bad_rows: Annotated[
        int,
        typer.Option("--max-bad-rows", min=0, metavar="N", help="Malformed rows allowed."),
    ] = 1000
    order: Annotated[
        Order,
        typer.Option(
            "--order",
            help="event-time: each table sorted by time, no row is late. "
            "file: rows arrive as they stand, watermarks decide what is late.",
        ),
    ] = "event-time"
    batch_rows: Annotated[
        int,
        typer.Option("--batch-rows", min=1, metavar="N", help="Rows per batch, over all streams."),
    ] = BATCH_ROWS
    batch_seconds: Annotated[
        float | None,
        typer.Option(
            "--batch-seconds", metavar="S", help="Event time per batch, in place of --batch-rows."
        ),
    ] = None
    adapt: Annotated[
        bool | None,
        typer.Option(
            "--adapt/--no-adapt",
            help="Change the plan while it runs, if another is better. [default: unless one is "
            "given]",
            show_default=False,
        ),
    ] = None
    events: Annotated[
        Path | None,
        typer.Option(
            "--events", metavar="FILE", help="Write each decision and why, for plait query replay."
        ),
    ] = None
    explain: Annotated[bool, typer.Option("--explain", help="Show the plan first.")] = False
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False


def with_values(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command one option for each field of the dataclasses that it takes.

    The fields of a dataclass carry their options; the command gets the value, built from them.
    """
    hints = get_type_hints(command, include_extras=True)
    values: dict[str, type] = {}
    parameters: list[Parameter] = []
    for name, parameter in signature(command).parameters.items():
        kind = hints[name]
        if isinstance(kind, type) and is_dataclass(kind):
            values[name] = kind
            types = get_type_hints(kind, include_extras=True)
            parameters += [
                Parameter(
                    field.name,
                    Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=types[field.name],
                )
                for field in fields(kind)
            ]
        else:
            only = Parameter.KEYWORD_ONLY
            parameters.append(parameter.replace(kind=only, annotation=kind))

    def run(**given: Any) -> None:
        for name, kind in values.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        command(**given)

    run.__name__, run.__doc__ = command.__name__, command.__doc__
    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    return run
