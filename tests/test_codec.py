"""Parties and messages survive as plain data; damage is an error and no strange party."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.codec import from_plain, from_tagged, stored, to_plain, to_tagged
from plait.errors import SourceError
from plait.groups.moves.move import Move
from plait.groups.moves.places import Place
from plait_lab.protocol.messages import Message
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
        ({"groups": [0, None]}, r"groups\[1\] cannot be None"),
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
    with pytest.raises(SourceError, match=r"held\[0\] cannot be"):
        from_plain(ProcessorParty, wrong)


class Pair(NamedTuple):
    a: int
    b: float = 0.5


@dataclass(frozen=True)
class Sample:
    number: int
    kind: Literal["x", "y"] = "x"
    by_name: dict[str, Pair] = field(default_factory=dict)
    by_number: dict[str, dict[int, int]] = field(default_factory=dict)
    by_key: Mapping[tuple[int, str], float] = field(default_factory=dict)
    loop: dict[str, Any] | None = field(default=None, metadata=stored("adapt"))
    done: bool = False
    children: tuple[Sample, ...] = ()
    either: int | str | None = None
    secret: int = field(default=0, metadata=stored(None))


FULL = Sample(
    1,
    "y",
    {"n": Pair(2, 1.0)},
    {"s": {3: 4}},
    {(5, "k"): 0.25},
    {"z": [1]},
    True,
    (Sample(6),),
    "e",
)


def test_annotations_are_the_format() -> None:
    assert to_plain(FULL) | {"children": []} == {
        "number": 1,
        "kind": "y",
        "by_name": {"n": [2, 1.0]},
        "by_number": {"s": {3: 4}},
        "by_key": [[[5, "k"], 0.25]],
        "adapt": {"z": [1]},
        "done": True,
        "children": [],
        "either": "e",
    }
    assert from_plain(Sample, through_json(to_plain(FULL))) == FULL


def test_what_is_not_stored_is_not_read() -> None:
    assert "secret" not in to_plain(Sample(1, secret=3))
    assert from_plain(Sample, {"number": 1, "secret": 3}, any_version=True).secret == 0


def test_both_forms_of_a_mapping_are_read() -> None:
    found = from_plain(Sample, {"number": 1, "by_name": [["n", [2, 1]]]}, any_version=True)
    assert found == Sample(1, by_name={"n": Pair(2, 1)})


def test_another_version_may_have_written_it() -> None:
    found = from_plain(Sample, {"number": 1, "heat": 9, "done": 3}, any_version=True)
    assert (found.number, found.kind, found.done, found.by_name) == (1, "x", 3, {})
    with pytest.raises(SourceError, match="a Sample lacks the field 'number'"):
        from_plain(Sample, {}, any_version=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"by_name": {"n": [2, float("nan")]}}, r"by_name\['n'\]\[1\] cannot be nan"),
        ({"by_name": {"n": [2, 10**400]}}, r"by_name\['n'\]\[1\] cannot be 1000"),
        ({"by_number": {"s": {"x": 1}}}, r"by_number\['s'\] cannot be 'x'"),
        ({"children": [{"number": 1}, {"number": None}]}, r"children\[1\].number cannot be None"),
        ({"either": [3]}, r"either cannot be \[3\]"),
        ({"kind": "z"}, "kind cannot be 'z'"),
        ({"children": [3]}, r"children\[0\]: 3 is no Sample"),
    ],
)
def test_the_place_of_damage_is_named(change: dict[str, Any], said: str) -> None:
    with pytest.raises(SourceError, match=said):
        from_plain(Sample, {"number": 1} | change, any_version=True)


def test_one_of_several_classes_is_known_by_its_name() -> None:
    plain = to_tagged(Place((1,)), "what")
    assert plain["what"] == "Place"
    assert from_tagged((Place, Sample), plain, "what") == Place((1,))
    with pytest.raises(SourceError, match="'Move' is no what"):
        from_tagged((Place, Sample), {"what": "Move"}, "what")
    with pytest.raises(SourceError, match="None is no what"):
        from_tagged((Place, Sample), [], "what")
