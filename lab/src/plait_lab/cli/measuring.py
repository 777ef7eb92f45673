"""`./dev bench` and `./dev experiment`: measurements by name, shown and written as data."""

from __future__ import annotations

import importlib
import importlib.util
import time
from collections import Counter
from collections.abc import Callable
from json import dumps
from pathlib import Path
from typing import Any

import typer

from plait.cli.inputs import named
from plait.cli.show import aligned, console, on_terminal, say, show_json
from plait.errors import PlaitError
from plait.machine.drafts import write_whole, writing

_REGISTRIES = {
    "bench": "plait_lab.bench.registry",
    "experiment": "plait_lab.experiments.registry",
}
_QUIET = 2.0
"""Seconds between two notes where they cannot replace each other."""
_STYLES = {"reproduced": None, "deviates": "yellow", "contradicted": "bold yellow"}
_VERDICTS = tuple(_STYLES)
_NOUNS = {"bench": "benchmark", "experiment": "experiment"}


def measure(
    command: str,
    name: str | None,
    list_: bool,
    json: Path | None,
    plot: Path | None,
    options: list[str],
) -> None:
    """List what can be measured, or measure one thing; exit with 1 if a claim does not hold."""
    registry = _registry(command)
    noun = _NOUNS[command]
    names: list[str] = registry.names() if registry is not None else []
    if list_:
        for known in names:
            print(known)
        return
    if name is None:
        raise PlaitError(f"which {noun}?", remedy=_known(noun, names))
    if registry is None or name not in names:
        raise PlaitError(f"there is no {noun} {name!r}", remedy=_known(noun, names))
    given = named(options, "--option", "key=value")
    out = console(stderr=True)
    if on_terminal():
        with out.status(f"{name} ...") as status:
            report = registry.run(name, given, lambda text: status.update(f"{name}: {text}"))
    else:
        report = registry.run(name, given, _lines(name))
    if not show_json(json, report.to_dict):
        _show(report)
    if plot is not None:
        with writing(plot):
            say(f"written: {report.plot(plot)}")
    if not report.holds:
        raise typer.Exit(1)


def measure_all(json: Path | None, run: bool, report: bool) -> None:
    """Run every experiment into a directory, and write the page on what reproduces.

    The page is beside the figures, and with `report` also in `docs/`. Exit with 1 if a claim of
    the project does not hold anywhere.
    """
    registry = _registry("experiment")
    if registry is None:
        raise PlaitError("there is no experiment yet", remedy="install Plait with its workshop")
    if json is None:
        raise PlaitError("where should the figures go?", remedy="give --json DIR")
    names: list[str] = registry.names()
    failed = _run_all(registry, names, json) if run else []
    _write_pages(json, names, report)
    if failed:
        say(f"claims of the project that do not hold: {', '.join(failed)}", style="bold red")
        raise typer.Exit(1)


def _run_all(registry: Any, names: list[str], folder: Path) -> list[str]:
    """Every experiment, one after the other; the names of claims that do not hold."""
    failed: list[str] = []
    began = time.monotonic()
    for number, name in enumerate(names, start=1):
        wall, cpu = time.monotonic(), time.process_time()
        report = registry.run(name, {}, _lines(f"{number} of {len(names)}, {name}"))
        took = {"wall": time.monotonic() - wall, "cpu": time.process_time() - cpu}
        figures = report.to_dict() | {"took": took}
        with writing(folder):
            folder.mkdir(parents=True, exist_ok=True)
            report.plot(folder / "images")
        path = folder / f"{name.replace('/', '-')}.json"
        write_whole(path, dumps(figures, indent=2) + "\n")
        failed += [f"{name}: {c.id}" for c in report.claims if _fails(c)]
        counts = Counter(c.verdict for c in report.claims if c.origin == "paper")
        verdicts = ", ".join(f"{counts[v]} {v}" for v in _VERDICTS)
        say(f"{number} of {len(names)}, {name}: {verdicts}; {took['wall']:.0f} s, "
            f"{took['cpu']:.0f} s of CPU")  # fmt: skip
        for claim in report.contradicted():
            _show_claim(claim)
    say(f"all: {time.monotonic() - began:.0f} s, {time.process_time():.0f} s of CPU")
    return failed


def _fails(claim: Any) -> bool:
    return claim.origin == "project" and not claim.holds


def _write_pages(folder: Path, names: list[str], into_docs: bool) -> None:
    """The page beside the figures; and in `docs/`, with the pictures in `docs/images/`."""
    pages = importlib.import_module("plait_lab.experiments.reproduction")
    figures = pages.read_figures(folder, names)
    places = [folder / "reproduction.md"]
    if into_docs:
        docs = Path("docs")
        if not docs.is_dir():
            raise PlaitError("there is no folder docs/ here", remedy="run it in the repository")
        for found in figures:
            picture = folder / "images" / pages.file_name(found["name"], "png")
            if picture.is_file():
                with writing(docs / "images"):
                    (docs / "images").mkdir(exist_ok=True)
                    (docs / "images" / picture.name).write_bytes(picture.read_bytes())
        places.append(docs / "reproduction.md")
    for place in places:
        write_whole(place, pages.page(figures, "images"))
        say(f"written: {place}")
    say(pages.summary(figures))


def _lines(name: str) -> Callable[[str], None]:
    """Notes as lines on standard error, for work that takes longer than a moment."""
    began = last = time.monotonic()

    def note(text: str) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _QUIET:
            last = now
            console(stderr=True).print(f"{name}, {now - began:.0f} s: {text}")

    return note


def _registry(command: str) -> Any:
    module = _REGISTRIES[command]
    package = module.rpartition(".")[0]
    if importlib.util.find_spec(package) is None or importlib.util.find_spec(module) is None:
        return None
    return importlib.import_module(module)


def _known(noun: str, names: list[str]) -> str:
    return f"known: {', '.join(names)}" if names else f"there is no {noun} yet"


def _show(report: Any) -> None:
    """A report as text: parameters, systems, series, ratios, claims."""
    say(report.name, style="bold")
    if report.parameters:
        say("  " + ", ".join(f"{k} = {_number(v)}" for k, v in report.parameters.items()))
    if report.systems:
        keys = list(dict.fromkeys(k for system in report.systems.values() for k in system))
        rows = [["system", *keys]]
        rows += [
            [name, *(_number(system.get(k, "")) for k in keys)]
            for name, system in report.systems.items()
        ]
        _indent(aligned(rows))
    for series in report.series:
        say(f"  {series.label} ({series.unit})")
        pairs = zip(series.x, series.y, strict=True)
        _indent(aligned([[_number(x), _number(y)] for x, y in pairs] or [["", ""]]), "    ")
    for key, value in report.ratios.items():
        say(f"  {key}: {_number(value)}")
    for claim in report.claims:
        _show_claim(claim)
    papers = Counter(claim.verdict for claim in report.claims if claim.origin == "paper")
    if papers:
        say("  of the paper's sentences: " + ", ".join(f"{papers[v]} {v}" for v in _VERDICTS))


def _show_claim(claim: Any) -> None:
    text = f"{claim.claim}: {claim.measured} ({claim.bound})"
    if claim.origin == "project":
        verdict = "holds" if claim.holds else "FAILS"
        say(f"  {verdict}  {text}", style=None if claim.holds else "bold red")
        return
    say(f"  {claim.verdict}  {claim.place}: {text}", style=_STYLES[claim.verdict])
    if claim.why and claim.verdict != "reproduced":
        say(f"    why: {claim.why}")


def _indent(lines: list[str], by: str = "  ") -> None:
    for line in lines:
        say(by + line)


def _number(value: object) -> str:
    """A figure as people read it.

    >>> _number(1234567), _number(0.123456), _number({"min": 1, "max": 2, "runs": 5})
    ('1,234,567', '0.1235', '1 to 2 in 5 runs')
    """
    if isinstance(value, dict):
        if value.keys() >= {"min", "max", "runs"}:
            middle = f"{_number(value['median'])}, " if "median" in value else ""
            ends = f"{_number(value['min'])} to {_number(value['max'])}"
            return f"{middle}{ends} in {value['runs']} runs"
        return ", ".join(f"{k} {_number(v)}" for k, v in value.items())
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if not abs(value) <= 2**53:
        return str(value)
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"
