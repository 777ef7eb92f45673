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

Note = Callable[[str], None]
"""Where a measurement says what it is doing."""

Scale = Literal["linear", "log"]

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
class Mark:
    """A vertical line in a figure: something happened at `x`."""

    label: str
    x: float


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that should hold, with the measurement that says whether it does."""

    id: str
    claim: str
    measured: str
    value: float
    bound: str
    holds: bool


def at_most(id_: str, claim: str, value: float, limit: float, unit: str = "") -> Claim:
    """A claim that a measured value does not exceed a limit.

    >>> at_most("fast", "no slower than the peer", 0.5, 1.0).holds
    True
    """
    measured = f"{value:.3g}{' ' + unit if unit else ''}"
    return Claim(id_, claim, measured, value, f"at most {limit:g}", value <= limit)


def at_least(id_: str, claim: str, value: float, limit: float, unit: str = "") -> Claim:
    """A claim that a measured value reaches a limit.

    >>> at_least("faster", "twice as fast as the peer", 2.5, 2.0).holds
    True
    """
    measured = f"{value:.3g}{' ' + unit if unit else ''}"
    return Claim(id_, claim, measured, value, f"at least {limit:g}", value >= limit)


def equal(id_: str, claim: str, values: Sequence[object]) -> Claim:
    """A claim that several systems agree."""
    same = len(set(values)) == 1
    measured = ", ".join(map(str, dict.fromkeys(values)))
    return Claim(id_, claim, measured, float(same), "equal", same)


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
    marks: list[Mark] = field(default_factory=list)
    """Drawn in every panel of the figure."""

    @property
    def holds(self) -> bool:
        """Whether every claim does."""
        return all(c.holds for c in self.claims)

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
            "claims": [
                {
                    "id": c.id,
                    "paper" if self.seed else "claim": c.claim,
                    "measured": c.measured,
                    "value": c.value,
                    "bound": c.bound,
                    "holds": c.holds,
                }
                for c in self.claims
            ],
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
        from plait.workshop.bench.plot import draw

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
