"""Draw sites: the bytes over each link, and the way of a head stream through the sites."""

from __future__ import annotations

import math
from collections.abc import Mapping

from plait.dashboard.drawing.graph import clipped, spread
from plait.dashboard.drawing.markup import Markup, tag
from plait.figures import duration, size
from plait.sites.plans.plan import Sep, SiteLink, Sites, steps

_WIDTH, _BETWEEN, _LINE = 340.0, 100.0, 14.0
_CIRCLE = 25.0
_BEND = 16.0
"""How far two arrows between the same sites are apart."""
_SLOW = 0.5
"""Links that have less than this share of the fastest rate are drawn as slow ones."""

Point = tuple[float, float]
Links = Mapping[tuple[str, str], SiteLink]


def draw_links(sites: Sites, links: Links, sent: Mapping[tuple[str, str], int]) -> Markup:
    """The sites and what was sent over each link: the thicker, the more bytes."""
    places, most = _places(sites, 1), max([*sent.values(), 1])
    arrows = []
    for way, link in links.items():
        nbytes = sent.get(way, 0)
        speed = f"{duration(link.latency)}, {size(link.rate)}/s"
        about = f"{way[0]} → {way[1]}: {size(nbytes)} sent; {speed}"
        kind = "way slow" if _is_slow(link, links) else "way"
        arrows.append(
            _arrow(places[way[0]], places[way[1]], kind, about, 0.8 + 5.2 * nbytes / most)
        )
    return _drawing("What was sent over each link", 1, arrows, _circles(sites, places, "", {}))


def draw_way(sites: Sites, links: Links, sep: Sep) -> Markup:
    """The way of a head stream: what is sent where, and which join runs where, in which order."""
    places = _places(sites, len(sites.streams) + 1)
    faint = [
        _line(places[a], places[b], "way slow" if _is_slow(link, links) else "way faint")
        for (a, b), link in links.items()
        if a < b
    ]
    joins: dict[str, list[str]] = {}
    arrows = []
    for number, step in enumerate(steps(sites, sep), 1):
        joins.setdefault(step.site, []).append(f"{number}. ⋈ {clipped(step.stream, 12)}")
        if (shipped := step.shipped()) is not None:
            flow, origin, target = shipped
            tuples = flow == step.flow
            what = "the tuples so far go" if tuples else f"{step.stream} goes"
            about = f"{what} from {origin} to {target}"
            kind = "way tuples" if tuples else "way window"
            arrows.append(_arrow(places[origin], places[target], kind, about, 2.4))
        last = step.site
    joins[last].append(f"→ {clipped(sites.results, 12)}")
    circles = _circles(sites, places, sep.head, joins)
    lines = len(sites.streams) + 1
    return _drawing(f"The way of {sep.head}", lines, [*faint, *arrows], circles)


def _is_slow(link: SiteLink, links: Links) -> bool:
    return link.rate < _SLOW * max(other.rate for other in links.values())


def _margin(lines: int) -> float:
    """The room above and below the middle of a site with this many lines of text."""
    return _CIRCLE + 10 + _LINE * lines


def _drawing(title: str, lines: int, below: list[Markup], above: list[Markup]) -> Markup:
    return tag(
        "svg",
        tag("title", title),
        below,
        above,
        viewbox=f"0 0 {_WIDTH:g} {_BETWEEN + 2 * _margin(lines):g}",
        class_="graph sites",
        role="img",
    )


def _places(sites: Sites, lines: int) -> dict[str, Point]:
    """The sites around a ring that fills the room, the first one at the top left."""
    count = len(sites.names)
    begin = math.pi if count == 2 else -math.pi / 2 - (0 if count % 2 else math.pi / count)
    turns = [begin + 2 * math.pi * i / count for i in range(count)]
    margin = _margin(lines)
    across = spread([math.cos(turn) for turn in turns], _WIDTH, 2 * _CIRCLE)
    down = spread([math.sin(turn) for turn in turns], _BETWEEN + 2 * margin, margin)
    return dict(zip(sites.names, zip(across, down, strict=True), strict=True))


def _circles(
    sites: Sites, places: Mapping[str, Point], head: str, joins: Mapping[str, list[str]]
) -> list[Markup]:
    """The sites with their streams, and what is joined there."""
    found = []
    for site, (x, y) in places.items():
        streams = [stream for stream, home in sites.homes if home == site]
        kind = "box root" if head in streams else "box stream"
        lines = [", ".join(streams), *joins.get(site, [])]
        above = y <= sum(place[1] for place in places.values()) / len(places)
        first = y - _CIRCLE - 8 - _LINE * (len(lines) - 1) if above else y + _CIRCLE + 15
        texts = [
            tag("text", clipped(text, 18), x=x, y=first + _LINE * i,
                class_="middle small" if i else "middle small soft")
            for i, text in enumerate(lines)
        ]  # fmt: skip
        found.append(
            tag(
                "g",
                tag("title", f"{site}: {', '.join(streams)}"),
                tag("circle", cx=x, cy=y, r=_CIRCLE, class_=kind),
                tag("text", clipped(site, 7), x=x, y=y + 4, class_="name middle small"),
                texts,
            )
        )
    return found


def _line(origin: Point, target: Point, kind: str) -> Markup:
    (x1, y1), (x2, y2) = origin, target
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def _arrow(origin: Point, target: Point, kind: str, about: str, weight: float) -> Markup:
    """A bent line with a head, from the edge of one circle to that of another."""
    (x1, y1), (x2, y2) = origin, target
    length = math.hypot(x2 - x1, y2 - y1) or 1.0
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    bx, by = (x1 + x2) / 2 - uy * _BEND, (y1 + y2) / 2 + ux * _BEND
    sx, sy = x1 + ux * _CIRCLE, y1 + uy * _CIRCLE
    ex, ey = x2 - ux * (_CIRCLE + 3), y2 - uy * (_CIRCLE + 3)
    # The head lies along the end of the bend.
    dx, dy = ex - bx, ey - by
    far = math.hypot(dx, dy) or 1.0
    dx, dy, reach = dx / far, dy / far, 6 + weight
    foot = ex - reach * dx, ey - reach * dy
    left = foot[0] - 0.6 * reach * dy, foot[1] + 0.6 * reach * dx
    right = foot[0] + 0.6 * reach * dy, foot[1] - 0.6 * reach * dx
    corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in ((ex, ey), left, right))
    bend = f"M{sx:.1f} {sy:.1f} Q{bx:.1f} {by:.1f} {foot[0]:.1f} {foot[1]:.1f}"
    return tag(
        "g",
        tag("title", about),
        tag("path", d=bend, stroke_width=weight),
        tag("polygon", points=corners),
        class_=kind,
    )
