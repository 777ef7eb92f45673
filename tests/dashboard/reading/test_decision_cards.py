"""Decisions become cards: one cause, one card."""

from __future__ import annotations

from typing import Any

from plait.adapt.events import Event
from plait.dashboard.reading.decision_cards import decision_cards


def change(batch: int, processor: int, new: str, **more: Any) -> dict[str, Any]:
    usual = {"old": "(a b c)", "start": batch, "strategy": "moving-state", "pause": 0.1}
    return {"kind": "migrated", "batch": batch, "processor": processor, "new": new} | usual | more


def test_processors_that_decide_the_same_share_a_card() -> None:
    found = [change(5, 0, "((a b) c)"), change(6, 2, "((a b) c)", pause=0.3),
             change(6, 1, "(a (b c))"), change(40, 3, "((a b) c)")]  # fmt: skip
    cards = decision_cards(found, [])
    assert [(c.batch, c.until, c.processors) for c in cards] == [
        (5, 6, (0, 2)), (6, 0, (1,)), (40, 0, (3,))
    ]  # fmt: skip
    assert cards[0].pause == 0.3


def test_the_same_processor_again_is_news() -> None:
    found = [change(5, 0, "((a b) c)"), change(6, 0, "(a b c)"), change(7, 0, "((a b) c)")]
    assert len(decision_cards(found, [])) == 3


def test_a_track_that_goes_on_is_told_once() -> None:
    begun = change(5, 0, "((a b) c)", strategy="parallel-track")
    going_on = {"kind": "asked", "batch": 6, "processor": 0, "start": 5, "new": "((a b) c)"}
    (card,) = decision_cards([begun, going_on], [])
    assert card.sort == "change"


def test_what_is_said_of_each_kind() -> None:
    given = [
        change(1, 0, "((a b) c)", reasons=["cheaper"], before=4.0, after=1.0),
        change(2, 0, "(a b c)", old="((a b) c)", returned=True),
        {"kind": "judged", "batch": 3, "processor": 0, "plan": "((a b) c) by x", "old": "(a b c)",
         "paid": False, "measured": 1.5, "predicted": 0.5, "reason": "long"},
        {"kind": "unqualified", "batch": 4, "processor": 0, "resource": "memory",
         "reasons": ["too much"]},
        {"kind": "of a later version", "batch": 5, "processor": 0},
        {"kind": "judged"},
    ]  # fmt: skip
    balance = [Event("reviewed", 6, 0, {"moves": [1], "reason": "it paid", "paid": True}),
               Event("unbalanced", 7, 0, {"reasons": ["hot"]}),
               Event("weighed", 8, 0, {"decision": {"reasons": ["even"]}})]  # fmt: skip
    cards = decision_cards(given, balance)
    assert [c.batch for c in cards] == [1, 2, 3, 4, 6, 7]
    assert cards[0].saved == 0.75 and cards[1].title == "back to (a b c)"
    assert cards[2].good is False and "150% of what (a b c) would take" in cards[2].summary
    assert cards[3].title == "memory is short" and cards[4].good and cards[5].good is False


def test_another_probe_order_is_shown_as_such() -> None:
    old, new = "(a b c) by a-b-c, b-a-c, c-b-a", "(a b c) by a-b-c, b-c-a, c-b-a"
    (card,) = decision_cards([change(1, 0, "(a b c)", old=old, label=new)], [])
    assert (card.title, card.old) == ("(a b c) probing b-c-a", "b-a-c")
