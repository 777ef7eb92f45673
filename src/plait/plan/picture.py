"""Draw a plan as SVG: the tree of joins, ready for a page.

Lines and texts have the colour of the text around them, so the picture suits light and dark pages.
Its title says the same in words, for those who do not see it.

>>> from plait.testing.examples import clique
>>> from plait.plan.jtree import parse_shape
>>> picture = plan_svg(parse_shape(clique(3), "((a b) c)"))
>>> picture[:4], "<title>plan ((a b) c)</title>" in picture, picture.count("⋈")
('<svg', True, 2)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

from plait.plan.jtree import Join, Leaf, Node
from plait.plan.routed import Eddies, Plan, Teddies

_LETTER, _GAP, _LEVEL, _HEIGHT, _MARGIN = 8, 16, 58, 28, 8
"""Pixels: of a letter, between two boxes, from level to level, of a box, and around it all."""
_STYLE = "font:13px ui-monospace,monospace;max-width:100%;height:auto"


@dataclass(frozen=True, slots=True)
class _Drawn:
    """A node at its place: the middle of its box, and the level below the root."""

    text: str
    x: float
    level: int
    wide: float
    node: Node | None
    children: tuple[_Drawn, ...] = ()

    def all(self) -> Iterator[_Drawn]:
        yield self
        for child in self.children:
            yield from child.all()

    @property
    def y(self) -> float:
        return _MARGIN + self.level * _LEVEL + _HEIGHT / 2


def plan_svg(plan: Plan) -> str:
    """Draw the tree of a plan as SVG; a router as a box with its name."""
    if isinstance(plan, Eddies | Teddies):
        text = str(plan)
        wide = _width(text)
        root = _Drawn(text, _MARGIN + wide / 2, 0, wide, None)
    else:
        root, _ = _placed(plan, 0, _MARGIN)
    drawn = list(root.all())
    width = max(d.x + d.wide / 2 for d in drawn) + _MARGIN
    height = max(d.y for d in drawn) + _HEIGHT / 2 + _MARGIN
    return "".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" role="img" style="{_STYLE}" '
            f'width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}">',
            f"<title>plan {escape(str(plan))}</title>",
            *(_edge(d, child) for d in drawn for child in d.children),
            *map(_box, drawn),
            "</svg>",
        ]
    )


def probe_orders(join: Join) -> list[str]:
    """List the probes of a new tuple of each input.

    >>> from plait.testing.examples import clique
    >>> from plait.plan.jtree import mjoin
    >>> probe_orders(mjoin(clique(3)))
    ['a → b → c', 'b → a → c', 'c → a → b']
    """
    names = [str(child) for child in join.children]
    return [
        " → ".join([names[c], *(names[k] for k in order)]) for c, order in enumerate(join.orders)
    ]


def _placed(node: Node, level: int, left: float) -> tuple[_Drawn, float]:
    """Place a node and all below it from a left edge; return where the next one may begin."""
    if isinstance(node, Leaf):
        wide = _width(str(node))
        return _Drawn(str(node), left + wide / 2, level, wide, node), left + wide + _GAP
    children = []
    for child in node.children:
        drawn, left = _placed(child, level + 1, left)
        children.append(drawn)
    middle = (children[0].x + children[-1].x) / 2
    text = "⋈ results" if level == 0 else "⋈"
    return _Drawn(text, middle, level, _width(text), node, tuple(children)), left


def _width(text: str) -> float:
    return len(text) * _LETTER + 2 * _GAP


def _edge(parent: _Drawn, child: _Drawn) -> str:
    top, bottom = parent.y + _HEIGHT / 2, child.y - _HEIGHT / 2
    return (
        f'<path d="M{parent.x:.0f} {top:.0f}L{child.x:.0f} {bottom:.0f}" fill="none" '
        'stroke="currentColor" stroke-opacity="0.5"/>'
    )


def _box(drawn: _Drawn) -> str:
    left, top = drawn.x - drawn.wide / 2, drawn.y - _HEIGHT / 2
    said, shade = "", 0.04
    if isinstance(drawn.node, Join):
        said = f"<title>{escape('; '.join(probe_orders(drawn.node)))}</title>"
        shade = 0.14
    return (
        f'<g>{said}<rect x="{left:.0f}" y="{top:.0f}" width="{drawn.wide:.0f}" '
        f'height="{_HEIGHT}" rx="5" fill="currentColor" fill-opacity="{shade}" '
        f'stroke="currentColor" stroke-opacity="0.6"/><text x="{drawn.x:.0f}" '
        f'y="{drawn.y + 4.5:.0f}" text-anchor="middle" fill="currentColor">'
        f"{escape(drawn.text)}</text></g>"
    )
