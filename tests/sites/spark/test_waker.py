"""Sites are woken while they wait for an answer at rest, and less often the longer it lasts."""

from __future__ import annotations

from pathlib import Path

from tests.sites.spark.test_mailboxes import write_batch

from plait.sites.spark.mail import Mailbox
from plait.sites.spark.orders import strays
from plait.sites.spark.waker import Waker

WAITS: dict[str, object] = {"site": "oslo", "step": 1, "unanswered": {"rome": [2, 1, False]}}
DONE: dict[str, object] = {"site": "oslo", "step": 2, "unanswered": {}}


def test_only_a_site_at_rest_that_waits_for_an_answer_is_woken(tmp_path: Path) -> None:
    box = Mailbox(tmp_path)
    box.prepare(["site-oslo", "site-rome"])
    write_batch(box.mail("site-rome"), 0, [{**WAITS, "site": "rome"}])
    waker = Waker(box, "site-oslo")
    assert not any(waker.look(0) for _ in range(9)), "nothing is due here"
    write_batch(box.mail("site-oslo"), 0, [WAITS])
    assert not any(waker.look(batch) for batch in range(1, 9)), "there are batches anyway"
    woken = [look for look in range(40) if waker.look(8)]
    assert woken == [0, 2, 6, 14, 30], "after twice as long each time"
    (file,) = box.orders.iterdir()
    assert file.suffix == ".wake"
    assert not strays(box.orders)
    write_batch(box.mail("site-oslo"), 1, [DONE])
    assert not any(waker.look(9) for _ in range(99))
    write_batch(box.mail("site-oslo"), 2, [{**WAITS, "step": 3}])
    assert [look for look in range(5) if waker.look(10)] == [1, 3], "soon again"
