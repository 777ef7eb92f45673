"""HTML and SVG as values: what is text is escaped when it becomes part of an element.

    >>> str(tag("p", "a < b", class_="note"))
    '<p class="note">a &lt; b</p>'

Names of streams, plans and reasons come from files that others have written. There is no way to
put text on a page here but as text: only elements made by `tag` are taken as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

_NAME = re.compile(r"[a-zA-Z][a-zA-Z0-9:-]*")
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta"})


class Markup(str):
    """Text that is HTML already; made by `tag` and `together` only."""

    __slots__ = ()


Child = str | int | float | None | Iterable["Child"]
Value = str | int | float | bool | None


def tag(name: str, /, *children: Child, **attributes: Value) -> Markup:
    """An element. Attributes that are None or False are left out; `_` is written as `-`.

    >>> str(tag("input", type="text", disabled=True, data_x=3, class_=None))
    '<input type="text" disabled data-x="3">'
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an element")
    head = f"<{name}{''.join(_attributes(attributes))}>"
    if name in _VOID:
        return Markup(head)
    return Markup(f"{head}{together(*children)}</{name}>")


def style_sheet(text: str) -> Markup:
    """A style sheet of our own, in the page itself."""
    if "<" in text:
        raise ValueError("a style sheet has no elements in it")
    return Markup(f"<style>{text}</style>")


def together(*children: Child) -> Markup:
    """Elements and texts one after the other.

    >>> str(together("a & b", [tag("br"), None, 3]))
    'a &amp; b<br>3'
    """
    return Markup("".join(_text(child) for child in children))


def page(*children: Child) -> Markup:
    """A whole document."""
    return Markup(f"<!doctype html>\n{tag('html', *children, lang='en')}\n")


def _attributes(given: dict[str, Value]) -> Iterable[str]:
    for name, value in given.items():
        if value is None or value is False:
            continue
        called = name.rstrip("_").replace("_", "-")
        called = _SVG.get(called, called)
        yield f" {called}" if value is True else f' {called}="{escape(_plain(value))}"'


_SVG = {"viewbox": "viewBox", "preserveaspectratio": "preserveAspectRatio"}
"""Names that are not lower case."""


def _text(child: Child) -> str:
    if child is None:
        return ""
    if isinstance(child, Markup):
        return str(child)
    if isinstance(child, str):
        return escape(child, quote=False)
    if isinstance(child, int | float):
        return _plain(child)
    return "".join(map(_text, child))


def _plain(value: str | float) -> str:
    """A number as short as it can be in a drawing."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
