"""The pictures of the console as one file that needs nothing else: `plait report`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from plait.dashboard.drawing.markup import Child, Markup, page, style_sheet, tag
from plait.dashboard.pages import sections
from plait.dashboard.pages.sections import Looking, drawn
from plait.dashboard.pages.sites_sections import sites_parts
from plait.dashboard.reading.contents import Contents
from plait.figures import instant

_MOST = 500
"""Decisions in a report."""


def report_page(found: Sequence[Contents]) -> Markup:
    """A report of all joins of a checkpoint.

    It has no script, and says so: a browser that opens it runs and loads nothing.
    """
    style = files("plait.dashboard").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    names = ", ".join(contents.name for contents in found)
    return page(
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", http_equiv="Content-Security-Policy",
                content=f"default-src 'none'; style-src 'sha256-{digest}'"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", f"{names} · Plait"),
            style_sheet(style),
        ),
        tag("body", [_join(contents) for contents in found]),
    )  # fmt: skip


def _join(contents: Contents) -> Child:
    looking = Looking(span=None, live=False)
    return [
        tag(
            "header",
            tag(
                "div",
                tag("h1", tag("span", "≋ "), "Plait"),
                tag("b", contents.name),
                tag("span", contents.folder, class_="where"),
                drawn(sections.status, contents),
                class_="bar",
            ),
        ),
        tag("main", _parts(contents, looking)),
        tag("footer", f"written {instant(contents.read)} UTC by plait report"),
    ]


def _parts(contents: Contents, looking: Looking) -> list[Child]:
    if contents.sites is not None:
        return sites_parts(contents.sites)
    return [
        drawn(sections.tiles, contents),
        drawn(sections.graph, contents, looking),
        drawn(sections.plans, contents, looking),
        drawn(sections.timeline, contents, looking),
        drawn(sections.decisions, contents, looking, _MOST),
        drawn(sections.groups, contents),
        drawn(sections.loads, contents, looking),
        drawn(sections.streams, contents),
        drawn(sections.notes, contents),
    ]
