"""Figures of reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from plait_lab.reporting.report import Report, Series

_FEW = 40
"""Lines with more points than this are drawn without a dot for each."""
_ACROSS = 3
"""Panels beside each other; more go below."""
_SHORT = 7
"""A legend with more entries than this is put outside of its panel."""
_MARKS = ("-", ":", "--", "-.")
_MARKERS = "ox+sv^D"


def draw(report: Report, directory: Path) -> Path:
    """All series of a report in one PNG, one panel per unit, or its systems as bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = _panels(report)
    colours = plt.get_cmap("tab10" if max(map(len, panels.values())) <= _SHORT else "tab20")
    across = min(_ACROSS, len(panels))
    down = -(-len(panels) // across)
    figure, grid = plt.subplots(
        down, across, figsize=(6.4 * across, 4.2 * down), squeeze=False, layout="constrained"
    )
    axes = grid.ravel()[: len(panels)]
    for empty in grid.ravel()[len(panels) :]:
        empty.set_axis_off()
    for axis, (title, lines) in zip(axes, panels.items(), strict=True):
        if not lines:
            _bars(axis, report)
            continue
        for n, line in enumerate(lines):
            _line(axis, line, n, len(lines), colours(n % colours.N))
        for n, mark in enumerate(report.marks):
            axis.axvline(mark.x, color="0.35", linewidth=1, linestyle=_MARKS[n % len(_MARKS)],
                         label=f"{mark.label}: {mark.x:.4g}")  # fmt: skip
        _scale(axis, lines)
        axis.set_xlabel(lines[0].x_unit)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
    _legends(figure, axes)
    figure.suptitle(report.name)
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{report.name.replace('/', '-')}.png"
    figure.savefig(path, dpi=120)
    plt.close(figure)
    return path


def _line(axis: Any, line: Series, n: int, of: int, colour: object) -> None:
    """A line, or a cloud; of long lines the first are wider: lines on each other are seen."""
    many, dots = len(line.x) > _FEW, line.kind == "points"
    axis.plot(
        line.x,
        line.y,
        marker=_MARKERS[n % len(_MARKERS)] if dots or not (many or line.dashed) else "",
        markersize=4,
        linestyle="none" if dots else "--" if line.dashed else "-",
        linewidth=1.2 + 0.7 * (of - 1 - n) if many else 1.5,
        alpha=0.6 if dots else 1.0,
        color=colour,
        label=line.label,
    )


def _legends(figure: Any, axes: Any) -> None:
    """A legend in each panel, beside it if it is long; or one for all if it is everywhere."""
    labels = [axis.get_legend_handles_labels()[1] for axis in axes]
    same = len(labels) > 1 and all(other == labels[0] for other in labels)
    if same and len(labels[0]) > _SHORT - 2:
        handles, names = axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside lower center", ncols=2 * min(_ACROSS, len(axes)))
        return
    for axis, names in zip(axes, labels, strict=True):
        if len(names) > _SHORT:
            axis.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        elif names:
            axis.legend()


def _panels(report: Report) -> dict[str, list[Series]]:
    panels: dict[str, list[Series]] = {}
    for series in report.series:
        panels.setdefault(series.unit, []).append(series)
    return panels or {"seconds": []}


def _scale(axis: Any, lines: list[Series]) -> None:
    """Linear axes from 0, or logarithmic ones, with a place for 0 if there is one."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for side, scale, values, base in (
        (axis.xaxis, lines[0].x_scale, [x for line in lines for x in line.x], 2),
        (axis.yaxis, lines[0].y_scale, [y for line in lines for y in line.y], 10),
    ):
        if scale == "linear":
            if all(value == int(value) for value in values):
                side.set_major_locator(MaxNLocator(integer=True))
            continue
        positive = [v for v in values if v > 0]
        change = axis.set_xscale if side is axis.xaxis else axis.set_yscale
        if positive and len(positive) < len(values):
            change("symlog", base=base, linthresh=min(positive))
        else:
            change("log", base=base)
        side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    if lines[0].y_scale == "linear" and lines[0].kind == "line":
        axis.set_ylim(bottom=0)


def _bars(axis: Any, report: Report) -> None:  # a matplotlib Axes
    names = list(report.systems)
    seconds = [report.systems[name]["seconds"] for name in names]
    bars = axis.bar(names, seconds, width=0.5)
    axis.bar_label(bars, fmt="%.2f s")
    axis.set_ylabel("seconds")
