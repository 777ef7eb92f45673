"""Figures of reports."""

from __future__ import annotations

from pathlib import Path

from plait.bench.report import Report, Series

_MANY_LINES = 7
_MARKERS = "ox+sv^D"


def draw(report: Report, directory: Path) -> Path:
    """All series of a report in one PNG, one panel per unit, or its systems as bars."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = _panels(report)
    colours = plt.get_cmap("tab10" if max(map(len, panels.values())) <= _MANY_LINES else "tab20")
    figure, axes = plt.subplots(
        1, len(panels), figsize=(6.4 * len(panels), 4.2), squeeze=False, layout="constrained"
    )
    for axis, (title, lines) in zip(axes[0], panels.items(), strict=True):
        if not lines:
            _bars(axis, report)
            continue
        for n, line in enumerate(lines):
            dots = line.kind == "points"
            axis.plot(
                line.x,
                line.y,
                marker=_MARKERS[n % len(_MARKERS)],
                color=colours(n % colours.N),
                markersize=4,
                linestyle="none" if dots else "-",
                alpha=0.6 if dots else 1.0,
                label=line.label,
            )
        _scale(axis, lines)
        axis.set_xlabel(lines[0].x_unit)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        if len(lines) > _MANY_LINES:
            axis.legend(fontsize="small", loc="upper left", bbox_to_anchor=(1.0, 1.0))
        else:
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


def _scale(axis, lines: list[Series]) -> None:  # type: ignore[no-untyped-def]
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


def _bars(axis, report: Report) -> None:  # type: ignore[no-untyped-def]  # a matplotlib Axes
    names = list(report.systems)
    seconds = [report.systems[name]["seconds"] for name in names]
    bars = axis.bar(names, seconds, width=0.5)
    axis.bar_label(bars, fmt="%.2f s")
    axis.set_ylabel("seconds")
