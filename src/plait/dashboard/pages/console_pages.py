"""The pages of the console, as pure functions of a snapshot and what is requested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

from plait.dashboard.drawing.markup import Child, Markup, page, tag
from plait.dashboard.pages import sections
from plait.dashboard.pages.sections import ViewOptions, render, section
from plait.dashboard.pages.sites_sections import sites_parts
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.views.plan_preview import PlanPreview
from plait.figures import count, duration, instant, processors, short, size
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.plan.migration import Strategy

_FEW, _MANY = 6, 200
"""Decisions on the overview, and on their own page."""


@dataclass(frozen=True, slots=True)
class ConsoleSite:
    """What all pages of a console have in common."""

    joins: Sequence[str]
    """The names of the joins in the checkpoint."""
    join: str
    control: bool = False
    """Whether plans may be asked for."""
    csrf: str = ""
    """What a form must bring along."""


def console_page(site: ConsoleSite, snapshot: JoinSnapshot, path: str, *parts: Child) -> Markup:
    """A page with its head, its menu and these parts."""
    # Links are relative: where the console is, nobody is to know but who is there.
    menu = [("./", "Overview"), ("decisions", "Decisions"), ("processors", "Processors")]
    if snapshot.sites is not None:
        menu = menu[:1]
    elif site.control:
        menu.append(("control", "Control"))
    others = [
        tag("a", name, href=f"join/{i}", class_="here" if name == site.join else None)
        for i, name in enumerate(site.joins)
    ]
    return page(
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", f"{site.join} · Plait"),
            tag("link", rel="stylesheet", href="static/style.css"),
            tag("link", rel="icon", href="static/icon.svg", type="image/svg+xml"),
            tag("script", src="static/console.js", defer=True),
        ),
        tag(
            "body",
            tag(
                "header",
                tag(
                    "div",
                    tag("h1", tag("span", "≋ "), "Plait"),
                    tag("nav", [tag("a", text, href=to, class_="here" if to == path else None)
                                for to, text in menu]),
                    tag("nav", others, class_="joins") if len(site.joins) > 1 else None,
                    tag("span", snapshot.folder, class_="where"),
                    render(sections.status, snapshot),
                    class_="bar",
                ),
            ),
            tag("main", *parts, id="main", data_version=snapshot.version),
        ),
    )  # fmt: skip


def overview(site: ConsoleSite, snapshot: JoinSnapshot, options: ViewOptions) -> Markup:
    """The first page."""
    if snapshot.sites is not None:
        return console_page(site, snapshot, "./", *sites_parts(snapshot.sites))
    return console_page(
        site,
        snapshot,
        "./",
        render(sections.tiles, snapshot),
        render(sections.graph, snapshot, options),
        render(sections.plans, snapshot, options),
        render(sections.timeline, snapshot, options),
        render(sections.decisions, snapshot, options, _FEW),
        render(sections.notes, snapshot),
    )


def decisions_page(site: ConsoleSite, snapshot: JoinSnapshot, options: ViewOptions) -> Markup:
    """All decisions."""
    return console_page(
        site,
        snapshot,
        "decisions",
        render(sections.timeline, snapshot, options),
        render(sections.decisions, snapshot, options, _MANY),
    )


def processors_page(site: ConsoleSite, snapshot: JoinSnapshot) -> Markup:
    """Processors, groups and streams."""
    return console_page(
        site,
        snapshot,
        "processors",
        render(sections.groups, snapshot),
        render(sections.loads, snapshot, ViewOptions()),
        render(sections.streams, snapshot),
    )


# -- asking for plans


@dataclass(frozen=True, slots=True)
class Form:
    """What was entered on the control page, and what came of it."""

    plan: str = ""
    strategy: str = "auto"
    preview: PlanPreview | None = None
    trouble: str = ""


def control_page(site: ConsoleSite, snapshot: JoinSnapshot, form: Form) -> Markup:
    """The page on which another plan is requested."""
    return console_page(
        site,
        snapshot,
        "control",
        render(_form, site, snapshot, form),
        None if form.preview is None else render(_preview, form.preview),
        render(_asked, snapshot),
        render(sections.plans, snapshot, ViewOptions(live=False), "six"),
    )


def _form(site: ConsoleSite, snapshot: JoinSnapshot, form: Form) -> Markup:
    held = snapshot.epoch is not None and snapshot.epoch.plan is not None
    said = (
        f"Pinned: every processor runs {snapshot.epoch.plan} until it is released."
        if held and snapshot.epoch is not None
        else "Processors choose their plans themselves."
        if snapshot.question is not None and snapshot.question.policy is not None
        else "The plan was given when the query was started, and stays."
    )
    known = [(s, s.replace("-", " ")) for s in get_args(Strategy)]
    options = [
        tag("option", text, value=value, selected=value == form.strategy)
        for value, text in (("auto", "let Plait choose"), *known)
    ]
    csrf = tag("input", type="hidden", name="csrf", value=site.csrf)
    names = [] if snapshot.query is None else list(snapshot.query.names)
    example = _example(names)
    return section(
        "form",
        "Request a plan",
        tag("p", said, class_="said", id="held"),
        tag("p", form.trouble, class_="said bad", id="trouble") if form.trouble else None,
        tag(
            "form",
            csrf,
            tag("label", "Plan", tag("input", type="text", name="plan", value=form.plan,
                placeholder=example, autocomplete="off", spellcheck="false", id="plan")),
            tag("label", "Strategy", tag("select", options, name="strategy")),
            tag(
                "div",
                tag("button", "Preview", name="action", value="preview", class_="main"),
                tag("button", "Migrate", name="action", value="migrate",
                    title="go over to this plan, then choose freely again"),
                tag("button", "Pin", name="action", value="pin",
                    title="run this plan until it is released"),
                class_="buttons",
            ),
            method="post",
            action="control",
        ),
        tag("p", "Migrate: go over to this plan, then choose freely again. Pin: run it until it is "
            "released. No result is lost or repeated.", class_="soft small"),
        tag("form", csrf, tag("div", tag("button", "Release", name="action", value="release",
            title="let the processors choose their plans again"), class_="buttons"),
            method="post", action="control"),
        kind="six keep",
    )  # fmt: skip


def _example(names: Sequence[str]) -> str:
    """A plan that could be written.

    >>> _example(["a", "b", "c"])
    '((a b) c)'
    """
    found = names[0] if names else "((a b) c)"
    for name in names[1:]:
        found = f"({found} {name})"
    return found


def _preview(found: PlanPreview) -> Markup:
    change = found.change
    worth = "Its cost is unknown: no processor has estimates yet."
    kind = ""
    if change is not None:
        kind = "good" if change <= 0 and not found.too_large else "bad"
        share = f"{abs(change):.0%} {'less' if change <= 0 else 'more'} CPU"
        share = share if change < 1 else f"{1 + change:.3g} times the CPU"
        now, then = (sum(getattr(p, n) for p in found.processors) for n in ("now", "then"))
        worth = (
            f"{share}: {then:.3g} instead of {now:.3g} seconds per second of "
            f"event time, over all processors. The longest pause is {duration(found.pause)}."
        )
    if found.too_large:
        worth += f" The state of a processor would exceed its budget of {size(found.budget)}."
    silent = (
        f" {count(found.silent, 'processor has', 'processors have')} no estimates."
        if found.silent
        else ""
    )
    rows = [
        tag(
            "tr",
            tag("td", processors([p.processor])),
            tag("td", f"{short(p.now)} → {short(p.then)} s/s", class_="number"),
            tag("td", f"{size(p.bytes_now)} → {size(p.bytes_then)}", class_="number"),
            tag("td", duration(p.pause), class_="number"),
            tag("td", duration(p.work), class_="number"),
            tag("td", p.strategy.replace("-", " "), title=p.reason),
        )
        for p in found.processors[:64]
    ]  # fmt: skip
    head = tag("tr", *(tag("th", name, class_="number" if 0 < n < 5 else None) for n, name in
        enumerate(("", "CPU", "state", "pause", "work", "strategy"))))  # fmt: skip
    states = [
        tag("li", f"{word}: {', '.join(listed)}")
        for word, listed in (("shared", found.kept), ("recomputed", found.made))
        if listed
    ]
    return section(
        "preview",
        "Preview",
        tag("p", tag("code", found.label, class_="plan")),
        tag("p", worth + silent, class_=f"said {kind}".strip()),
        tag("ul", states, class_="small"),
        tag("div", tag("table", head, rows), class_="scroll") if rows else None,
        kind="six keep",
    )


def _asked(snapshot: JoinSnapshot) -> Markup:
    """The requests and their answers."""
    if not snapshot.waiting and not snapshot.answers:
        return section(
            "asked", "Requests", tag("p", "No requests yet.", class_="soft"),
            kind="six",
        )  # fmt: skip
    rows = [
        tag("tr", tag("td", _words(r)), tag("td", "waits for the driver", class_="soft"))
        for _, r in snapshot.waiting
        if r is not None
    ]
    rows += [tag("tr", tag("td", _words(a.request)), tag("td", *_answer(snapshot, a)))
             for _, a in snapshot.answers[:12]]  # fmt: skip
    return section("asked", "Requests", tag("table", rows), kind="six")


def _words(request: PlanRequest) -> Child:
    when = tag("small", instant(request.at), class_="soft")
    if request.action == "release":
        return ["release ", tag("br"), when]
    return [f"{request.action} ", tag("code", request.plan), tag("br"), when]


def _answer(snapshot: JoinSnapshot, answer: PlanAnswer) -> Sequence[Child]:
    if answer.refused:
        return [tag("span", answer.refused, class_="loss")]
    followed = sum(r.epoch >= answer.epoch for r in snapshot.latest.values())
    everywhere = f"followed by {followed} of {len(snapshot.latest)} processors"
    return [f"epoch {answer.epoch}", tag("br"), tag("small", everywhere, class_="soft")]


def refused_page(title: str, said: str) -> Markup:
    """A page that says why a request was refused."""
    return page(
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("title", f"{title} · Plait"),
        ),
        tag("body", tag("main", tag("h1", title), tag("p", said))),
    )


def view_options(given: Mapping[str, str]) -> ViewOptions:
    """Read the options in an address; what makes no sense is ignored.

    >>> view_options({"span": "all", "processor": "3"}), view_options({"span": "x"}).span
    (ViewOptions(span=None, processor=3, live=True), 200)
    """
    span: int | None = 200
    if given.get("span") == "all":
        span = None
    elif (text := given.get("span", "")).isdecimal() and len(text) < 8:
        span = max(1, int(text))
    which = given.get("processor", "")
    return ViewOptions(span, int(which) if which.isdecimal() and len(which) < 8 else None)
