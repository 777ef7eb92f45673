"""Draw a plan: windows at the bottom, results at the top, work and state at each node."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from plait.dashboard.drawing.graph import clipped
from plait.dashboard.drawing.markup import Markup, tag
from plait.dashboard.views.plan_trees import NodeView, TreeView
from plait.figures import short, size

_BOX, _TALL = 140.0, 62.0
_ACROSS, _DOWN = 152.0, 100.0
_EDGE = 6.0


@dataclass(frozen=True, slots=True)
class _Placed:
    node: NodeView
    x: float
    level: int
    below: tuple[_Placed, ...] = ()


def draw_tree(view: TreeView) -> Markup | None:
    """The drawing; None for a plan without a tree."""
    if view.root is None:
        return None
    placed, leaves = _place(view.root, 0, 0)
    depth = max(p.level for p in _all(placed)) + 1
    width = leaves * _ACROSS - (_ACROSS - _BOX) + 2 * _EDGE
    height = depth * _DOWN - (_DOWN - _TALL) + 2 * _EDGE

    def top(level: int) -> float:
        return _EDGE + level * _DOWN

    lines = [
        tag(
            "path",
            d=f"M{b.x:.1f} {top(b.level):.1f} "
            f"C{b.x:.1f} {top(b.level) - 22:.1f} {p.x:.1f} {top(p.level) + _TALL + 22:.1f} "
            f"{p.x:.1f} {top(p.level) + _TALL:.1f}",
            class_="branch",
        )
        for p in _all(placed)
        for b in p.below
    ]
    boxes = [_box(p, top(p.level), view) for p in _all(placed)]
    return tag(
        "svg",
        tag("title", f"The plan {view.plan}"),
        lines,
        boxes,
        viewbox=f"0 0 {width:g} {height:g}",
        width=width,
        height=height,
        class_="tree",
        role="img",
    )


def outline(view: TreeView) -> Markup | None:
    """The same as a list, for where there is no room for a drawing."""
    return None if view.root is None else tag("ul", _item(view.root, view), class_="outline")


def _item(node: NodeView, view: TreeView) -> Markup:
    share = tag("b", f" {node.share:.0%} of the work") if node.is_join and node.share else None
    below = [_item(child, view) for child in node.children]
    return tag(
        "li",
        tag("span", "results" if node.root else node.label, class_="name"),
        tag("small", f" {_held(node, view)}", class_="soft"),
        share,
        tag("ul", below) if below else None,
        title=_about(node),
    )


def _held(node: NodeView, view: TreeView) -> str:
    if node.root:
        return f"{short(view.results)} results a batch"
    return f"{short(node.rows)} rows · {size(node.bytes)}"


def _place(node: NodeView, level: int, leaf: int) -> tuple[_Placed, int]:
    """Where a node is, above the middle of what is below it, and how many windows that is."""
    if not node.children:
        return _Placed(node, _EDGE + _BOX / 2 + leaf * _ACROSS, level), 1
    below, count = [], 0
    for child in node.children:
        placed, leaves = _place(child, level + 1, leaf + count)
        below.append(placed)
        count += leaves
    x = (below[0].x + below[-1].x) / 2
    return _Placed(node, x, level, tuple(below)), count


def _all(placed: _Placed) -> Iterator[_Placed]:
    yield placed
    for below in placed.below:
        yield from _all(below)


def _box(placed: _Placed, top: float, view: TreeView) -> Markup:
    node, x = placed.node, placed.x
    left = x - _BOX / 2
    held = _held(node, view)
    name = "results" if node.root else node.label
    parts = [
        tag("title", _about(node)),
        tag("rect", x=left, y=top, width=_BOX, height=_TALL, rx=10, class_=_kind(node)),
        tag("text", clipped(name, 17), x=x, y=top + 19, class_="name middle"),
        tag("text", held, x=x, y=top + 35, class_="soft small middle"),
    ]
    if node.is_join:
        room = _BOX - 60
        done = max(2.0, room * (node.share or 0.0))
        parts += [
            tag("rect", x=left + 10, y=top + 44, width=room, height=8, rx=4, class_="rail"),
            tag("rect", x=left + 10, y=top + 44, width=done, height=8, rx=4,
                class_="work"),
            tag("text", _share(node), x=left + _BOX - 10, y=top + 52,
                class_="small value end"),
        ]  # fmt: skip
    else:
        parts.append(tag("text", "window", x=x, y=top + 51, class_="soft small middle"))
    return tag("g", parts)


def _share(node: NodeView) -> str:
    """The share of the work; a plan that has just begun has done none yet."""
    return "–" if node.share is None else f"{node.share:.0%}"


def _kind(node: NodeView) -> str:
    if not node.is_join:
        return "box stream"
    return "box root" if node.root else "box join"


def _about(node: NodeView) -> str:
    counted = ", ".join(f"{n:,} {what}" for what, n in node.counted)
    held = f"{node.label}: {node.rows:,} rows, {node.bytes:,} bytes"
    work = f"; in the last batch {counted}" if counted else ""
    return f"{held}{work}" + "".join(f"\n{way}" for way in node.ways)
