"""Groups move under every interleaving, with faults; and the explorer finds what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import pytest

from plait.groups.moves.move import Protocol
from plait.groups.moves.places import Place
from plait_lab.laws.exploring.moves import Exploration, explore
from plait_lab.laws.exploring.moving_world import FaultBudget, Row, Rules, Scenario, Wish, answer
from plait_lab.protocol.actions import Drop, Reaction
from plait_lab.protocol.deliver import to_processor, to_split
from plait_lab.protocol.messages import (
    DeactivatePartitions,
    DeletePartitions,
    GiveUpPartitions,
    Message,
    ReactivatePartitions,
    SendPartitions,
    StartOfPartitions,
)
from plait_lab.protocol.move_manager import MoveManager
from plait_lab.protocol.parties import ProcessorParty, Split
from plait_lab.protocol.tags import Tag

PROTOCOLS: tuple[Protocol, ...] = ("PTLB", "MSLB")
NOTHING = FaultBudget()


def histories(*splits: tuple[tuple[int, int, int], ...]) -> tuple[tuple[Row, ...], ...]:
    """(stream, group, time) of each split's rows."""
    ids = count()
    return tuple(tuple(Row(next(ids), *row) for row in rows) for rows in splits)


ONE = histories(((0, 0, 1), (1, 0, 2), (0, 0, 4), (1, 0, 5)))
SIX = histories(((0, 0, 1), (1, 0, 2), (0, 0, 3), (1, 0, 4), (0, 0, 6), (1, 0, 7)))
TWO = histories(((0, 0, 1), (0, 0, 4)), ((1, 0, 2), (1, 0, 5)))
THREE = histories(((0, 0, 1), (1, 0, 2), (2, 0, 2), (0, 0, 3), (2, 0, 5)))
CLOSE = histories(((0, 0, 1), (1, 0, 2), (0, 0, 3), (1, 0, 4)))
PAIR = histories(((0, 0, 1), (0, 1, 1), (1, 0, 2), (1, 1, 2)))
SMALL = Scenario(2, 1, ONE, (Place((0,)),), 2, ())


def move(protocol: Protocol, *receivers: int, spread: int | None = None, ask: bool = False) -> Wish:
    return Wish(protocol, (0,), receivers, spread, ask)


def holds(scenario: Scenario) -> Exploration:
    report = explore(scenario)
    assert not report.violation, "\n".join([report.violation, *report.trace])
    assert report.ends > 0
    assert answer(scenario), "a scenario without results shows nothing"
    return report


# --- the law -----------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("rows", [ONE, SIX])
def test_oracle_a_move_under_every_interleaving(
    protocol: Protocol, rows: tuple[tuple[Row, ...], ...]
) -> None:
    report = holds(replace(SMALL, histories=rows, wishes=(move(protocol, 1),)))
    assert report.moved == report.ends


@pytest.mark.slow
def test_oracle_two_splits_mslb() -> None:
    holds(replace(SMALL, histories=TWO, wishes=(move("MSLB", 1),)))


@pytest.mark.slow
def test_oracle_two_splits_ptlb() -> None:
    holds(replace(SMALL, histories=TWO, wishes=(move("PTLB", 1),)))


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_oracle_the_sender_chooses(protocol: Protocol) -> None:
    report = holds(replace(SMALL, wishes=(move(protocol, 1, ask=True),)))
    assert report.moved == report.ends


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    "budget",
    [
        FaultBudget(losses=1, repeats=1),
        FaultBudget(losses=2),
        FaultBudget(repeats=2),
        FaultBudget(crashes=1),
        FaultBudget(ticks=1),
        FaultBudget(give_ups=1),
        FaultBudget(give_ups=1, losses=1),
        FaultBudget(give_ups=1, repeats=1),
    ],
    ids=str,
)
def test_oracle_faults_at_every_step(protocol: Protocol, budget: FaultBudget) -> None:
    report = holds(replace(SMALL, wishes=(move(protocol, 1),), budget=budget))
    assert report.moved > 0
    assert (report.moved < report.ends) == bool(budget.give_ups)


@pytest.mark.slow
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_oracle_two_splits_give_up(protocol: Protocol) -> None:
    rows = histories(((0, 0, 1), (0, 0, 3)), ((1, 0, 2),))
    holds(
        replace(SMALL, histories=rows, wishes=(move(protocol, 1),), budget=FaultBudget(give_ups=1))
    )


@pytest.mark.slow
@pytest.mark.parametrize("first", PROTOCOLS)
@pytest.mark.parametrize("second", PROTOCOLS)
@pytest.mark.parametrize("keep_dead", [False, True])
def test_oracle_back_again_among_dead_rows(
    first: Protocol, second: Protocol, keep_dead: bool
) -> None:
    report = holds(
        replace(
            SMALL,
            histories=CLOSE,
            window=2,
            wishes=(move(first, 1), move(second, 0)),
            keep_dead=keep_dead,
        )
    )
    assert report.moved == 0


@pytest.mark.slow
@pytest.mark.parametrize("first", PROTOCOLS)
@pytest.mark.parametrize("second", PROTOCOLS)
def test_oracle_a_second_try_after_giving_up(first: Protocol, second: Protocol) -> None:
    report = holds(
        replace(
            SMALL,
            histories=CLOSE,
            window=2,
            wishes=(move(first, 1), move(second, 1)),
            budget=FaultBudget(give_ups=1),
            keep_dead=True,
        )
    )
    assert report.moved > 0


@pytest.mark.slow
def test_oracle_a_hot_group_is_spread() -> None:
    report = holds(
        replace(
            SMALL,
            streams=3,
            window=2,
            histories=THREE,
            processors=3,
            wishes=(move("MSLB", 0, 1, spread=0),),
        )
    )
    assert report.moved == report.ends


@pytest.mark.slow
@pytest.mark.parametrize(
    "budget", [NOTHING, FaultBudget(give_ups=1), FaultBudget(losses=1)], ids=str
)
def test_oracle_a_hot_group_is_spread_and_gathered(budget: FaultBudget) -> None:
    wishes = (move("MSLB", 0, 1, spread=0), move("MSLB", 1))
    rows = histories(((0, 0, 1), (1, 0, 2), (0, 0, 3)))
    holds(replace(SMALL, window=2, histories=rows, wishes=wishes, budget=budget))


@pytest.mark.slow
def test_oracle_a_spread_group_is_spread_by_another_stream() -> None:
    wishes = (move("MSLB", 0, 1, spread=0), move("MSLB", 1, 2, spread=1))
    holds(replace(SMALL, window=3, processors=3, wishes=wishes))


@pytest.mark.campaign
def test_oracle_two_groups_at_once() -> None:
    wishes = (Wish("PTLB", (0,), (1,)), Wish("MSLB", (1,), (0,)))
    places = (Place((0,)), Place((1,)))
    holds(replace(SMALL, histories=PAIR, places=places, wishes=wishes, together=True))


# --- errors that would be found ----------------------------------------------------------------


def found(scenario: Scenario, rules: Rules) -> str:
    assert not explore(scenario, most=200_000).violation
    report = explore(replace(scenario, rules=rules))
    assert report.trace
    return report.violation


@pytest.mark.slow
def test_found_a_sender_that_deletes_too_early() -> None:
    """No result would be missing, but rows would come to a group that is gone."""

    def hasty(processor: ProcessorParty, message: Message) -> Reaction[ProcessorParty]:
        if (
            isinstance(message, DeletePartitions)
            and processor.number in message.move.senders
            and not processor.is_over(message.move)
        ):
            gone = processor.of_move(message.move, brought=False)
            after = processor.over(message.move, gone)
            return Reaction(after, (Drop(gone),), (), (("manager", after.settled(message.move)),))
        return to_processor(processor, message)

    scenario = replace(SMALL, wishes=(move("PTLB", 1),))
    assert "does not hold" in found(scenario, Rules(to_processor=hasty))


@pytest.mark.slow
def test_found_flags_of_different_moves_taken_for_the_same() -> None:
    def mistaken(tags: Iterable[Tag]) -> bool:
        parts = list(tags)
        return len({t.since for t in parts}) == 1 and not all(t.flag for t in parts)

    scenario = replace(
        SMALL,
        histories=CLOSE[:1],
        wishes=(move("PTLB", 1), move("PTLB", 1)),
        budget=FaultBudget(give_ups=1),
    )
    assert "missing" in found(scenario, Rules(finds=mistaken))


@pytest.mark.slow
def test_found_dead_rows_taken_for_live_ones() -> None:
    def mistaken(tags: Iterable[Tag]) -> bool:
        parts = set(tags)
        return not (len(parts) == 1 and all(t.flag for t in parts))

    scenario = replace(
        SMALL, histories=CLOSE, window=2, wishes=(move("MSLB", 1), move("MSLB", 0)), keep_dead=True
    )
    assert "twice" in found(scenario, Rules(finds=mistaken))


def test_found_rows_released_before_they_are_received() -> None:
    def hasty(manager: MoveManager, message: Message) -> Reaction[MoveManager]:
        reaction = manager.on(message)
        sends = [m for _, m in reaction.messages if isinstance(m, SendPartitions)]
        early = tuple(("split-0", ReactivatePartitions(m.move)) for m in sends)
        return replace(reaction, messages=(*reaction.messages, *early))

    scenario = replace(SMALL, wishes=(move("MSLB", 1),))
    assert "does not hold" in found(scenario, Rules(to_manager=hasty))


@pytest.mark.slow
def test_found_progress_that_does_not_wait_for_buffered_rows() -> None:
    scenario = replace(SMALL, histories=SIX, wishes=(move("MSLB", 1),))
    assert "missing" in found(scenario, Rules(beats_wait=False))


@pytest.mark.slow
def test_found_a_receiver_that_forgets_too_early() -> None:
    def hasty(processor: ProcessorParty, message: Message) -> Reaction[ProcessorParty]:
        if isinstance(message, GiveUpPartitions) and processor.number in message.move.receivers:
            gone = tuple((g, message.move.number) for g in message.move.groups)
            after = processor.over(message.move, gone)
            return Reaction(after, (Drop(gone),), (), (("manager", after.settled(message.move)),))
        return to_processor(processor, message)

    scenario = replace(SMALL, wishes=(move("PTLB", 1),), budget=FaultBudget(give_ups=1))
    assert "does not hold" in found(scenario, Rules(to_processor=hasty))


@pytest.mark.slow
def test_found_a_sender_that_does_not_wait_for_every_split() -> None:
    def hasty(processor: ProcessorParty, message: Message) -> Reaction[ProcessorParty]:
        if isinstance(message, StartOfPartitions):
            part = processor.part(message.move)
            if not processor.is_over(message.move):
                processor = processor.within(replace(part, started=(1 - message.split,)))
        return to_processor(processor, message)

    scenario = replace(SMALL, histories=TWO, wishes=(move("PTLB", 1),))
    assert "missing" in found(scenario, Rules(to_processor=hasty))


@pytest.mark.slow
def test_found_a_sender_that_deletes_what_may_be_lost() -> None:
    def hasty(processor: ProcessorParty, message: Message) -> Reaction[ProcessorParty]:
        reaction = to_processor(processor, message)
        if isinstance(message, SendPartitions) and reaction.actions:
            gone = processor.of_move(message.move, brought=False)
            return replace(reaction, actions=(*reaction.actions, Drop(gone)))
        return reaction

    scenario = replace(
        SMALL, histories=CLOSE, wishes=(move("MSLB", 1),), budget=FaultBudget(losses=1)
    )
    assert "missing" in found(scenario, Rules(to_processor=hasty))


@pytest.mark.slow
def test_found_a_split_that_begins_what_has_ended() -> None:
    def forgetful(split: Split, message: Message) -> Reaction[Split]:
        if isinstance(message, DeactivatePartitions):
            split = replace(split, ended=())
        return to_split(split, message)

    scenario = replace(
        SMALL, histories=CLOSE, wishes=(move("MSLB", 1),), budget=FaultBudget(repeats=1)
    )
    assert found(scenario, Rules(to_split=forgetful))


@pytest.mark.slow
def test_found_a_party_that_never_answers() -> None:
    def deaf(split: Split, message: Message) -> Reaction[Split]:
        return (
            Reaction(split) if isinstance(message, GiveUpPartitions) else to_split(split, message)
        )

    scenario = replace(SMALL, wishes=(move("MSLB", 1),), budget=FaultBudget(give_ups=1))
    assert found(scenario, Rules(to_split=deaf)) == "no end can be reached"


def test_a_scenario_that_is_too_large_is_said_so() -> None:
    assert "more than 10 states" in explore(replace(SMALL, wishes=(move("PTLB", 1),)), 10).violation
