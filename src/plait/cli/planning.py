"""`plait plan` and `plait calibrate`, and the estimates of `plait explain`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from plait.api.sql import Sql, sql
from plait.cli.inputs import Inputs, per_stream, read_text, too_deep
from plait.cli.show import console, on_terminal, say
from plait.errors import StatisticsError
from plait.machine.drafts import writing
from plait.optimize.costs import costs_path, save
from plait.optimize.statistics import read_statistics


@dataclass(frozen=True, slots=True)
class Limits:
    """What the command line says about statistics and limits, as it was typed."""

    stats: Path | None = None
    cpu: float | None = None
    memory: str | None = None

    def applied(self, asked: Sql) -> Sql:
        """The question with what is known of its streams, and with what there is to answer it."""
        if self.stats is not None:
            data = stats_file(self.stats)
            data.pop("columns", None)
            asked = asked.statistics(read_statistics(data, str(self.stats)))
        if self.cpu is not None or self.memory is not None:
            asked = asked.budget(cpu=self.cpu, memory=self.memory)
        return asked


def stats_file(path: Path) -> dict[str, Any]:
    """The statistics as they stand, with the `columns` of the tables that they may give."""
    try:
        data = json.loads(read_text(path))
    except ValueError as error:
        raise StatisticsError(f"{path} is no JSON: {error}") from None
    except RecursionError:
        raise too_deep(path) from None
    if not isinstance(data, dict):
        raise StatisticsError(f"{path} is no object", remedy='write {"rates": {...}}')
    return data


def plan(inputs: Inputs, limits: Limits, *, as_json: bool) -> int:
    """Choose a plan, from files or from the columns in the statistics; 1 if none is qualified."""
    found = limits.applied(_asked(inputs, limits)).planned
    say(json.dumps(found.to_dict(), indent=2) if as_json else found.explain())
    return 0 if found.qualified else 1


def _asked(inputs: Inputs, limits: Limits) -> Sql:
    columns = stats_file(limits.stats).get("columns") if limits.stats is not None else None
    if inputs.streams or columns is None:
        return inputs.asked()
    schemas = _schemas(columns, str(limits.stats))
    times = per_stream(inputs.times or (), "--time", "ts", schemas)
    if isinstance(times, str):
        times = dict.fromkeys(schemas, times)
    late = per_stream(inputs.watermarks or (), "--watermark", '"2 seconds"', schemas)
    return sql(schemas, inputs.sql_text(), time=times, watermark=late)


def _schemas(columns: object, where: str) -> dict[str, pa.Schema]:
    from plait.local.sources.types import parse_type

    if not isinstance(columns, Mapping) or not all(
        isinstance(c, Mapping) for c in columns.values()
    ):
        raise StatisticsError(
            f"{where}: columns is no object of objects",
            remedy='write {"columns": {"trades": {"ts": "timestamp", "sym": "string"}}}',
        )
    return {
        str(table): pa.schema([(str(n), parse_type(str(t))) for n, t in named.items()])
        for table, named in columns.items()
    }


def calibrate(out: Path | None, repeats: int) -> None:
    """Measure what operations cost here, show it and keep it."""
    from plait.local.calibrate import calibrate as measure

    path = out or costs_path()
    with console(stderr=True).status("measuring") as status:

        def note(text: str) -> None:
            if on_terminal():
                status.update(text)

        found = measure(repeats, note=note)
    with writing(path):
        save(found.costs, path)
    for name, value in asdict(found.costs).items():
        say(f"{name:<8} {1e9 * value:12.2f} ns")
    say(f"median error of the fit over {found.runs} runs: {100 * found.error:.1f} %")
    say(f"written: {path}")
