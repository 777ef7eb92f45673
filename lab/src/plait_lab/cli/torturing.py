"""`./dev torture`: campaigns against Plait itself, or one case of a campaign again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib.util import find_spec
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from plait.cli.show import console, on_terminal, say
from plait.errors import MissingRequirement
from plait.machine.drafts import write_whole, writing

if TYPE_CHECKING:
    from plait_lab.torture.everything import Outcome, Say

_NEEDED = {"hypothesis": "hypothesis", "duckdb": "duckdb"}


def torture(
    host: str,
    seconds: float,
    seed: int,
    case: str | None,
    most_rows: int,
    json: Path | None,
    *,
    everything: bool = False,
) -> None:
    """Run a campaign, or all, or one case; exit with 1 if an answer was wrong."""
    _check_packages()
    from plait_lab.torture.everything import Outcome, kinds, run_all

    outcomes: list[Outcome] = []

    def told(outcome: Outcome) -> None:
        outcomes.append(outcome)
        if everything:
            print(outcome.text(), flush=True)

    try:
        with _progress(host, everything=everything) as progress:
            if everything:
                run_all(seconds, seed, progress, told)
            else:
                kind = next(kind for kind in kinds(most_rows) if kind.name == host)
                found = (
                    kind.run(seconds, seed, progress)
                    if case is None
                    else kind.repeat(case, progress)
                )
                told(Outcome(host, *found))
    finally:
        if json is not None and outcomes:
            _write(json, seed, seconds, outcomes, everything=everything)
    for outcome in outcomes:
        _show(outcome, everything=everything)
    if any(outcome.failures for outcome in outcomes):
        raise typer.Exit(1)
    print("No answer was wrong.")


@contextmanager
def _progress(host: str, *, everything: bool) -> Iterator[Say]:
    """Where lines of progress go: a status on a terminal, for campaigns that say little."""
    if on_terminal() and not everything and not host.startswith("spark"):
        with console(stderr=True).status(f"torture on {host} ...") as status:
            yield status.update
    else:
        yield say


def _write(
    json: Path, seed: int, seconds: float, outcomes: list[Outcome], *, everything: bool
) -> None:
    """Write the counts and failures: of one kind, or of each."""
    found = [
        {
            "host": outcome.kind,
            "seed": seed,
            "seconds": seconds,
            **asdict(outcome.tally),
            "failures": [asdict(failure) for failure in outcome.failures],
        }
        for outcome in outcomes
    ]
    with writing(json):
        json.parent.mkdir(parents=True, exist_ok=True)
    write_whole(json, dumps({"kinds": found} if everything else found[0]) + "\n")


def _show(outcome: Outcome, *, everything: bool) -> None:
    """Print the kills, the counts and what failed."""
    for point, times in sorted(outcome.tally.kills.items()):
        print(f"{times:6,} kills  {point}" + (f"  ({outcome.kind})" if everything else ""))
    if not everything:
        print(outcome.tally.text() or "nothing was done")
    for failed in outcome.failures:
        again = f"./dev torture --host {outcome.kind} --case {failed.case}"
        print(f"\n{failed.text.rstrip()}\n\nThis repeats it: {again}")


def _check_packages() -> None:
    missing = [package for module, package in _NEEDED.items() if find_spec(module) is None]
    if missing:
        raise MissingRequirement(
            f"torture needs {' and '.join(missing)}", remedy="pip install 'plait[torture]'"
        )
