"""Figures of reports."""

from __future__ import annotations

from pathlib import Path

from plait.bench.report import Report, Series

_FEW = 40
"""Lines with more points than this are drawn without a dot for each."""
_SHORT = 5
"""A legend with more entries than this is put below the figure."""
_MARKS = ("-", ":", "--", "-.")


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
        for number, line in enumerate(lines):
            _line(axis, line, len(lines) - 1 - number)
        if not lines:
            _bars(axis, report)
            continue
        for number, mark in enumerate(report.marks):
            axis.axvline(mark.x, color="0.35", linewidth=1, linestyle=_MARKS[number % len(_MARKS)],
                         label=f"{mark.label}: {mark.x:.4g}")  # fmt: skip
        if title in report.log_units:
            axis.set_yscale("log")
        else:
            axis.set_ylim(bottom=0)
        axis.set_xlabel(lines[0].x_unit)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
    _legends(figure, axes[0], panels)
    figure.suptitle(report.name)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{report.name.replace('/', '-')}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _line(axis, line: Series, later: int) -> None:  # type: ignore[no-untyped-def]  # an Axes
    """A line; of long ones, those drawn first are wider, so that lines on each other are seen."""
    many = len(line.x) > _FEW
    axis.plot(
        line.x,
        line.y,
        marker="" if many or line.dashed else "o",
        linestyle="--" if line.dashed else "-",
        linewidth=1.2 + 0.7 * later if many else 1.5,
        label=line.label,
    )


def _legends(figure, axes, panels: dict[str, list[Series]]) -> None:  # type: ignore[no-untyped-def]
    """A legend in each panel, or one below for all if it is long and the same everywhere."""
    labels = [axis.get_legend_handles_labels()[1] for axis in axes]
    if len(labels[0]) > _SHORT and all(other == labels[0] for other in labels):
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2 * len(axes))
        return
    for axis, lines in zip(axes, panels.values(), strict=True):
        if lines:
            axis.legend()


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
