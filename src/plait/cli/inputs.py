"""Turn the options of the command line into a checked query with its sources."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa

from plait.api.sql import Sql, sql
from plait.cli.options import PlanChoice, QuestionOptions
from plait.errors import (
    DuplicateName,
    PlaitError,
    PlanError,
    QueryError,
    SourceError,
    TimeColumnError,
    UnboundedPair,
    UnknownStream,
    did_you_mean,
)
from plait.local.sources import EpochSource, Source, check_time, open_source
from plait.local.sources.bad import DEFAULT_LIMIT
from plait.local.sources.epoch import UNITS
from plait.local.sources.files import input_files
from plait.local.sources.types import parse_type
from plait.machine.drafts import FileId, file_id
from plait.plan.routed import Plan
from plait.plan.text import read_router

MOST_TEXT = 64 << 20
"""Bytes of a query, a plan or a description of streams."""


def open_question(
    question: QuestionOptions, max_bad_rows: int = DEFAULT_LIMIT
) -> tuple[Sql, dict[str, str]]:
    """Open the tables and check the query; also return a title for each stream.

    The title is the name of its table, if that is unique. An error names the option at fault.
    """
    text = sql_text(question)
    paths = _paths(question)
    if not paths:
        raise SourceError(
            "no stream is given",
            remedy="name the rows of each table: --stream trades=trades.parquet",
        )
    types = _types(question, paths)
    tables: dict[str, Source] = {}
    for name, path in paths.items():
        with reading(path):
            tables[name] = open_source(path, columns=types.get(name), max_bad_rows=max_bad_rows)
    times = _times(question, tables)
    watermarks = per_stream(question.watermarks or (), "--watermark", '"2 seconds"', tables)
    try:
        asked = sql(tables, text, time=times, watermark=watermarks)
    except UnknownStream as error:
        if "table" in error.message:
            error.remedy += "; each table of the query needs its rows: --stream NAME=PATH"
        raise
    except TimeColumnError as error:
        if "time(" in error.remedy:
            error.remedy = "say it with --time, for example --time NAME=COLUMN"
        raise
    except UnboundedPair as error:
        error.remedy = "end the query with WITHIN 10 SECONDS, or add a BETWEEN on both times"
        raise
    titles = _titles(asked, tables)
    for name, table in tables.items():
        if not any(source is table for source in asked.sources.values()):
            raise UnknownStream(
                f"--stream {name}: the query has no table {name!r}",
                remedy=did_you_mean(name, dict.fromkeys(titles.values())),
            )
    return asked, titles


def files_read(question: QuestionOptions, choice: PlanChoice) -> frozenset[FileId]:
    """Identify every file that is read, by whatever name it was given."""
    paths = [Path(p) for p in (question.file, choice.plan_file) if p is not None]
    for path in _paths(question).values():
        paths += input_files(path)
    return frozenset(found for path in paths if (found := file_id(path)) is not None)


def chosen_plan(choice: PlanChoice, asked: Sql) -> Plan | None:
    """Read the plan that --plan, --engine or --plan-file gives; None if none does."""
    plan = choice.plan
    if choice.engine is not None:
        if plan is not None:
            raise PlanError("--engine and --plan are both given", remedy="leave one out")
        plan = str(read_router(choice.engine))
    if plan is not None and choice.plan_file is not None:
        raise PlanError("--plan and --plan-file are both given", remedy="leave one out")
    if choice.plan_file is None:
        return None if plan is None else asked.plan(plan)
    text = read_text(choice.plan_file)
    try:
        return asked.plan(text)
    except PlaitError as error:
        error.message = f"{printable(choice.plan_file)}: {error.message}"
        raise


def sql_text(question: QuestionOptions) -> str:
    """Read the query as it was written."""
    if (question.file is None) == (question.text is None):
        both = "a query file and --query are both given" if question.text else "no query is given"
        raise QueryError(both, remedy='give a file, - for standard input, or -q "SELECT ..."')
    if question.text is not None:
        return question.text
    assert question.file is not None
    return sys.stdin.read() if question.file == "-" else read_text(Path(question.file))


def _paths(question: QuestionOptions) -> dict[str, str]:
    return named(question.streams or (), "--stream", "trades=trades.parquet")


def _types(
    question: QuestionOptions, paths: Mapping[str, str]
) -> dict[str, dict[str, pa.DataType]]:
    types: dict[str, dict[str, pa.DataType]] = {}
    for place, type_ in named(question.types or (), "--type", "trades.price=double").items():
        stream, _, column = place.partition(".")
        if not column:
            raise SourceError(f"--type {place} names no column", remedy="write NAME.COLUMN=TYPE")
        check_known(stream, "--type", paths)
        types.setdefault(stream, {})[column] = parse_type(type_)
    return types


def _times(question: QuestionOptions, tables: dict[str, Source]) -> dict[str, str]:
    """Find the event-time column of each table; sources that count are replaced in `tables`."""
    given = per_stream(question.times or (), "--time", "ts", tables) or {}
    if isinstance(given, str):
        given = dict.fromkeys(tables, given)
    times = {}
    for stream, place in given.items():
        column, _, unit = place.rpartition(":")
        if unit not in UNITS or not column or place in tables[stream].schema.names:
            column, unit = place, ""
        if unit:
            tables[stream] = EpochSource(tables[stream], stream, column, unit)
        else:
            check_time(stream, tables[stream], column)
        times[stream] = column
    return times


def _titles(asked: Sql, tables: Mapping[str, Source]) -> dict[str, str]:
    origin = {
        stream: next(name for name, table in tables.items() if table is source)
        for stream, source in asked.sources.items()
    }
    names = list(origin.values())
    titles = {s: table if names.count(table) == 1 else s for s, table in origin.items()}
    # An alias may be the name of another table.
    return titles if len(set(titles.values())) == len(titles) else {s: s for s in origin}


def named(values: Sequence[str], option: str, example: str) -> dict[str, str]:
    """Settings NAME=VALUE, each name once.

    >>> named(["a=1", "b=2"], "--stream", "trades=trades.parquet")
    {'a': '1', 'b': '2'}
    """
    found: dict[str, str] = {}
    for value in values:
        name, equals, setting = value.partition("=")
        if not (name and equals and setting):
            raise PlaitError(
                f"{option} {value!r} is not NAME=VALUE",
                remedy=f"write for example {option} {example}",
            )
        if name in found:
            raise DuplicateName(
                f"{option} is given twice for {name!r}: {found[name]} and {setting}",
                remedy="leave one out",
            )
        found[name] = setting
    return found


def per_stream(
    values: Sequence[str], option: str, example: str, tables: Mapping[str, object]
) -> dict[str, str] | str | None:
    """Settings by table, or one for all of them; None if there are none."""
    if not values:
        return None
    if "" in values:
        raise PlaitError(f"{option} is empty", remedy=f"write for example {option} {example}")
    everywhere = [value for value in values if "=" not in value]
    if not everywhere:
        found = named(values, option, f"NAME={example}")
        for name in found:
            check_known(name, option, tables)
        return found
    if len(everywhere) > 1:
        raise DuplicateName(
            f"{option} is given twice for all streams: {' and '.join(everywhere)}",
            remedy=f"write {option} NAME={everywhere[0]} for one of them",
        )
    own = named([value for value in values if "=" in value], option, f"NAME={example}")
    for name in own:
        check_known(name, option, tables)
    return everywhere[0] if not own else {**dict.fromkeys(tables, everywhere[0]), **own}


def check_known(name: str, option: str, tables: Mapping[str, object]) -> None:
    """Refuse a setting for a table that no --stream names."""
    if name not in tables:
        raise UnknownStream(
            f"{option} {name}: there is no --stream {name!r}", remedy=did_you_mean(name, tables)
        )


def read_text(path: Path, most: int = MOST_TEXT) -> str:
    """The text of a small file, not of an endless device."""
    with reading(path), path.open("rb") as file:
        octets = file.read(most + 1)
        if len(octets) > most:
            raise SourceError(
                f"{printable(path)} has more than {most:,} bytes", remedy="check the path"
            )
        return octets.decode()


@contextmanager
def reading(path: str | Path) -> Iterator[None]:
    """Turn what the system raises into an error that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise SourceError(f"{path} is no text in UTF-8", remedy="check the path") from None
    except (OSError, ValueError) as error:
        # A name that the system does not take is a ValueError.
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(
            f"{printable(path)} cannot be read: {reason}", remedy="check the path"
        ) from None


def printable(path: str | Path, longest: int = 200) -> str:
    """A path as it can be shown.

    >>> printable("trades.csv"), printable("x" * 300)[-3:]
    ('trades.csv', 'xx…')
    """
    text = str(path)
    return text if len(text) <= longest else text[: longest - 1] + "…"


def too_deep(path: Path | str) -> SourceError:
    """The error for JSON that Python cannot read for its depth."""
    return SourceError(f"{path} is nested too deeply", remedy="write it with fewer levels")
