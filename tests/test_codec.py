"""Parties and messages survive as plain data; damage is an error and no strange party."""

from __future__ import annotations

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.codec import from_plain, to_plain
from plait.errors import SourceError
from plait.groups.moves.messages import Message, Move
from plait.groups.moves.places import Place
from plait_lab.protocol.parties import MovePart, ProcessorParty, Split
from plait_lab.protocol.wire import message_from_plain, message_to_plain

NUMBERS = st.integers(0, 99)
SEVERAL = st.lists(NUMBERS, max_size=3).map(tuple)
MOVES = st.builds(
    Move,
    NUMBERS,
    st.sampled_from(["PTLB", "MSLB"]),
    SEVERAL,
    SEVERAL,
    SEVERAL,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
)
PAIRS = st.lists(st.tuples(NUMBERS, NUMBERS), max_size=3).map(tuple)
PLACES = st.builds(Place, SEVERAL, st.none() | NUMBERS, NUMBERS)
PARTS = st.builds(MovePart, MOVES, SEVERAL, SEVERAL, st.booleans(), SEVERAL)
PARTIES = st.one_of(
    st.builds(
        Split,
        NUMBERS,
        st.lists(PLACES, max_size=2).map(tuple),
        st.lists(MOVES, max_size=2).map(tuple),
        PAIRS,
    ),
    st.builds(
        ProcessorParty, NUMBERS, NUMBERS, PAIRS, st.lists(PARTS, max_size=2).map(tuple), PAIRS
    ),
)
FIELDS = {
    "move": MOVES,
    "split": NUMBERS,
    "sender": NUMBERS,
    "by": st.text(),
    "groups": SEVERAL,
    "amount": st.floats(0, 1e12),
    "partitions": st.none() | st.text(),
}


@st.composite
def messages(draw: st.DrawFn) -> Message:
    kind = draw(st.sampled_from(get_args(Message)))
    given_ = {name: draw(FIELDS[name]) for name in kind.__slots__}
    if kind.__annotations__["move"] == "int":
        given_["move"] = draw(NUMBERS)
    found: Message = kind(**given_)
    return found


def through_json(value: Any) -> Any:
    return json.loads(json.dumps(value))


@given(PARTIES)
def test_parties_come_back(party: Split | ProcessorParty) -> None:
    assert from_plain(type(party), through_json(to_plain(party))) == party


@given(messages())
def test_every_message_comes_back(message: Message) -> None:
    assert message_from_plain(through_json(message_to_plain(message))) == message


GOOD: dict[str, Any] = to_plain(Move(1, "PTLB", (0,), (0,), (1,)))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"number": "1"}, "number cannot be '1'"),
        ({"number": True}, "number cannot be True"),
        ({"number": 1.0}, "number cannot be 1.0"),
        ({"protocol": "XYLB"}, "protocol cannot be 'XYLB'"),
        ({"groups": [0, None]}, "groups cannot be None"),
        ({"groups": 0}, "groups cannot be 0"),
        ({"groups": "01"}, "groups cannot be '01'"),
        ({"spread": [1]}, r"spread cannot be \[1\]"),
        ({"further": 1}, "a Move has no field 'further'"),
    ],
)
def test_damage_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        from_plain(Move, GOOD | change)


@pytest.mark.parametrize("name", GOOD)
def test_a_missing_field_is_named(name: str) -> None:
    with pytest.raises(SourceError, match=f"a Move lacks the field '{name}'"):
        from_plain(Move, {k: v for k, v in GOOD.items() if k != name})


def test_what_is_nothing_like_it_is_refused() -> None:
    with pytest.raises(SourceError, match="is no Move"):
        from_plain(Move, [1, 2])
    with pytest.raises(SourceError, match="'Hello' is no message"):
        message_from_plain({"message": "Hello"})
    with pytest.raises(SourceError, match="None is no message"):
        message_from_plain({})
    wrong = {**to_plain(ProcessorParty(0, 1)), "held": [[0, 1, 2]]}
    with pytest.raises(SourceError, match="held cannot be"):
        from_plain(ProcessorParty, wrong)
