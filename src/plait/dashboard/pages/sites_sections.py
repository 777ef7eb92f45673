"""The parts of the page of a join over sites: sites, links, ways of the streams, decisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from plait.dashboard.drawing.markup import Child, Markup, tag
from plait.dashboard.drawing.sites import draw_links, draw_way
from plait.dashboard.pages.sections import section
from plait.dashboard.reading.sites import SitesSnapshot
from plait.figures import duration, instant, short, size
from plait.sites.plans.plan import Jep
from plait.sites.site.progress import SiteProgress

_MOST = 300
"""Decisions that are shown."""


def sites_parts(read: SitesSnapshot) -> list[Child]:
    """All parts of the page of a join over sites."""
    return [links(read), sites(read), ways(read), decisions(read)]


def links(read: SitesSnapshot) -> Markup:
    """The sites, and the bytes over each link."""
    sent = read.progress.link_bytes
    rows = [
        tag("tr", tag("td", f"{a} → {b}"), tag("td", f"{sent.get((a, b), 0):,}"),
            tag("td", duration(link.latency)), tag("td", f"{size(link.rate)}/s"))
        for (a, b), link in read.links.items()
    ]  # fmt: skip
    head = tag("tr", [tag("th", text) for text in ("link", "bytes sent", "latency", "rate")])
    return section(
        "links",
        "Links",
        draw_links(read.sites, read.links, sent),
        tag("details", tag("summary", "in figures"), tag("table", head, rows), id="link-figures"),
        kind="five",
        aside=tag("span", "the thicker, the more bytes; slow links are dotted", class_="soft"),
    )


def sites(read: SitesSnapshot) -> Markup:
    """What each site has done, and what was measured of its streams."""
    names = ("site", "streams", "windows kept", "waiting", "results", "plan")
    rows = [_site(name, read.progress.sites.get(name)) for name in read.sites.names]
    table = tag("table", tag("tr", [tag("th", name) for name in names]), rows)
    notices = [
        tag("li", tag("b", stream), f": {told['notice']}")
        for done in read.progress.sites.values()
        for stream, told in done.measured.items()
    ]
    seen = tag("details", tag("summary", "as last measured"), tag("ul", notices), id="measured")
    wide = tag("div", table, class_="scroll")
    waits = [
        tag("li", tag("b", name), f" {one}")
        for name, done in read.progress.sites.items()
        for one in done.unanswered
    ]
    silent = tag("ul", waits, id="unanswered") if waits else None
    return section("sites", "Sites", wide, silent, seen if notices else None, kind="seven")


def _site(name: str, done: SiteProgress | None) -> Markup:
    if done is None:
        return tag("tr", tag("td", tag("b", name)), tag("td", "has not reported", colspan=5))
    kept = ", ".join(f"{s} {n:,}" for s, n in done.last.get("windows", {}).items())
    phase = str(done.last.get("phase", "idle"))
    plan = f"{done.last['follows']}" if phase == "idle" else f"{done.last['follows']}, {phase}"
    streams = [
        f"{stream}: {short(rows)} rows{_rate(done.measured.get(stream))}"
        for stream, rows in done.streams.get("rows", {}).items()
    ]
    told = ("; ".join(streams) or "none yet", kept or "none", f"{done.last.get('waiting', 0):,}")
    more = (f"{done.counts.get('results', 0):,}", plan)
    return tag("tr", tag("td", tag("b", name)), [tag("td", text) for text in (*told, *more)])


def _rate(told: Mapping[str, Any] | None) -> str:
    return "" if told is None else f", {told['rate']:.3g}/s"


def ways(read: SitesSnapshot) -> Markup:
    """The way of each head stream, in the plan before the last change and in that of now."""
    number, plan = read.plan
    before = read.before
    rows: list[Child] = []
    if before is not None:
        rows.append(_plan(read, f"before: plan {before[0]}", before[1], plan))
    rows.append(_plan(read, f"now: plan {number}", plan, plan if before is None else before[1]))
    key = (("tuples", "tuples joined so far"), ("window", "a stream, to keep its window there"))
    return section(
        "ways",
        "The way of each head stream",
        tag("p", "A new row begins at the coloured site, where its stream arrives. «1. ⋈ b» is the "
            "first join, with the window of b, at the site where it is written.", class_="soft"),
        rows,
        tag("div", [tag("span", text, class_=kind) for kind, text in key], class_="key"),
    )  # fmt: skip


def _plan(read: SitesSnapshot, title: str, plan: Jep, other: Jep) -> Markup:
    """The ways in one plan; those that are not the same in the other one are marked."""
    panels = []
    for sep in plan.seps:
        moved = sep != other.of(sep.head)
        panels.append(
            tag(
                "div",
                tag("b", sep.head),
                tag("span", " · changes" if moved else "", class_="soft"),
                draw_way(read.sites, read.links, sep),
                class_="wayof moved" if moved else "wayof",
            )
        )
    return tag("div", tag("h3", title), tag("div", panels, class_="ways"))


def decisions(read: SitesSnapshot) -> Markup:
    """What was decided about the plan and why, the newest first."""
    found = list(reversed(read.progress.decisions))[:_MOST]
    if not found:
        nothing = tag("p", "No decisions yet.", class_="soft")
        return section("decisions", "Decisions", nothing)
    cards = []
    for one in found:
        when = f"{one.site} · step {one.step:,} · {instant(one.time / 1e6)}"
        top = [tag("span", one.text, class_="plan"), tag("small", when, class_="soft")]
        cards.append(tag("div", tag("div", top, class_="top"), class_=f"card {_sort(one.text)}"))
    return section("decisions", "Decisions", tag("div", cards, class_="cards"))


def _sort(text: str) -> str:
    """The colour of a decision."""
    if "given up" in text:
        return "bad"
    return "verdict" if "stays" in text else "change"
