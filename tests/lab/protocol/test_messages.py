from __future__ import annotations

from collections import Counter
from typing import get_args

from plait_lab.protocol.messages import (
    MANAGER,
    Answer,
    ComputePartitionsToMove,
    Flag,
    Message,
    Order,
    ReceivePartitions,
    processor_name,
    split_name,
)


def test_every_message_is_of_one_kind() -> None:
    """Parties tell by the kind whether a message is for them."""
    kinds = (*get_args(Order), *get_args(Flag), *get_args(Answer))
    others = (ComputePartitionsToMove, ReceivePartitions)
    assert Counter((*kinds, *others)) == Counter(get_args(Message))
    assert set(Counter((*kinds, *others)).values()) == {1}


def test_messages_that_change_something_carry_the_whole_move() -> None:
    """So a party that missed all others understands them; answers only name the move."""
    for kind in (*get_args(Order), *get_args(Flag), ReceivePartitions):
        assert kind.__annotations__["move"] == "Move"
    for kind in (*get_args(Answer), ComputePartitionsToMove):
        assert kind.__annotations__["move"] == "int"
    for kind in get_args(Answer):
        assert kind.__annotations__["by"] == "str", "the manager counts who has answered"


def test_addresses_differ() -> None:
    names = [MANAGER, *map(split_name, range(12)), *map(processor_name, range(12))]
    assert len(set(names)) == len(names)
