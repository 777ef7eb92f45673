"""Which decisions of the driver are new, whatever the past of the directory they are in."""

from __future__ import annotations

import json

import pytest

from plait.errors import PlaitError, PlanError, SourceError
from plait.node.epochs import Epoch, Followed
from plait.plan.jtree import mjoin
from plait.testing.examples import clique

QUERY = clique(3)
PLAN = mjoin(QUERY)


def test_the_first_decision_in_a_new_directory_is_new() -> None:
    followed = Followed().after(Epoch(7, PLAN, origin="a"))
    assert followed.last == 7
    assert followed.is_new(Epoch(8, PLAN, origin="a")) and followed.is_new(
        Epoch(1, PLAN, origin="b")
    )
    assert not followed.is_new(Epoch(7, PLAN, origin="a")) and not followed.is_new(None)


def test_an_old_directory_does_not_bring_its_last_decision_back() -> None:
    followed = Followed().after(Epoch(7, PLAN, origin="a")).after(Epoch(1, PLAN, origin="b"))
    assert not followed.is_new(Epoch(7, PLAN, origin="a"))
    assert followed.is_new(Epoch(8, PLAN, origin="a")) and followed.last == 1


def test_headers_of_earlier_versions_know_a_number_only() -> None:
    earlier = Followed.of({"epoch": 5})
    assert earlier.last == 5 and not earlier.is_new(Epoch(5, PLAN))
    assert earlier.is_new(Epoch(6, PLAN)) and earlier.is_new(Epoch(1, PLAN, origin="a"))
    assert earlier.holds(Epoch(5, PLAN)) and not earlier.holds(Epoch(5, None))
    assert Followed.of({}) == Followed() and not Followed().holds(None)


def test_a_header_brings_it_back() -> None:
    followed = Followed().after(Epoch(7, PLAN, origin="a")).after(Epoch(1, None, origin="b"))
    assert Followed.of(json.loads(json.dumps(followed.to_dict()))) == followed


def test_a_header_remembers_so_many_directories() -> None:
    followed = Followed()
    for n in range(9):
        followed = followed.after(Epoch(n + 1, PLAN, origin=f"d{n}"), remembered=2)
    assert dict(followed.numbers) == {"d7": 8, "d8": 9}
    assert followed.after(Epoch(9, PLAN, origin="d7"), remembered=1).numbers == {"d7": 9}


def test_who_says_the_plan() -> None:
    given, free = Epoch(1, PLAN, origin="a"), Epoch(2, None, origin="a")
    held = Followed().after(given)
    assert held.holds(given) and held.holds(None), "also when the directory is gone"
    assert not held.after(free).holds(free) and not held.after(free).holds(None)
    assert Followed().holds(given), "it waits for a migration to end"
    assert not Followed().after(given, obeyed=False).holds(given), "what is refused changes nothing"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "empty"),
        ('{"number": 1, "strat', "no JSON"),
        ("[" * 100_000, "no JSON"),
        ("[1]", "not an object"),
        ('{"number": 1, "strategy": "auto"}', "lacks the field 'plan'"),
        ('{"number": 1, "strategy": "auto", "plan": null, "groups": []}', "'groups'"),
        ('{"number": true, "strategy": "auto", "plan": null}', "no number"),
        ('{"number": 1, "strategy": "eager", "plan": null}', "'eager' is no strategy"),
        (Epoch(1, PLAN).to_json().replace('"number": 1', '"number": 3'), "checksum"),
    ],
)
def test_what_is_no_epoch_is_named(text: str, said: str) -> None:
    with pytest.raises(SourceError, match=said):
        Epoch.from_json(text, QUERY)


def test_a_plan_of_another_query_is_refused() -> None:
    with pytest.raises(PlanError):
        Epoch.from_json(Epoch(1, mjoin(clique(4))).to_json(), QUERY)


def test_every_flipped_bit_and_every_cut_is_noticed_or_changes_nothing() -> None:
    epoch = Epoch(12, PLAN, origin="c0ffee")
    whole = epoch.to_json().encode()
    damaged = [whole[:n] for n in range(len(whole))] + [
        whole[:i] + bytes([whole[i] ^ (1 << bit)]) + whole[i + 1 :]
        for i in range(len(whole))
        for bit in range(8)
    ]
    for content in damaged:
        try:
            assert Epoch.from_json(content.decode(errors="replace"), QUERY) == epoch
        except PlaitError:
            continue


def test_epochs_of_earlier_versions_have_no_checksum() -> None:
    text = '{"number": 3, "strategy": "auto", "plan": null}'
    assert Epoch.from_json(text, QUERY) == Epoch(3, None, "auto")
