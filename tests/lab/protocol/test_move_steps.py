from __future__ import annotations

from typing import get_args

import pytest

from plait.groups.moves.move import Move
from plait_lab.protocol import mslb, ptlb
from plait_lab.protocol.messages import Order
from plait_lab.protocol.move_steps import GIVE_UP, ProtocolStep, Role, parties

SPREAD = Move(1, "MSLB", (0,), (3, 1), (1, 4), 0)
ROLES: tuple[Role, ...] = get_args(Role)


def test_each_party_is_addressed_once() -> None:
    assert parties(ROLES, SPREAD, 2) == (
        "split-0", "split-1", "processor-3", "processor-1", "processor-4",
    )  # fmt: skip
    assert parties(("senders",), SPREAD, 2) == ("processor-3", "processor-1")
    assert parties(("receivers",), SPREAD, 2) == ("processor-1", "processor-4")
    assert parties(("splits",), SPREAD, 0) == ()


@pytest.mark.parametrize("steps", [ptlb.STEPS, mslb.STEPS], ids=["PTLB", "MSLB"])
def test_a_move_can_be_given_up_until_its_last_step(steps: tuple[ProtocolStep, ...]) -> None:
    assert [step.revocable for step in steps] == [True] * (len(steps) - 1) + [False]
    assert not GIVE_UP.revocable


@pytest.mark.parametrize("last", [ptlb.STEPS[-1], mslb.STEPS[-1], GIVE_UP])
def test_the_end_of_a_move_is_told_to_all_and_confirmed_by_all(last: ProtocolStep) -> None:
    assert set(last.to) == set(last.by) == set(ROLES)


@pytest.mark.parametrize("steps", [ptlb.STEPS, mslb.STEPS], ids=["PTLB", "MSLB"])
def test_a_step_is_known_by_its_message(steps: tuple[ProtocolStep, ...]) -> None:
    """A manager that is read from a file finds its step by the name."""
    names = [step.name for step in (*steps, GIVE_UP)]
    assert len(set(names)) == len(names)
    assert set(names) <= {kind.__name__ for kind in get_args(Order)}
