from __future__ import annotations

from collections import Counter
from typing import get_args

import pytest

from plait.sites.protocol.messages import SiteMessage, SwitchMessage, TurnMessage, UpdateMessage
from plait_lab.protocol.cnu import CopyWindow, NewOperators
from plait_lab.protocol.message_kinds import Kind, kind_of


def blank(kind: type[SiteMessage]) -> SiteMessage:
    """One whose fields do not matter."""
    return kind(*[None] * len(kind.__slots__))  # type: ignore[arg-type]  # only its type is looked at


def test_every_message_is_of_one_exchange() -> None:
    exchanges = (UpdateMessage, SwitchMessage, TurnMessage)
    parts = [get_args(exchange) for exchange in exchanges]
    listed = Counter(kind for part in parts for kind in part)
    assert set(listed.values()) == {1} and set(listed) == set(get_args(SiteMessage))


@pytest.mark.parametrize("kind", get_args(SiteMessage))
def test_every_message_is_counted_as_something(kind: type[SiteMessage]) -> None:
    assert kind_of(blank(kind)) in get_args(Kind)


def test_messages_are_sorted_as_table_3_sorts_them() -> None:
    """The switch-over synchronises; of windows there is one message, as in the paper."""
    found = {kind: kind_of(blank(kind)) for kind in get_args(SiteMessage)}
    found |= {
        type(one): kind_of(one) for one in (NewOperators(frozenset(), ()), CopyWindow("", ""))
    }
    assert {found[kind] for kind in get_args(SwitchMessage)} == {"synchronization"}
    assert [kind.__name__ for kind in found if found[kind] == "window"] == ["CopyWindow"]
    assert Counter(found.values()) == {
        "modification": 14, "synchronization": 5, "turn": 10, "window": 1, "acknowledgement": 1,
    }  # fmt: skip
