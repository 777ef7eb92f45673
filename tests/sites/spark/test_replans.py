"""Another plan because somebody wants it: what the reports of the sites say about it."""

from __future__ import annotations

import itertools
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from plait.codec import to_plain
from plait.errors import MigrationError
from plait.sites.planner.cost import HASH, SiteSetting, StreamStatistics
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep, Sep, fully_connected
from plait.sites.protocol.messages import WantPlan, Withdraw
from plait.sites.site.progress import SitesProgress, sum_reports
from plait.sites.spark.mail import Mailbox
from plait.sites.spark.orders import SiteOrder
from plait.sites.spark.replans import outcome_of, replanned

NAMES = ("oslo", "rome")
SITES = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000)
SETTING = SiteSetting(SITES, dict.fromkeys("ab", StreamStatistics(10, 0.1, 20, 5)), HASH)
OTHER = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (1,))))
_STEPS = itertools.count(1)


def told(site: str, phase: str, follows: int = 0, **more: Any) -> dict[str, Any]:
    """A report of a site in turn 3, which is about wish 7."""
    plan = to_plain(OTHER) if follows else None
    known = {"site": site, "step": next(_STEPS), "sent_bytes": {}, "wish": 7, "turn": 3}
    return {**known, "phase": phase, "follows": follows, "plan": plan, "abandoned": [], **more}


def outcome(*reports: dict[str, Any]) -> Any:
    return outcome_of(sum_reports(reports), NAMES, 7)


def test_who_is_waited_for_is_known_at_every_point() -> None:
    assert outcome().waiting_for == ("oslo",), "the keeper of turns comes first"
    begun = outcome(told("oslo", "copying"))
    assert (begun.change, begun.waiting_for, begun.agreed) == (3, NAMES, False)
    ready = outcome(told("oslo", "local-ready"))
    assert (ready.waiting_for, ready.agreed) == (("rome",), False)
    agreed = outcome(told("oslo", "global-ready"), told("rome", "local-ready"))
    assert (agreed.waiting_for, agreed.agreed) == (NAMES, True)
    half = outcome(told("oslo", "idle", 3), told("rome", "global-ready"))
    assert (half.waiting_for, half.agreed) == (("rome",), True)
    done = outcome(told("oslo", "idle", 3), told("rome", "idle", 3))
    assert (done.waiting_for, done.given_up) == ((), False)
    assert outcome(told("oslo", "idle", abandoned=[3])).given_up


def test_what_has_come_of_a_wish_is_known_when_the_next_turn_has_begun() -> None:
    followed = [told(site, "idle", 3) for site in NAMES]
    later = [told(site, "copying", 3, wish=0, turn=4, plan=None) for site in NAMES]
    assert outcome(*followed, *later).waiting_for == ()


def test_a_site_that_never_answers_is_named_and_the_wish_withdrawn(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.prepare(["all"])
    assert greedy(SETTING) != OTHER

    def look() -> SitesProgress:
        return sum_reports([told("oslo", "local-ready", wish=1)])

    with pytest.raises(MigrationError, match=r"the plan stays .* after 0 seconds rome has not"):
        replanned(box, SETTING, OTHER, look, timeout=0)
    files = sorted(box.orders.iterdir())
    wanted, gone = (SiteOrder.from_json(path.read_text()).wish for path in files)
    assert isinstance(wanted, WantPlan)
    assert wanted.plan == greedy(SETTING)
    assert gone == Withdraw(1)


def test_a_plan_that_all_were_ready_for_is_said_to_come(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.prepare(["all"])

    def look() -> SitesProgress:
        return sum_reports([told("oslo", "idle", 3, wish=1)])

    with pytest.raises(MigrationError, match=r"so it is followed when they answer: .* rome has"):
        replanned(box, SETTING, OTHER, look, timeout=0)


def test_the_best_plan_stays(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    found = replanned(box, SETTING, greedy(SETTING), lambda: sum_reports([]), timeout=0)
    assert found.change is None
    assert str(found) == "the plan 0 is the best that is known"
    assert not box.orders.exists()


def test_who_orders_a_plan_is_told_that_the_order_was_damaged(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.prepare(["all"])
    looks = count()

    def look() -> Any:
        if next(looks):  # the second time, the plan has been ordered
            (order,) = box.orders.iterdir()
            order.write_text("{")
        return sum_reports([])

    with pytest.raises(MigrationError, match=r"000001-0.json is not followed: .*call replan again"):
        replanned(box, SETTING, OTHER, look, timeout=60)
