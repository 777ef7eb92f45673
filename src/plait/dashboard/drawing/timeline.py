"""Draw the time line of batches: a panel for each measure, with decisions marked.

Texts stand beside the drawings, not in them, so that the drawings can be stretched to any width.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from plait.dashboard.drawing.markup import Markup, tag
from plait.dashboard.reading.decision_cards import DecisionCard
from plait.dashboard.reading.series import Columns, Series
from plait.figures import duration, instant, processors, short, size

POINTS = 240
"""Points of a drawing, at most."""
_WIDTH, _HEIGHT = 1000.0, 56.0
_MOST_MARKS = 120


@dataclass(frozen=True, slots=True)
class _Panel:
    column: str
    title: str
    show: Callable[[float | None], str]
    per_batch: bool = False
    """Whether it is a sum, to be shown per batch."""
    bars: bool = False


_PANELS = (
    _Panel("rows", "rows", short, True),
    _Panel("results", "results", short, True),
    _Panel("slowest", "time of a batch", duration),
    _Panel("state", "state", size),
    _Panel("lag", "watermark behind the clock", duration),
    _Panel("late", "late rows", short, True, bars=True),
)


def draw_timeline(series: Series, decisions: Sequence[DecisionCard]) -> Markup:
    """All panels over the same batches."""
    if not len(series):
        return tag("p", "No batch has ended yet.", class_="soft")
    few = series.bucketed(POINTS)
    first, last = few["first"][0], few["last"][-1]
    span = max(last - first, 1.0)

    def x(batch: float) -> float:
        return float(_WIDTH * (batch - first) / span) if last > first else _WIDTH / 2

    shown = [d for d in decisions if first <= d.batch <= last]
    # In a long history few marks remain: changes of plan before all others.
    shown = sorted(shown, key=lambda d: (d.sort not in ("change", "asked"), -d.batch))[:_MOST_MARKS]
    marks = [_mark(d, x(d.batch)) for d in sorted(shown, key=lambda d: d.batch)]
    middle = [x((a + b) / 2) for a, b in zip(few["first"], few["last"], strict=True)]
    panels = [_drawn(panel, few, middle, marks) for panel in _PANELS]
    return tag(
        "div",
        panels,
        tag(
            "div",
            tag("span", f"batch {first:,.0f}", tag("small", instant(few["at"][0]))),
            tag("span", f"batch {last:,.0f}", tag("small", instant(few["at"][-1]))),
            class_="axis",
        ),
        class_="timeline",
    )


def _drawn(panel: _Panel, few: Series, middle: Sequence[float], marks: Sequence[Markup]) -> Markup:
    values: Columns = few[panel.column]
    if panel.per_batch:
        values = values / np.maximum(few["batches"], 1)
    known = values[~np.isnan(values)]
    highest = float(known.max()) if len(known) else 0.0
    lowest = min(0.0, float(known.min())) if len(known) else 0.0
    last = float(values[-1]) if len(known) else None
    shapes = _bars if panel.bars else _area
    return tag(
        "div",
        tag(
            "div",
            tag("span", panel.title, class_="what"),
            tag("b", panel.show(last)),
            tag("small", f"most {panel.show(highest if len(known) else None)}", class_="soft"),
            class_="legend",
        ),
        tag(
            "svg",
            tag("title", panel.title),
            shapes(middle, values, lowest, highest),
            marks,
            viewbox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
            preserveaspectratio="none",
            class_=f"panel {panel.column}",
            role="img",
        ),
        class_="row",
    )


def _area(x: Sequence[float], values: Columns, lowest: float, highest: float) -> list[Markup]:
    """A line and what is below it, in pieces where values are missing."""
    found: list[Markup] = []
    for piece in _pieces(values):
        points = [(x[i], _y(values[i], lowest, highest)) for i in piece]
        if len(points) == 1:
            points = [(points[0][0] - 2, points[0][1]), (points[0][0] + 2, points[0][1])]
        line = " L".join(f"{a:.1f} {b:.1f}" for a, b in points)
        base = f"L{points[-1][0]:.1f} {_HEIGHT:g} L{points[0][0]:.1f} {_HEIGHT:g} Z"
        found += [tag("path", d=f"M{line} {base}", class_="area"), tag("path", d=f"M{line}",
                  class_="curve")]  # fmt: skip
    return found


def _bars(x: Sequence[float], values: Columns, lowest: float, highest: float) -> list[Markup]:
    width = max(2.0, _WIDTH / max(len(values), 1) * 0.7)
    return [
        tag("rect", x=a - width / 2, y=_y(v, lowest, highest), width=width,
            height=_HEIGHT - _y(v, lowest, highest), class_="bar")
        for a, v in zip(x, values, strict=True)
        if v > 0
    ]  # fmt: skip


def _y(value: float, lowest: float, highest: float) -> float:
    room = highest - lowest
    return float(_HEIGHT - 2 - (_HEIGHT - 6) * (value - lowest) / room) if room else _HEIGHT - 2


def _pieces(values: Columns) -> list[list[int]]:
    """The indexes of known values, in runs.

    >>> _pieces(np.array([1.0, 2.0, np.nan, 3.0]))
    [[0, 1], [3]]
    """
    found: list[list[int]] = []
    before = False
    for i, missing in enumerate(np.isnan(values).tolist()):
        if missing:
            before = False
            continue
        if before:
            found[-1].append(i)
        else:
            found.append([i])
        before = True
    return found


def _mark(card: DecisionCard, x: float) -> Markup:
    where = f", {processors(card.processors)}" if card.processors else ""
    said = card.summary or (card.reasons[0] if card.reasons else "")
    why = f"\n{said}" if said else ""
    kind = "bad" if card.good is False else card.sort
    return tag(
        "rect",
        tag("title", f"batch {card.batch}{where}: {card.title}{why}"),
        x=max(0.0, min(_WIDTH - 3, x - 1.5)),
        y=0,
        width=3,
        height=_HEIGHT,
        class_=f"mark {kind}",
    )
