"""Pages: everything is on them, nothing that others wrote becomes more than text."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from tests.dashboard.drawing.test_markup import HOSTILE, Seen

import plait
from plait.dashboard.pages.console_pages import (
    ConsoleSite,
    Form,
    control_page,
    decisions_page,
    overview,
    processors_page,
)
from plait.dashboard.pages.report_page import report_page
from plait.dashboard.pages.sections import ViewOptions
from plait.dashboard.reading.decision_cards import DecisionCard
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.views.plan_preview import preview
from plait.node.reports.question import Question
from plait.node.reports.report import Report
from plait.node.reports.requests import PlanAnswer, PlanRequest
from plait.plan.jtree import mjoin

SITE = ConsoleSite(["join"], "join", control=True, csrf="c")
EVIL = HOSTILE[0] + HOSTILE[1]


def seen(text: str) -> Seen:
    found = Seen()
    found.feed(text)
    return found


def every_page(snapshot: JoinSnapshot) -> list[str]:
    options = ViewOptions(span=None)
    return [
        overview(SITE, snapshot, options),
        decisions_page(SITE, snapshot, options),
        processors_page(SITE, snapshot),
        control_page(SITE, snapshot, Form(plan=EVIL, trouble=EVIL)),
        report_page([snapshot]),
    ]


def check(text: str) -> None:
    """Nothing that a strict policy would have to refuse."""
    for name, attributes in seen(text).elements:
        assert name not in ("img", "iframe", "object", "embed", "base")
        assert name != "script" or attributes == {"src": "static/console.js", "defer": None}
        assert not [a for a in attributes if a.startswith("on") or a == "style"], (name, attributes)
        for link in ("href", "src"):
            where = urlsplit(attributes.get(link) or "")
            assert not (where.scheme or where.netloc), "nothing comes from elsewhere"


def test_what_is_on_the_overview(snapshot: JoinSnapshot) -> None:
    text = overview(SITE, snapshot, ViewOptions())
    ids = {a.get("id") for _, a in seen(text).elements}
    assert {"tiles", "graph", "plans", "timeline", "decisions", "status", "main"} <= ids
    for said in ("1 in ", "% sure", "less CPU", "the old plan would take", "watermark", "late rows",
                 "time of a batch", "of its budget"):  # fmt: skip
        assert said in text, said
    check(text)


def test_names_and_reasons_are_text_on_every_page(snapshot: JoinSnapshot) -> None:
    hostile = replace(
        snapshot,
        folder=EVIL,
        name=EVIL,
        decisions=[DecisionCard("change", 55, EVIL, (0,), (EVIL,), EVIL, EVIL, summary=EVIL)],
        notes=[EVIL],
        recent=[
            (b, [Report.from_dict(r.to_dict() | {"plan": EVIL, "notes": [EVIL]}) for r in rs])
            for b, rs in snapshot.recent
        ],
        answers=[("x", PlanAnswer(PlanRequest("pin", EVIL), refused=EVIL))],
        waiting=[("y", PlanRequest("pin", EVIL))],
    )
    for text in every_page(hostile):
        check(text)
        assert EVIL in "".join([seen(text).text, *(str(a) for _, a in seen(text).elements)])


def test_a_stream_may_have_any_name(snapshot: JoinSnapshot) -> None:
    row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    query = plait.join(**{EVIL: row, "b": row}).on("k").within("5 seconds").query
    batch, reports = snapshot.recent[-1]
    running = [Report.from_dict(r.to_dict() | {"plan": str(mjoin(query))}) for r in reports]
    named = replace(snapshot, question=Question(query, ""), recent=[(batch, running)])
    texts = every_page(named)
    for text in texts:
        check(text)
    assert EVIL in seen(texts[2]).text, "the page of processors and streams names it"


@pytest.mark.parametrize(
    "missing", ["question", "recent", "estimates", "history", "decisions", "table"]
)
def test_pages_do_without_what_is_not_there(snapshot: JoinSnapshot, missing: str) -> None:
    blank = JoinSnapshot(snapshot.name, snapshot.folder)
    less = replace(snapshot, **{missing: getattr(blank, missing)})
    if missing == "history":
        less = replace(less, series=blank.series)
    for found in (less, blank):
        for text in every_page(found):
            check(text)


def test_the_preview_says_what_it_costs(snapshot: JoinSnapshot) -> None:
    plan = "(((trades quotes) news) ratings)"
    text = control_page(SITE, snapshot, Form(plan, preview=preview(snapshot, plan)))
    for said in (" CPU: ", "exceed its budget", "longest pause", "recomputed", "moving state"):
        assert said in text
    assert 'name="csrf" value="c"' in text


def test_control_is_on_no_page_where_it_is_not_allowed(snapshot: JoinSnapshot) -> None:
    text = overview(replace(SITE, control=False), snapshot, ViewOptions())
    assert '"control"' not in text and "<form" not in text


def test_a_report_is_whole(snapshot: JoinSnapshot) -> None:
    text = report_page([snapshot, snapshot])
    names = [name for name, _ in seen(text).elements]
    assert "script" not in names and "link" not in names and names.count("main") == 2
    assert "http://" not in text and "https://" not in text
    assert "style-src 'sha256-" in text.replace("&#x27;", "'")
