"""Draw the join graph: streams in a ring; the thicker an edge, the more often it matches."""

from __future__ import annotations

import math

from plait.dashboard.drawing.markup import Markup, tag
from plait.dashboard.views.join_graph import EdgeView, GraphView, StreamView
from plait.figures import instant, one_in, short

_WIDTH, _HEIGHT = 450.0, 300.0
_BOX, _TALL = 122.0, 46.0
_CROWDED = 6
"""With more streams than this, edges have tooltips instead of labels."""


def draw_graph(view: GraphView) -> Markup:
    """The drawing."""
    places = _places(len(view.streams))
    edges = [_line(view, edge, places) for edge in view.edges]
    labels = [_label(edge, places) for edge in view.edges] if len(view.streams) <= _CROWDED else []
    boxes = [_box(stream, *place) for stream, place in zip(view.streams, places, strict=True)]
    return tag(
        "svg",
        tag("title", "The join graph"),
        edges,
        labels,
        boxes,
        viewbox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        class_="graph",
        role="img",
    )


def _places(count: int) -> list[tuple[float, float]]:
    """Where the streams are: around a ring that fills the room, the first one at the top left.

    >>> [(round(x), round(y)) for x, y in _places(2)]
    [(65, 150), (385, 150)]
    """
    begin = math.pi if count == 2 else -math.pi / 2 - (0 if count % 2 else math.pi / count)
    turns = [begin + 2 * math.pi * i / count for i in range(count)]
    across = spread([math.cos(turn) for turn in turns], _WIDTH, _BOX / 2 + 4)
    down = spread([math.sin(turn) for turn in turns], _HEIGHT, _TALL / 2 + 4)
    return list(zip(across, down, strict=True))


def spread(values: list[float], room: float, edge: float) -> list[float]:
    """The values stretched from edge to edge, or in the middle if they are all the same."""
    least, most = min(values), max(values)
    if most - least < 1e-6:
        return [room / 2] * len(values)
    return [edge + (room - 2 * edge) * (v - least) / (most - least) for v in values]


def _line(view: GraphView, edge: EdgeView, places: list[tuple[float, float]]) -> Markup:
    (x1, y1), (x2, y2) = places[edge.left], places[edge.right]
    known = [e.selectivity for e in view.edges if e.selectivity]
    most = max(known, default=1.0)
    weight = 1.5
    if edge.selectivity:
        # From a thousandth of the most frequent one to that.
        weight += 5.5 * max(0.0, 1 + math.log10(edge.selectivity / most) / 3)
    one, other = view.streams[edge.left].name, view.streams[edge.right].name
    sure = "" if edge.confidence is None else f", {edge.confidence:.0%} sure"
    return tag(
        "line",
        tag("title", f"{one} – {other} by {edge.keys}: {one_in(edge.selectivity)}{sure}"),
        x1=x1, y1=y1, x2=x2, y2=y2,
        stroke_width=weight,
        stroke_opacity=0.35 + 0.65 * (edge.confidence or 0.0),
        stroke_dasharray=None if edge.selectivity else "3 5",
        class_="edge",
    )  # fmt: skip


def _label(edge: EdgeView, places: list[tuple[float, float]]) -> Markup:
    (x1, y1), (x2, y2) = places[edge.left], places[edge.right]
    around = (edge.right - edge.left) % len(places)
    # Lines through the middle would have their labels in one heap.
    part = 0.5 if len(places) < 4 or around in (1, len(places) - 1) else 0.33
    x, y = x1 + part * (x2 - x1), y1 + part * (y2 - y1)
    text = one_in(edge.selectivity)
    sure = "" if edge.confidence is None else f"{edge.confidence:.0%} sure"
    width = 7.0 * max(len(text), len(sure)) + 16
    return tag(
        "g",
        tag("rect", x=x - width / 2, y=y - 18, width=width, height=36, rx=8, class_="pill"),
        tag("text", text, x=x, y=y - 2, class_="value middle"),
        tag("text", sure or "no estimate", x=x, y=y + 12, class_="soft small middle"),
    )


def _box(stream: StreamView, x: float, y: float) -> Markup:
    rate = "rate unknown" if stream.rate is None else short(stream.rate, "rows/s")
    sure = "" if stream.confidence is None else f", {stream.confidence:.0%} sure"
    mark = None if stream.watermark is None else stream.watermark / 1e6
    about = f"{stream.name}: {rate}{sure}; {short(stream.stored)} rows stored, {stream.late:,} late"
    return tag(
        "g",
        tag("title", f"{about}; watermark {instant(mark)}"),
        tag("rect", x=x - _BOX / 2, y=y - _TALL / 2, width=_BOX, height=_TALL, rx=10,
            class_="box stream"),
        tag("text", clipped(stream.name, 16), x=x, y=y - 3, class_="name middle"),
        tag("text", rate, x=x, y=y + 14, class_="soft small middle"),
    )  # fmt: skip


def clipped(text: str, most: int) -> str:
    """A text that fits.

    >>> clipped("trades", 16), clipped("a" * 20, 6)
    ('trades', 'aaaaa…')
    """
    return text if len(text) <= most else text[: most - 1] + "…"
