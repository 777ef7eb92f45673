"""What a benchmark or experiment found, as data: series, claims computed from them, and ratios."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from plait_lab.reporting.comparisons import Comparison, Limit, Same, Verdict

Note = Callable[[str], None]
"""Where a measurement says what it is doing."""

Scale = Literal["linear", "log"]
Origin = Literal["paper", "project"]

_PACKAGES = ("plait", "numba", "numpy", "pyarrow", "duckdb", "pandas", "pyspark")


@dataclass(frozen=True, slots=True)
class Series:
    """One line of a figure."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    unit: str
    x_unit: str = ""
    x_scale: Scale = "linear"
    y_scale: Scale = "linear"
    kind: Literal["line", "points"] = "line"
    dashed: bool = False
    """Drawn as a dashed line: a prediction, not a measurement."""


@dataclass(frozen=True, slots=True)
class PlotMark:
    """A vertical line in a figure: something happened at `x`."""

    label: str
    x: float


@dataclass(frozen=True, slots=True)
class Claim:
    """Something said of a measurement, with the measurement that says whether it is so.

    A claim of the project must hold. A claim of a paper is reported with its verdict: a paper that
    our run contradicts is news, not a failure.
    """

    id: str
    claim: str
    measured: str
    value: float
    bound: str
    holds: bool
    origin: Origin = "project"
    place: str = ""
    """Where the paper says so."""
    theirs: str = ""
    """What the paper reports, as far as it can be read."""
    why: str = ""
    """Why our run differs, where it does: one sentence."""
    covers: tuple[str, ...] = ()
    """The equations, tables and so on that it is about, beside its figure."""
    comparison: Comparison | None = None

    @property
    def verdict(self) -> Verdict:
        """What the run says of it."""
        if self.comparison is not None:
            return self.comparison.verdict
        return "reproduced" if self.holds else "contradicted"

    def to_dict(self) -> dict[str, Any]:
        """Plain data; the text is under `paper` or `claim`, by its origin."""
        found: dict[str, Any] = {
            "id": self.id,
            "paper" if self.origin == "paper" else "claim": self.claim,
            "measured": self.measured,
            "value": self.value,
            "bound": self.bound,
            "holds": self.holds,
            "origin": self.origin,
            "verdict": self.verdict,
        }
        if self.origin == "paper":
            found |= {"place": self.place, "theirs": self.theirs}
        if self.why and self.verdict != "reproduced":
            found["why"] = self.why
        if self.covers:
            found["covers"] = list(self.covers)
        return found


def by_paper(
    id_: str,
    place: str,
    sentence: str,
    comparison: Comparison,
    why: str,
    *,
    theirs: str = "",
    measured: str | None = None,
    covers: Sequence[str] = (),
) -> Claim:
    """A sentence of a paper, its place, and why our run differs if it does.

    >>> from plait_lab.reporting.comparisons import Smaller
    >>> claim = by_paper("ends-first", "section 6.3", "moving state ends earlier",
    ...                  Smaller([2.0], [1.0]), "the queues are worked off first")
    >>> claim.verdict, claim.holds, claim.to_dict()["why"]
    ('contradicted', False, 'the queues are worked off first')
    """
    return Claim(
        id_,
        sentence,
        comparison.measured if measured is None else measured,
        comparison.value,
        comparison.bound,
        comparison.verdict == "reproduced",
        "paper",
        place,
        theirs,
        why,
        tuple(covers),
        comparison,
    )


def by_project(
    id_: str,
    claim: str,
    comparison: Comparison,
    *,
    measured: str | None = None,
    covers: Sequence[str] = (),
) -> Claim:
    """Something that we say, and that must hold.

    >>> from plait_lab.reporting.comparisons import Same
    >>> by_project("results", "all find as many results", Same([3, 4])).holds
    False
    """
    return Claim(
        id_,
        claim,
        comparison.measured if measured is None else measured,
        comparison.value,
        comparison.bound,
        comparison.verdict == "reproduced",
        covers=tuple(covers),
        comparison=comparison,
    )


def at_most(id_: str, claim: str, value: float, limit: float, unit: str = "") -> Claim:
    """A claim that a measured value does not exceed a limit.

    >>> at_most("fast", "no slower than the peer", 0.5, 1.0).holds
    True
    """
    return by_project(id_, claim, Limit(value, limit, unit=unit))


def at_least(id_: str, claim: str, value: float, limit: float, unit: str = "") -> Claim:
    """A claim that a measured value reaches a limit.

    >>> at_least("faster", "twice as fast as the peer", 2.5, 2.0).holds
    True
    """
    return by_project(id_, claim, Limit(value, limit, least=True, unit=unit))


def equal(id_: str, claim: str, values: Sequence[object]) -> Claim:
    """A claim that several systems agree."""
    return by_project(id_, claim, Same(tuple(values)))


@dataclass(slots=True)
class Report:
    """The figures of one run; `to_dict` is the form that `--json` writes."""

    name: str
    parameters: dict[str, Any]
    seed: str = ""
    runtime: str = "local"
    series: list[Series] = field(default_factory=list)
    claims: list[Claim] = field(default_factory=list)
    systems: dict[str, dict[str, Any]] = field(default_factory=dict)
    ratios: dict[str, Any] = field(default_factory=dict)
    marks: list[PlotMark] = field(default_factory=list)
    """Drawn in every panel of the figure."""

    @property
    def holds(self) -> bool:
        """Whether every claim of the project does; those of papers have verdicts."""
        return all(c.holds for c in self.claims if c.origin == "project")

    def contradicted(self) -> list[Claim]:
        """The claims of the paper that this run contradicts."""
        return [c for c in self.claims if c.origin == "paper" and c.verdict == "contradicted"]

    def to_dict(self) -> dict[str, Any]:
        """Plain data, with the environment it was measured in."""
        return {
            "name": self.name,
            "seed": self.seed,
            "runtime": self.runtime,
            "parameters": self.parameters,
            "series": [
                {
                    "label": s.label,
                    "x": list(s.x),
                    "y": list(s.y),
                    "unit": s.unit,
                    "x_unit": s.x_unit,
                }
                for s in self.series
            ],
            "claims": [claim.to_dict() for claim in self.claims],
            "systems": self.systems,
            "ratios": self.ratios,
            "environment": environment(),
        }

    def write_json(self, path: Path) -> None:
        """Write the figures; an existing file is replaced."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(self.to_dict(), indent=2) + "\n")

    def plot(self, directory: Path) -> Path:
        """Draw all series into one PNG; where it is."""
        from plait_lab.reporting.plot import draw

        return draw(self, directory)


def environment() -> dict[str, Any]:
    """The machine and the versions, as far as they matter to a measurement."""
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "versions": versions,
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    named = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.processor())


def spread(values: Sequence[float]) -> dict[str, float]:
    """Median, extremes and number of repetitions.

    >>> spread([3.0, 1.0, 2.0])
    {'median': 2.0, 'min': 1.0, 'max': 3.0, 'runs': 3}
    """
    return {
        "median": statistics.median(values),
        "min": min(values),
        "max": max(values),
        "runs": len(values),
    }


def ratio_spread(top: Sequence[float], bottom: Sequence[float]) -> Mapping[str, float]:
    """The ratio of paired runs: median, extremes and their number."""
    return spread([t / b for t, b in zip(top, bottom, strict=True)])
