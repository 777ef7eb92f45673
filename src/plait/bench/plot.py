"""Figures of reports."""

from __future__ import annotations

from pathlib import Path

from plait.bench.report import Report, Series


def draw(report: Report, directory: Path) -> Path:
    """All series of a report in one PNG, one panel per unit, or its systems as bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = _panels(report)
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6.4 * len(panels), 4.2), squeeze=False, layout="constrained"
    )
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        for line in lines:
            axis.plot(line.x, line.y, marker="o", label=line.label)
        if not lines:
            _bars(axis, report)
            continue
        axis.set_ylim(bottom=0)
        axis.set_xlabel(lines[0].x_unit)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        axis.legend()
    figure.suptitle(report.name)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{report.name.replace('/', '-')}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _panels(report: Report) -> dict[str, list[Series]]:
    panels: dict[str, list[Series]] = {}
    for series in report.series:
        panels.setdefault(series.unit, []).append(series)
    return panels or {"seconds": []}


def _bars(axis, report: Report) -> None:  # type: ignore[no-untyped-def]  # a matplotlib Axes
    names = list(report.systems)
    seconds = [report.systems[name]["seconds"] for name in names]
    bars = axis.bar(names, seconds, width=0.5)
    axis.bar_label(bars, fmt="%.2f s")
    axis.set_ylabel("seconds")
