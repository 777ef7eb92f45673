"""What sites have done, added up: plans, measurements and decisions in the order of time."""

from __future__ import annotations

from typing import Any

from plait.codec import to_plain
from plait.sites.plans.plan import Jep, Sep, SiteLink
from plait.sites.site.progress import sum_reports

OLD = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
NEW = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))
SEEN = {"rate": 4.0, "factor": 0.1, "tuple_bytes": 20.0, "window": 5.0, "notice": "all is well"}


def told(site: str, step: int, **more: Any) -> dict[str, Any]:
    known = {"site": site, "step": step, "sent_bytes": {}, "windows": {}, "follows": 0}
    return {**known, "plan": None, **more}


def test_plans_measurements_and_decisions_are_told() -> None:
    slow = ("oslo", "rome", 0.5, 100.0)
    progress = sum_reports(
        [
            told("rome", 2, time=30, notes=["later"], plan=to_plain(NEW), follows=4, turn=4,
                 links=[slow], measured={"b": SEEN}),
            told("oslo", 1, time=10, notes=["sooner"], plan=to_plain(OLD), rows={"a": 3}),
            told("rome", 1, time=10, plan=to_plain(OLD), measured={"b": {**SEEN, "rate": 1.0}}),
        ]
    )  # fmt: skip
    assert progress.plan == (4, NEW)
    assert progress.links == [SiteLink(*slow)]
    assert [str(one) for one in progress.decisions] == [
        "oslo, step 1: sooner",
        "rome, step 2: later",
    ]
    text = str(progress)
    assert "oslo  1 steps · rows a 3 · windows none · plan 0" in text
    assert "b  4 rows/s · factor 0.1 · 20 bytes · all is well" in text
    assert text.endswith("decisions\n  oslo, step 1: sooner\n  rome, step 2: later")


def test_before_the_first_step_there_is_no_plan() -> None:
    assert sum_reports([]).plan is None
    assert sum_reports([]).links == []


def test_whom_a_site_waits_for_and_since_when_is_told() -> None:
    progress = sum_reports(
        [
            told("oslo", 1, time=1_700_000_000_000_000, unanswered={"rome": [1, 1, False]}),
            told("oslo", 2, time=1_700_000_009_000_000, unanswered={"rome": [7, 1, True]},
                 awaited={"rome": 12}),
            told("rome", 1),
        ]
    )  # fmt: skip
    (one,) = progress.sites["oslo"].unanswered
    assert (one.site, one.packets, one.since) == ("rome", 7, 1_700_000_000_000_000)
    assert (
        "waiting for answers\n  oslo waits for rome since 2023-11-14 22:13:20 UTC: 7 packets are "
        "not acknowledged, and sent again; 12 tuples wait there" in str(progress)
    )
    assert not progress.sites["rome"].unanswered
