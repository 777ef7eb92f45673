"""`plait torture`: a campaign against Plait itself, or one case of it again."""

from __future__ import annotations

from dataclasses import asdict
from importlib.util import find_spec
from json import dumps
from pathlib import Path

import typer

from plait.cli.show import console, on_terminal, say
from plait.errors import MissingRequirement
from plait.files.drafts import write_whole, writing

_NEEDED = {"hypothesis": "hypothesis", "duckdb": "duckdb"}


def torture(
    host: str, seconds: float, seed: int, case: str | None, most_rows: int, json: Path | None
) -> None:
    """Run a campaign, or one case; exit with 1 if an answer was wrong."""
    _check_packages()
    from plait.workshop.torture.campaign import Failure, campaign, repeat

    failures: list[Failure] = []
    if host == "spark":
        from plait.workshop.torture import spark

        found = spark.campaign(seconds, seed, say) if case is None else spark.repeat(case, say)
        tally, failures = found
    else:
        if case is not None:
            tally, failure = repeat(host, case)
        elif on_terminal():
            with console(stderr=True).status(f"torture on {host} ...") as status:
                tally, failure = campaign(host, seconds, seed, status.update, most_rows)
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
        again = f"plait torture --host {host} --case {failed.case}"
        print(f"\n{failed.text.rstrip()}\n\nThis repeats it: {again}")
    if failures:
        raise typer.Exit(1)
    print("No answer was wrong.")


def _check_packages() -> None:
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise MissingRequirement(
            f"torture needs {' and '.join(missing)}", remedy="pip install 'plait[torture]'"
        )
