"""The page of a join over sites: sites, links with bytes, the ways of streams, and decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.sites.spark.test_mailboxes import write_batch

from plait.codec import to_plain
from plait.dashboard.pages.console_pages import ConsoleSite, overview
from plait.dashboard.pages.report_page import report_page
from plait.dashboard.pages.sections import ViewOptions
from plait.dashboard.reading.snapshot import JoinSnapshot
from plait.dashboard.reading.watcher import watch_checkpoint
from plait.sites.plans.plan import Jep, Sep, SiteLink, fully_connected
from plait.sites.plans.serde import dumps

SLOW = SiteLink("oslo", "rome", 0.5, 500.0)
SITES = fully_connected(
    {"a": "oslo", "b": "rome", "c": "<bonn>"}, 0.005, 128_000, others=[SLOW], results="oslo"
)
SAME = (Sep("b", ("a", "c"), (0, 0)), Sep("c", ("a", "b"), (1, 1)))
OLD = Jep((Sep("a", ("b", "c"), (1, 0)), *SAME))
NEW = Jep((Sep("a", ("c", "b"), (0, 0)), *SAME))
SEEN = {"rate": 4.0, "factor": 0.1, "tuple_bytes": 20.0, "window": 5.0}


def told(site: str, step: int, **more: Any) -> dict[str, Any]:
    known = {"site": site, "step": step, "time": step * 1_000_000, "phase": "idle", "turn": 0}
    rest = {"sent_bytes": {"rome": 4_321}, "windows": {"a": 7}, "follows": 0, "plan": None}
    return {**known, **rest, **more}


@pytest.fixture
def box(tmp_path: Path) -> Path:
    place = tmp_path / "box"
    write_batch(place / "mail" / "all", 0, [told("oslo", 1, plan=to_plain(OLD), rows={"a": 30})])
    (place / "sites.json").write_text(dumps(SITES, OLD))
    return place


def _page(snapshot: JoinSnapshot) -> str:
    return overview(ConsoleSite(["box"], "box"), snapshot, ViewOptions())


def test_the_first_plan_is_drawn_before_anything_changes(box: Path) -> None:
    (watcher,) = watch_checkpoint(box)
    page = _page(watcher.refresh())
    for text in ("now: plan 0", "4,321", "has not reported", "No decisions yet", "1. ⋈ b"):
        assert text in page
    assert "before: plan" not in page
    assert "way slow" in page
    assert "&lt;bonn&gt;" in page
    assert "<bonn>" not in page


def test_a_change_shows_both_plans_and_its_reasons(box: Path) -> None:
    (watcher,) = watch_checkpoint(box)
    first = watcher.refresh()
    assert watcher.refresh().version == first.version, "nothing is new"
    notes = ["a: rate changed by 73.3%, which exceeds the threshold", "turn 1: ..."]
    seen = {"a": {**SEEN, "notice": "cost changed by 2.0%, which does not exceed the threshold"}}
    report = told("oslo", 2, plan=to_plain(NEW), follows=1, notes=notes, measured=seen, turn=1)
    write_batch(box / "mail" / "all", 1, [report])
    snapshot = watcher.refresh()
    assert snapshot.version > first.version
    page = _page(snapshot)
    for text in ("before: plan 0", "now: plan 1", "73.3%", "does not exceed", "8,642"):
        assert text in page
    assert page.count('class="wayof moved"') == 2, "the way of a, before and after"


def test_whom_a_site_waits_for_is_shown(box: Path) -> None:
    (watcher,) = watch_checkpoint(box)
    assert "waits for" not in _page(watcher.refresh())
    write_batch(box / "mail" / "all", 1, [told("oslo", 2, unanswered={"rome": [7, 1, True]})])
    page = _page(watcher.refresh())
    assert "waits for rome since 1970-01-01 00:00:01 UTC: 7 packets are not acknowledged" in page


def test_the_report_has_the_same_without_a_server(box: Path) -> None:
    (watcher,) = watch_checkpoint(box)
    page = report_page([watcher.settled()])
    assert "The way of each head stream" in page
    assert "<script" not in page
