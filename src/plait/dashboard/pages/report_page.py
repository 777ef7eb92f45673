"""Make one file of the console's pictures that needs nothing else: `plait query report`."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib.resources import files

from plait.dashboard.drawing.markup import Child, Markup, page, style_sheet, tag
from plait.dashboard.pages import sections
from plait.dashboard.pages.sections import ViewOptions, render
from plait.dashboard.pages.sites_sections import sites_parts
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.figures import instant

_MOST = 500
"""Decisions in a report."""


def report_page(found: Sequence[JoinSnapshot]) -> Markup:
    """A report of all joins of a checkpoint.

    It has no script, and says so: a browser that opens it runs and loads nothing.
    """
    style = files("plait.dashboard").joinpath("style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    names = ", ".join(snapshot.name for snapshot in found)
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
        tag("body", [_join(snapshot) for snapshot in found]),
    )  # fmt: skip


def _join(snapshot: JoinSnapshot) -> Child:
    options = ViewOptions(span=None, live=False)
    return [
        tag(
            "header",
            tag(
                "div",
                tag("h1", tag("span", "≋ "), "Plait"),
                tag("b", snapshot.name),
                tag("span", snapshot.folder, class_="where"),
                render(sections.status, snapshot),
                class_="bar",
            ),
        ),
        tag("main", _parts(snapshot, options)),
        tag("footer", f"written {instant(snapshot.read)} UTC by plait query report"),
    ]


def _parts(snapshot: JoinSnapshot, options: ViewOptions) -> list[Child]:
    if snapshot.sites is not None:
        return sites_parts(snapshot.sites)
    return [
        render(sections.tiles, snapshot),
        render(sections.graph, snapshot, options),
        render(sections.plans, snapshot, options),
        render(sections.timeline, snapshot, options),
        render(sections.decisions, snapshot, options, _MOST),
        render(sections.groups, snapshot),
        render(sections.loads, snapshot, options),
        render(sections.streams, snapshot),
        render(sections.notes, snapshot),
    ]
