"""Turns between sites: any order of delivery, both updates, and sites that do not answer."""

from __future__ import annotations

import json
from dataclasses import replace
from random import Random

import pytest

from plait.codec import from_plain, to_plain
from plait.errors import MigrationError
from plait.sites.planner.cost import SiteSetting, paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.plans.plan import SiteLink
from plait.sites.protocol import dnu
from plait.sites.protocol.messages import Sent, WantPlan, WantTurn
from plait.sites.protocol.turns import (
    InTurn,
    SitePlanner,
    Turns,
    plan_of_seats,
    shown_seats,
)
from plait.sites.protocol.wire import turn_from_plain, turn_to_plain

SLOW, FAST = (paper_setting(4, {"S1": rate}) for rate in (50.0, 200.0))

_DISTRIBUTED = pytest.param("distributed", marks=pytest.mark.slow)


class Group:
    """Planners that exchange messages in a random order, each of them saved and read again."""

    def __init__(self, update: UpdateWay, seed: int, patience: int = 100) -> None:
        self.turns = Turns(PlacementPolicy(update=update, patience=patience), SLOW)
        self.planners = {name: self.turns.start(name) for name in self.turns.names}
        self.homes = dict(SLOW.sites.homes)
        self.flying: list[InTurn] = []
        self.chance = Random(seed)

    def change(self, rate: float, stream: str = "S1") -> None:
        new, home = paper_setting(4, {stream: rate}).statistics[stream], self.homes[stream]
        (self.planners[home], sent), _ = self.turns.measured(self.planners[home], stream, new)
        self.flying += sent

    def deliver(self, down: str = "") -> None:
        while flying := [m for m in self.flying if self.home(m) != down]:
            message = self.chance.choice(flying)
            self.flying.remove(message)
            copied = turn_from_plain(json.loads(json.dumps(turn_to_plain(message))))
            assert copied == message
            self.take(self.home(message), copied)

    def home(self, message: InTurn) -> str:
        return self.homes.get(message.sent.receiver, message.sent.receiver)

    def take(self, name: str, message: InTurn) -> None:
        planner, sent = self.turns.receive(self.planners[name], message, 0)
        self.flying += sent
        self.go_on(name, planner)

    def go_on(self, name: str, planner: SitePlanner) -> None:
        if planner.plan and planner.switch and planner.switch.phase == "copying":
            planner, sent = self.turns.full(planner, self.chance.randrange(50))
            self.flying += sent
        if planner.switch is not None and planner.switch.over and not planner.done:
            planner, sent = self.turns.over(planner)
            self.flying += sent
        plain = json.loads(json.dumps(to_plain(planner)))
        assert from_plain(SitePlanner, plain) == planner
        self.planners[name] = planner


@pytest.mark.parametrize("update", ["central", _DISTRIBUTED])
@pytest.mark.parametrize("seed", [1, 2])
def test_both_updates_end_in_the_plan_of_algorithm_1(update: UpdateWay, seed: int) -> None:
    group = Group(update, seed)
    for rate in (200.0, 50.0):
        group.change(rate)
        group.deliver()
        wanted = greedy(paper_setting(4, {"S1": rate}))
        assert {p.current for p in group.planners.values()} == {wanted}
        assert {p.phase for p in group.planners.values()} == {"idle"}
    assert group.planners["N1"].turn == 2


@pytest.mark.parametrize("update", ["central", _DISTRIBUTED])
@pytest.mark.parametrize("seed", range(4))
def test_streams_that_change_at_once_have_one_turn_after_the_other(
    update: UpdateWay, seed: int
) -> None:
    group = Group(update, seed)
    for rates in ({"S3": 200.0, "S2": 10.0}, {"S2": 90.0, "S4": 300.0, "S1": 20.0}):
        for stream, rate in rates.items():
            group.change(rate, stream)
        group.deliver()
        adopted = {
            s: m.me.statistics for p in group.planners.values() for s, m in p.members.items()
        }
        assert {s: adopted[s].rate for s in rates} == rates
        wanted = greedy(SLOW.with_statistics(adopted))
        assert {p.current for p in group.planners.values()} == {wanted}
        assert {p.phase for p in group.planners.values()} == {"idle"}


@pytest.mark.parametrize("update", ["central", _DISTRIBUTED])
def test_a_site_that_never_answers_is_waited_for_and_then_given_up(update: UpdateWay) -> None:
    group = Group(update, 3)
    group.change(200.0)
    group.deliver(down="N3")
    one = group.planners["N1"]
    assert one.switch is not None
    assert "N3" in one.switch.missing
    assert group.turns.time_out(one, 99) == (one, ())
    one, sent = group.turns.time_out(one, 100)
    group.flying += sent
    group.go_on("N1", one)
    group.deliver(down="N3")
    before = {group.planners[name].current for name in ("N1", "N2", "N4")}
    assert before == {greedy(SLOW)}, "they go on with the plan they had"
    group.change(200.0)
    group.deliver()  # N3 is back: it gives up as well, and the next turn can begin
    assert {p.current for p in group.planners.values()} == {greedy(FAST)}
    assert group.planners["N1"].failures == 0


def wish(group: Group, request: int, *slow: SiteLink) -> SiteSetting:
    """Somebody wants the plan for other links; every site hears of that."""
    setting = FAST.with_links(slow)
    statistics = tuple(setting.statistics.items())
    wanted = WantPlan(request, greedy(setting), statistics, setting.sites.links)
    for name in group.planners:
        group.take(name, InTurn(0, Sent(name, name, wanted)))
    return setting


@pytest.mark.parametrize("update", ["central", "distributed"])
def test_a_plan_that_somebody_wants_has_its_turn_and_its_links_count(update: UpdateWay) -> None:
    group = Group(update, 5)
    slow = [SiteLink("N2", "N3", 0.5, 100.0), SiteLink("N3", "N2", 0.5, 100.0)]
    setting = wish(group, 1, *slow)
    assert len(group.flying) == 4, "only the keeper gives it a turn"
    group.deliver()
    assert {p.current for p in group.planners.values()} == {greedy(setting)} != {greedy(FAST)}
    assert {p.links for p in group.planners.values()} == {setting.sites.links}
    group.change(50.0)
    group.deliver()
    later = {p.current for p in group.planners.values()}
    assert later == {greedy(SLOW.with_links(slow))}, "later plans are made for these links"
    assert group.planners["N1"].reason


def test_a_wish_is_withdrawn_while_a_site_is_down() -> None:
    group = Group("central", 6)
    wish(group, 1, SiteLink("N1", "N2", 0.5, 100.0))
    group.deliver(down="N3")
    for name in ("N1", "N2", "N4"):
        planner, sent = group.turns.withdraw(group.planners[name], 1)
        group.flying += sent
        group.go_on(name, planner)
    group.deliver()
    assert {p.current for p in group.planners.values()} == {greedy(SLOW)}
    assert {p.phase for p in group.planners.values()} == {"idle"}
    assert {p.links for p in group.planners.values()} == {()}


def test_without_an_order_nothing_changes_if_sites_do_not_adapt() -> None:
    group = Group("central", 7)
    group.turns = replace(group.turns, automatic=False)
    group.change(200.0)
    assert not group.flying
    setting = wish(group, 1)
    group.deliver()
    assert {p.current for p in group.planners.values()} == {greedy(setting)}


def test_seats_that_make_no_sequence_are_refused() -> None:
    seats = [shown_seats({stream: m}) for stream, m in dnu.members(SLOW, greedy(SLOW)).items()]
    circle = [
        replace(one, seats=tuple(replace(s, after=s.after or "S2") for s in one.seats))
        for one in seats
    ]
    with pytest.raises(MigrationError, match="are a circle: S2 comes twice"):
        plan_of_seats(SLOW.sites.streams, circle)


def test_a_stream_waits_for_its_turn_once() -> None:
    group = Group("distributed", 7)
    keeper = group.planners["N1"]
    for stream in ("S2", "S3", "S3", "S3"):
        want = InTurn(0, Sent(group.homes[stream], "N1", WantTurn(stream)))
        keeper, _ = group.turns.receive(keeper, want, 0)
    assert keeper.wanted == (("N3", "S3"),), "the turn of S2 has been granted"
