"""`plait torture`: a campaign against Plait itself, or one case of it again."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from json import dumps
from pathlib import Path

import typer

from plait.cli.show import console, on_terminal, say
from plait.errors import MissingRequirement
from plait.runtime.drafts import write_whole, writing

_NEEDED = {"hypothesis": "hypothesis", "duckdb": "duckdb"}


def torture(
    host: str, seconds: float, seed: int, case: str | None, most_rows: int, json: Path | None
) -> None:
    """Run a campaign, or one case; exit with 1 if an answer was wrong."""
    _check_packages()
    from plait.testing.torture.campaign import Failure, campaign, repeat
    from plait.testing.torture.tally import Tally

    out = console(stderr=True)
    failures: list[Failure] = []
    if host == "spark":
        from plait.testing.torture import spark

        if case is not None:
            raise typer.BadParameter("rounds on Spark are repeated by --seed", param_hint="--case")
        found = spark.campaign(seconds, seed, say)
        tally = Tally(found.queries, found.rows, found.results, migrations=found.migrations)
        tally.kills = dict(found.kills)
        failures = [Failure(f"seed {seed}", text) for text in found.failures]
    elif case is not None:
        tally, failure = repeat(host, case)
        failures = [failure] if failure else []
    elif on_terminal():
        with out.status(f"torture on {host} ...") as status:
            tally, failure = campaign(host, seconds, seed, status.update, most_rows)
        failures = [failure] if failure else []
    else:
        tally, failure = campaign(host, seconds, seed, say, most_rows)
        failures = [failure] if failure else []
    if json is not None:
        told = {"host": host, "seed": seed, "seconds": seconds, **asdict(tally)}
        with writing(json):
            json.parent.mkdir(parents=True, exist_ok=True)
        write_whole(json, dumps(told | {"failures": [asdict(f) for f in failures]}) + "\n")
    for point, times in sorted(tally.kills.items()):
        print(f"{times:6,} kills  {point}")
    print(tally.text() or "nothing was done")
    for failed in failures:
        again = f"--case {failed.case}" if host != "spark" else f"--seed {seed}"
        print(f"\n{failed.text.rstrip()}\n\nThis repeats it: plait torture --host {host} {again}")
    if failures:
        raise typer.Exit(1)
    print("No answer was wrong.")


def _check_packages() -> None:
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise MissingRequirement(
            f"torture needs {' and '.join(missing)}", remedy="pip install 'plait[torture]'"
        )
