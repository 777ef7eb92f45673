"""Pages: everything is on them, nothing that others wrote becomes more than text."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from tests.dashboard.drawing.test_markup import HOSTILE, Seen

import plait
from plait.dashboard.pages.decisions import Decided
from plait.dashboard.pages.preview import preview
from plait.dashboard.pages.sections import Looking
from plait.dashboard.pages.single_file import report_page
from plait.dashboard.pages.whole import (
    ConsoleSite,
    Form,
    control_page,
    decisions_page,
    overview,
    processors_page,
)
from plait.dashboard.reading.contents import Contents
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


def every_page(contents: Contents) -> list[str]:
    looking = Looking(span=None)
    return [
        overview(SITE, contents, looking),
        decisions_page(SITE, contents, looking),
        processors_page(SITE, contents),
        control_page(SITE, contents, Form(plan=EVIL, trouble=EVIL)),
        report_page([contents]),
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


def test_what_is_on_the_overview(contents: Contents) -> None:
    text = overview(SITE, contents, Looking())
    ids = {a.get("id") for _, a in seen(text).elements}
    assert {"tiles", "graph", "plans", "timeline", "decisions", "status", "main"} <= ids
    for said in ("1 in ", "% sure", "less CPU", "the old plan would take", "watermark", "late rows",
                 "time of a batch", "of its budget"):  # fmt: skip
        assert said in text, said
    check(text)


def test_names_and_reasons_are_text_on_every_page(contents: Contents) -> None:
    hostile = replace(
        contents,
        folder=EVIL,
        name=EVIL,
        decisions=[Decided("change", 55, EVIL, (0,), (EVIL,), EVIL, EVIL, summary=EVIL)],
        notes=[EVIL],
        recent=[
            (b, [Report.from_dict(r.to_dict() | {"plan": EVIL, "notes": [EVIL]}) for r in rs])
            for b, rs in contents.recent
        ],
        answers=[("x", PlanAnswer(PlanRequest("pin", EVIL), refused=EVIL))],
        waiting=[("y", PlanRequest("pin", EVIL))],
    )
    for text in every_page(hostile):
        check(text)
        assert EVIL in "".join([seen(text).text, *(str(a) for _, a in seen(text).elements)])


def test_a_stream_may_have_any_name(contents: Contents) -> None:
    row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    query = plait.join(**{EVIL: row, "b": row}).on("k").within("5 seconds").query
    batch, reports = contents.recent[-1]
    running = [Report.from_dict(r.to_dict() | {"plan": str(mjoin(query))}) for r in reports]
    named = replace(contents, question=Question(query, ""), recent=[(batch, running)])
    texts = every_page(named)
    for text in texts:
        check(text)
    assert EVIL in seen(texts[2]).text, "the page of processors and streams names it"


@pytest.mark.parametrize(
    "missing", ["question", "recent", "beliefs", "history", "decisions", "table"]
)
def test_pages_do_without_what_is_not_there(contents: Contents, missing: str) -> None:
    blank = Contents(contents.name, contents.folder)
    less = replace(contents, **{missing: getattr(blank, missing)})
    if missing == "history":
        less = replace(less, series=blank.series)
    for found in (less, blank):
        for text in every_page(found):
            check(text)


def test_the_preview_says_what_it_costs(contents: Contents) -> None:
    plan = "(((trades quotes) news) ratings)"
    text = control_page(SITE, contents, Form(plan, preview=preview(contents, plan)))
    for said in (" CPU: ", "exceed its budget", "longest pause", "computed anew", "moving state"):
        assert said in text
    assert 'name="csrf" value="c"' in text


def test_control_is_on_no_page_where_it_is_not_allowed(contents: Contents) -> None:
    text = overview(replace(SITE, control=False), contents, Looking())
    assert '"control"' not in text and "<form" not in text


def test_a_report_is_whole(contents: Contents) -> None:
    text = report_page([contents, contents])
    names = [name for name, _ in seen(text).elements]
    assert "script" not in names and "link" not in names and names.count("main") == 2
    assert "http://" not in text and "https://" not in text
    assert "style-src 'sha256-" in text.replace("&#x27;", "'")
