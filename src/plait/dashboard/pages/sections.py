"""The parts of pages, each a function from a snapshot to markup.

They know nothing of servers: the console and the report consist of the same parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from plait.dashboard.drawing.graph import draw_graph
from plait.dashboard.drawing.markup import Child, Markup, tag, together
from plait.dashboard.drawing.timeline import draw_timeline
from plait.dashboard.drawing.tree import draw_tree, outline
from plait.dashboard.reading.decision_cards import DecisionCard
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.views.join_graph import graph_view
from plait.dashboard.views.loads import LoadView, ProcessorView, load_view
from plait.dashboard.views.plan_trees import TreeView, tree_views
from plait.figures import (
    duration,
    instant,
    one_in,
    processors,
    ranges,
    short,
    size,
)
from plait.groups.moves.move import Move
from plait.node.reports.placement import GroupShare
from plait.node.time_outliers import time_outlier_notes

SPANS = (50, 200, 1000)
"""Choices for the time line, in batches; there is also everything."""
_MOST_PLANS = 4
_HOT, _NEAR = 1.5, 0.9
"""From how many times the mean a processor is hot, and which share of the budget is near it."""
_QUIET = 60.0


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """Which batches and which processor a page shows, and whether it has links."""

    span: int | None = 200
    """Batches of the time line; None is all."""
    processor: int | None = None
    """The one whose estimates and plan are shown; None is all."""
    live: bool = True
    """Whether there is a server that links can go to."""

    def link(self, path: str, text: Child, *, here: bool = False) -> Markup:
        """A link, or only its text where there is no server."""
        kind = "here" if here else None
        return tag("a", text, href=path, class_=kind) if self.live else tag("span", text)

    def address(self, span: int | None, processor: int | None) -> str:
        """The overview with other choices.

        >>> ViewOptions().address(None, 3)
        './?span=all&processor=3'
        """
        chosen = "all" if span is None else str(span)
        which = "" if processor is None else f"&processor={processor}"
        return f"./?span={chosen}{which}"


def section(name: str, title: str, *children: Child, kind: str = "", aside: Child = None) -> Markup:
    """A part of a page with a heading."""
    head = tag("div", tag("h2", title), aside, class_="head")
    return tag("section", head, *children, id=name, class_=kind or None)


def render(part: Callable[..., Markup | None], *given: object) -> Markup | None:
    """Render a part of a page; if that fails, say so in its place."""
    try:
        return part(*given)
    except Exception as error:
        name = part.__name__.strip("_")
        said = f"This part cannot be drawn ({type(error).__name__}: {error})."
        return section(name, name.capitalize(), tag("p", said, class_="said bad"))


# -- the top of the page


def status(snapshot: JoinSnapshot) -> Markup:
    """Whether the query runs, as far as its files tell."""
    if snapshot.stale:
        since = f"since {instant(snapshot.read)} UTC" if snapshot.read else "yet"
        said = f"not refreshed {since}: {snapshot.stale}"
        return tag("span", said, class_="badge warn long", id="status")
    if snapshot.sites is not None:
        steps = sum(site.steps for site in snapshot.sites.progress.sites.values())
        said = f"{snapshot.sites.progress.results:,} results in {steps:,} steps"
        return tag("span", said, class_="badge", id="status")
    last = snapshot.last
    if last is None:
        return tag("span", "no batch has ended yet", class_="badge", id="status")
    ended = last.at + last.took / max(last.batches, 1)
    age = snapshot.read - ended
    if not last.at or age < 0:
        return tag("span", f"batch {last.last:,}", class_="badge", id="status")
    usual = last.took / max(last.batches, 1)
    quiet = age > max(_QUIET, 5 * usual)
    said = f"batch {last.last:,}, {duration(age)} ago"
    return tag(
        "span",
        f"quiet since {said}" if quiet else f"live · {said}",
        class_="badge warn" if quiet else "badge good",
        id="status",
    )


def tiles(snapshot: JoinSnapshot) -> Markup:
    """The figures of the last batch."""
    last, load = snapshot.last, load_view(snapshot)
    if last is None:
        return tag("section", id="tiles", class_="tiles")
    count = max(last.batches, 1)
    totals = [r.total for r in snapshot.latest.values()]
    late = sum(sum(total.get("late", {}).values()) for total in totals)
    fullest = max((p.state_bytes for p in load.processors), default=0)
    near = load.budget is not None and fullest > _NEAR * load.budget
    limit = "" if load.budget is None else f"fullest {fullest / load.budget:.0%} of its budget"
    hot, times = last.hottest
    return tag(
        "section",
        _tile("rows a batch", short(sum(last.rows.values()) / count), _each(last.rows)),
        _tile("results a batch", short(last.results / count), _total(totals)),
        _tile("time of a batch", duration(last.took / count), _stages(last.seconds)),
        _tile("state", size(last.state_bytes), limit or f"{short(last.state_rows)} rows",
              "warn" if near else ""),
        _tile("late rows", f"{late:,}" if late < 1e5 else short(late), "since the beginning",
              "warn" if last.late else ""),
        _tile("hottest processor", f"{times:.2g} ×", f"processor {hot}, against the mean",
              "warn" if times > _HOT else ""),
        id="tiles",
        class_="tiles",
    )  # fmt: skip


def _tile(what: str, value: str, more: str, kind: str = "") -> Markup:
    return tag(
        "div",
        tag("span", what, class_="what"),
        tag("b", value),
        tag("small", more),
        class_=f"tile {kind}".strip(),
    )


def _each(rows: object) -> str:
    return f"of {len(rows)} streams" if isinstance(rows, dict) else ""


def _total(totals: Sequence[dict[str, object]]) -> str:
    found = [t["results"] for t in totals if isinstance(t.get("results"), int | float)]
    return f"{short(sum(map(float, map(str, found))))} in all" if found else ""


def _stages(spent: object) -> str:
    if not isinstance(spent, dict) or not spent:
        return ""
    joined = spent.get("join")
    return "" if joined is None else f"joining takes {duration(float(joined))}"


# -- pictures


def graph(snapshot: JoinSnapshot, options: ViewOptions) -> Markup:
    """The join graph with its estimates."""
    view = graph_view(snapshot, options.processor)
    if view is None:
        return section("graph", "Join graph", tag("p", _UNKNOWN, class_="soft"), kind="five")
    if not view.estimating:
        said = "no processor has estimates: the plan of this query is fixed"
    else:
        who = "all processors" if view.processor is None else f"processor {view.processor}"
        said = f"estimates of {who} after batch {view.batch:,}"
    rows = [
        tag(
            "tr",
            tag("td", f"{view.streams[e.left].name} – {view.streams[e.right].name}"),
            tag("td", e.keys),
            tag("td", one_in(e.selectivity), class_="number"),
            tag("td", "–" if e.confidence is None else f"{e.confidence:.0%}", class_="number"),
        )
        for e in view.edges
    ]
    head = tag("tr", tag("th", "streams"), tag("th", "key"), tag("th", "match", class_="number"),
               tag("th", "sure", class_="number"))  # fmt: skip
    return section(
        "graph",
        "Join graph",
        draw_graph(view),
        tag("details", tag("summary", "as a table", class_="soft small"),
            tag("table", head, rows), id="graph-table"),
        kind="five",
        aside=tag("small", said, class_="soft"),
    )  # fmt: skip


_UNKNOWN = "The question of this query is not known yet; it is written after the first batch."


def plans(snapshot: JoinSnapshot, options: ViewOptions, kind: str = "seven") -> Markup:
    """The plans that run, as trees."""
    views = tree_views(snapshot, options.processor)
    held = snapshot.epoch is not None and snapshot.epoch.plan is not None
    pinned = tag("small", f"pinned by epoch {snapshot.epoch.number}", class_="badge warn",
                 id="pinned") if held and snapshot.epoch is not None else None  # fmt: skip
    choices = [
        options.link(
            options.address(options.span, p),
            "all" if p is None else str(p),
            here=p == options.processor,
        )
        for p in (None, *sorted(snapshot.latest)[:12])
    ]
    return section(
        "plans",
        "Plan" if len(views) == 1 else f"{len(views)} plans",
        [_plan(view) for view in views[:_MOST_PLANS]],
        tag("p", f"and {len(views) - _MOST_PLANS} more, see Processors", class_="soft small")
        if len(views) > _MOST_PLANS else None,
        tag("div", "processor:", choices, class_="choices soft") if options.live else None,
        kind=kind,
        aside=pinned,
    )  # fmt: skip


def _plan(view: TreeView) -> Markup:
    drawn = draw_tree(view)
    said = processors(view.processors)
    tree: Child = [tag("div", drawn, class_="scroll roomy"), outline(view)]
    if drawn is None:
        tree = tag("p", "A router has no tree: it routes every packet on its own.", class_="soft")
    head = tag("p", tag("code", view.plan, class_="plan running"), " ",
               tag("small", f"on {said}", class_="soft"))  # fmt: skip
    return tag("div", head, tree)


def timeline(snapshot: JoinSnapshot, options: ViewOptions) -> Markup:
    """The time line of batches with decisions."""
    choices = [
        options.link(
            options.address(span, options.processor),
            "all" if span is None else f"{span:,}",
            here=span == options.span,
        )
        for span in (*SPANS, None)
    ]
    kinds = (("change", "plan changed"), ("asked", "requested"), ("verdict", "paid"),
             ("bad", "did not pay, or resource short"), ("groups", "groups moved"))  # fmt: skip
    return section(
        "timeline",
        "Batches",
        draw_timeline(snapshot.series.last(options.span), snapshot.decisions),
        tag("div", [tag("span", text, class_=kind) for kind, text in kinds], class_="key"),
        aside=tag("div", "last", choices, class_="choices soft") if options.live else None,
    )


# -- decisions


def decisions(snapshot: JoinSnapshot, options: ViewOptions, most: int) -> Markup:
    """The last decisions, the newest first."""
    found = list(reversed(snapshot.decisions))
    more = options.link("decisions", f"all {len(found):,}") if len(found) > most else None
    if not found:
        return section("decisions", "Decisions", tag("p", "No decisions yet.", class_="soft"))
    return section(
        "decisions",
        "Decisions",
        tag("div", [_card(d, n) for n, d in enumerate(found[:most])], class_="cards"),
        aside=more,
    )


def _card(card: DecisionCard, number: int) -> Markup:
    kind = "bad" if card.good is False else card.sort
    where = processors(card.processors) if card.processors else "distribution manager"
    when = f"batch {card.batch:,}" + (f" to {card.until:,}" if card.until else "")
    return tag(
        "div",
        tag("div", tag("span", card.title, class_="plan"),
            tag("small", f"{when} · {where}", class_="soft"), class_="top"),
        tag("p", _worth(card)),
        tag("details", tag("summary", "why"), tag("ul", [tag("li", r) for r in card.reasons]),
            id=f"why-{card.batch}-{card.sort}-{number}") if card.reasons else None,
        class_=f"card {kind}",
    )  # fmt: skip


def _worth(card: DecisionCard) -> Markup:
    """What a decision is worth, in one line."""
    if card.summary:
        return together(card.summary)
    parts: list[Child] = []
    if card.old:
        parts += [tag("span", "instead of ", class_="soft"), tag("code", card.old), " "]
    saved = card.saved
    if saved is not None and card.before is not None and card.after is not None:
        kind = "gain" if saved >= 0 else "loss"
        word = "less" if saved >= 0 else "more"
        parts += [
            tag("span", f"{abs(saved):.0%} {word} CPU", class_=kind),
            tag("span", f": {duration(card.after)} per second, the old plan would take "
                f"{duration(card.before)}", class_="soft"),
        ]  # fmt: skip
    if card.pause is not None:
        parts.append(tag("span", f" · pause {duration(card.pause)}", class_="soft"))
    return together(*parts)


# -- processors and groups


def loads(snapshot: JoinSnapshot, options: ViewOptions) -> Markup:
    """The load of each processor."""
    view = load_view(snapshot)
    busiest = max((p.busy for p in view.processors), default=0.0) or 1.0
    fullest = view.budget or max((p.state_bytes for p in view.processors), default=0) or 1
    head = tag(
        "tr",
        *(tag("th", name, class_=kind) for name, kind in (
            ("", "number"), ("rows", "number"), ("of the mean", None), ("time", "number"),
            ("", "hide"), ("state", "number"), ("", "hide"), ("groups", "number"),
            ("plan", None),
        )),
    )  # fmt: skip
    rows = [_load(p, options, busiest, float(fullest), limited=view.budget is not None)
            for p in view.processors]  # fmt: skip
    limit = None if view.budget is None else tag(
        "small", f"budget of each: {size(view.budget)}", class_="soft"
    )  # fmt: skip
    return section(
        "loads",
        f"{len(view.processors)} processors",
        tag("div", tag("table", tag("thead", head), tag("tbody", rows)), class_="scroll"),
        aside=limit,
    )


def _load(
    p: ProcessorView, options: ViewOptions, busiest: float, fullest: float, *, limited: bool
) -> Markup:
    hot = p.share > _HOT
    near = limited and p.state_bytes > _NEAR * fullest
    return tag(
        "tr",
        tag("td", options.link(options.address(options.span, p.number), p.number), class_="number"),
        tag("td", short(p.rows), class_="number"),
        tag("td", f"{p.share:.2f} ×" + (" hot" if hot else "")),
        tag("td", duration(p.busy), class_="number"),
        tag("td", meter(p.busy / busiest, "hot" if hot else ""), class_="hide"),
        tag("td", size(p.state_bytes), class_="number"),
        tag("td", meter(p.state_bytes / fullest, "bad" if near else ""), class_="hide"),
        tag("td", "–" if p.groups is None else p.groups, class_="number"),
        tag("td", tag("code", p.plan)),
    )


def meter(share: float, kind: str = "") -> Markup:
    """A bar."""
    part = max(0.0, min(1.0, share)) * 100
    return tag(
        "svg",
        tag("rect", x=0, y=0, width=100, height=10, rx=2, class_="full"),
        tag("rect", x=0, y=0, width=part, height=10, rx=2, class_=f"part {kind}".strip()),
        viewbox="0 0 100 10",
        preserveaspectratio="none",
        class_="meter",
    )


def groups(snapshot: JoinSnapshot) -> Markup:
    """Where partition groups are, and which are on their way."""
    view = load_view(snapshot)
    if not view.groups:
        said = "Where the streams share no key, rows go to cells of a hypercube, which do not move."
        if snapshot.question is None or snapshot.question.table is not None:
            said = "No processor has reported its groups yet."
        return section("groups", "Partition groups", tag("p", said, class_="soft"))
    held: dict[int, list[GroupShare]] = {}
    for group in view.groups:
        for holder in group.holders:
            held.setdefault(holder, []).append(group)
    moving = {g for move in view.moves for g in move.groups}
    places = [
        tag(
            "div",
            tag("b", p, title=f"processor {p}"),
            tag("div", [_cell(g, view, g.group in moving) for g in shares], class_="cells"),
            class_="place",
        )
        for p, shares in sorted(held.items())
    ]
    return section(
        "groups",
        f"{len(view.groups)} partition groups",
        _moves(view.moves),
        tag("div", places, class_="places"),
        tag("p", "Each box is a processor. The stronger its colour, the more work a group is. "
            "Framed groups are moving.", class_="soft small"),
        aside=tag("small", f"routing table {view.table}, since batch {view.since:,}",
                  class_="soft"),
    )  # fmt: skip


def _cell(group: GroupShare, view: LoadView, moving: bool) -> Markup:
    work = view.work
    share = 0.0 if not work or group.work is None else group.work / work
    times = share * len(view.groups)
    level = sum(times >= least for least in (0.2, 0.7, 1.3, 2.5, 5.0))
    about = f"group {group.group}: {share:.1%} of the work, {group.rows:,} rows in the last batches"
    return tag(
        "span",
        group.group,
        title=about + (", moving" if moving else ""),
        class_=f"cell l{level}" + (" moving" if moving else ""),
    )


def _moves(moves: Sequence[Move]) -> Markup | None:
    if not moves:
        return None
    return tag(
        "ul",
        [
            tag("li", f"group{'' if len(m.groups) == 1 else 's'} {ranges(m.groups)}: from "
                f"{processors(m.senders)} to {ranges(m.receivers)}, by {m.protocol}")
            for m in moves
        ],
    )  # fmt: skip


def notes(snapshot: JoinSnapshot) -> Markup | None:
    """Notes about what went wrong, apart from results."""
    reports = snapshot.latest.values()
    far_ahead = time_outlier_notes(r.far_ahead for r in reports)
    said = dict.fromkeys([*far_ahead, *snapshot.notes, *(n for r in reports for n in r.notes)])
    if not said:
        return None
    return section("notes", "Notes", tag("ul", [tag("li", note) for note in said]))


def streams(snapshot: JoinSnapshot) -> Markup | None:
    """The streams one by one."""
    view, last = graph_view(snapshot), snapshot.last
    if view is None or last is None:
        return None
    head = tag("tr", *(tag("th", name, class_="number" if n else None) for n, name in enumerate(
        ("stream", "rows a batch", "rate", "stored", "late", "watermark"))))  # fmt: skip
    count = max(last.batches, 1)
    rows = [
        tag(
            "tr",
            tag("td", s.name),
            tag("td", short(last.rows.get(s.name, 0) / count), class_="number"),
            tag("td", short(s.rate, "rows/s"), class_="number"),
            tag("td", short(s.stored), class_="number"),
            tag("td", f"{s.late:,}", class_="number"),
            tag("td", instant(None if s.watermark is None else s.watermark / 1e6),
                class_="number"),
        )
        for s in view.streams
    ]  # fmt: skip
    table = tag("div", tag("table", head, rows), class_="scroll")
    return section("streams", "Streams", table)
