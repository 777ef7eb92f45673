"""Which plan holds when."""

from __future__ import annotations

from plait.codec import from_plain, to_plain
from plait.sites.site.eras import PlanEras


def test_heads_wait_from_the_promise_to_the_outcome() -> None:
    promised = PlanEras(hold=7, missing=frozenset({(1, "a", "n2")}))
    assert [promised.holds(stamp) for stamp in (6, 7)] == [False, True]
    switched = promised.switched(1, 9)
    assert (switched.holds(9), switched.plan_at(8), switched.plan_at(9)) == (False, 0, 1)
    given_up = promised.given_up(1, remembered=64)
    assert (given_up.holds(9), given_up.plan_at(9), given_up.missing) == (False, 0, frozenset())
    assert given_up.abandoned == {1}


def test_eras_are_read_as_they_were_written() -> None:
    eras = PlanEras(((0, 0), (9, 1)), 3, frozenset({(1, "a", "n2")}), abandoned=frozenset({4}))
    assert from_plain(PlanEras, to_plain(eras)) == eras
