"""Machines and links: how long things take, in which order they happen, and nothing at random."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import PlaitError
from plait_lab.virtual.machines import Link, Machine, Message, World

TIMES = st.lists(st.floats(0, 10), max_size=12).map(sorted)


@given(TIMES, st.floats(0, 2), st.floats(0.5, 50))
def test_differential_delivery_is_the_same_message_by_message(
    sent: list[float], latency: float, rate: float
) -> None:
    through, expected = 0.0, []
    for at in sent:
        through = max(at, through) + 1 / rate
        expected.append(through + latency)
    found = Link(latency, rate).deliver(np.array(sent))
    assert found.tolist() == pytest.approx(expected)


def test_a_world_is_in_time_with_its_links() -> None:
    seen: list[tuple[str, float]] = []

    def note(message: Message, now: float) -> tuple[float, list[Message]]:
        seen.append((str(message.body), now))
        if message.to == "a":
            return 0.0, [Message("b", f"{message.body}!", size=4.0)]
        return 1.0, []

    world = World(
        {"a": Machine(), "b": Machine(speed=0.5)},
        {"a": note, "b": note},
        {("a", "b"): Link(latency=1.0, rate=8.0)},
    )
    for text in ("one", "two"):
        world.send(Message("a", text), at=1.0)
    assert world.run() == pytest.approx(6.5)
    # The link takes half a second each, b two seconds each.
    assert seen == [("one", 1.0), ("two", 1.0), ("one!", 2.5), ("two!", 4.5)]
    assert world.busy == {"a": 0.0, "b": 4.0}


def test_a_world_stops_and_goes_on() -> None:
    world = World({"a": Machine()}, {"a": lambda m, t: (1.0, [])})
    world.send(Message("a", 1), at=5.0)
    assert world.run(until=4.0) == 0.0
    assert world.run() == 6.0


def test_what_makes_no_sense_is_refused() -> None:
    with pytest.raises(PlaitError, match="speed"):
        Machine(0.0)
    with pytest.raises(PlaitError, match="latency"):
        Link(-1.0)
    with pytest.raises(PlaitError, match="no machine 'b'"):
        World({"a": Machine()}, {}).send(Message("b", None), at=0.0)
