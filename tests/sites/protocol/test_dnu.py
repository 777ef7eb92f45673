"""The distributed update under every order of delivery: it ends in the central plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import MigrationError
from plait.sites.planner.cost import SiteSetting, StreamStatistics, paper_setting
from plait.sites.planner.greedy import greedy
from plait.sites.plans.plan import Jep, operator_sets
from plait.sites.protocol.dnu import Member, change, members, receive
from plait.sites.protocol.messages import Affected, Sent
from plait_lab.protocol.cnu import central_update
from plait_lab.protocol.members import operators_of, plan_of
from plait_lab.protocol.message_kinds import kind_of
from plait_lab.workloads.site_settings import random_site_setting, random_statistics


def updated(
    setting: SiteSetting,
    plan: Jep,
    changes: Mapping[str, StreamStatistics],
    random: Random,
) -> tuple[dict[str, Member], list[Sent]]:
    """Let streams change at any time and deliver messages in any order; all that was sent."""
    group = members(setting, plan)
    flying: list[Sent] = []
    everything: list[Sent] = []
    waiting = list(changes.items())
    while flying or waiting:
        if waiting and (not flying or random.random() < 0.3):
            stream, statistics = waiting.pop()
            group[stream], sent = change(group[stream], statistics)
        else:
            one = flying.pop(random.randrange(len(flying)))
            group[one.receiver], sent = receive(group[one.receiver], one.sender, one.message)  # type: ignore[arg-type]  # only updates are sent
        flying += sent
        everything += sent
    return group, everything


def counted(group: Mapping[str, Member], sent: list[Sent]) -> Counter[str]:
    """Messages between sites, by kind."""
    return Counter(
        kind_of(one.message)
        for one in sent
        if group[one.sender].me.site != group[one.receiver].me.site
    )


@pytest.mark.slow
@given(st.integers(0, 10**6), st.integers(3, 8))
def test_central_and_distributed_update_end_in_the_same_plan(seed: int, streams: int) -> None:
    """One change or several at a time, links of all kinds, streams that share a site."""
    random = Random(seed)
    setting = random_site_setting(random, streams, shared=0.2)
    names = random.sample(setting.sites.streams, random.choice([1, 1, 2, streams]))
    changes = {name: random_statistics(random) for name in names}
    old = greedy(setting)
    central = central_update(setting.with_statistics(changes), old)
    group, sent = updated(setting, old, changes, random)
    assert plan_of(group) == central.plan
    assert operators_of(group) == operator_sets(setting.sites, central.plan)
    assert all(not m.turns and not m.waiting and not m.unfinished for m in group.values())
    if len(names) == 1:
        told = {one.message.sites for one in sent if isinstance(one.message, Affected)}
        assert len(told) <= 1
        touched = group[names[0]].touched
        assert set(central.affected) <= touched
        assert told <= {tuple(s for s in setting.sites.names if s in touched)}


@pytest.mark.slow
@given(st.integers(0, 10**6))
def test_one_round_after_the_other(seed: int) -> None:
    """Small steps and back again: also ties, and statistics that change one at a time."""
    random = Random(seed)
    setting = paper_setting(random.randint(3, 5))
    plan = greedy(setting)
    for _ in range(4):
        stream = random.choice(setting.sites.streams)
        known = setting.statistics[stream]
        rate = random.choice([50.0, 100.0, 200.0])
        size = random.choice([known.tuple_bytes, 75, 150])
        factor = random.choice([known.factor, 0.005, 0.02])
        now = StreamStatistics(rate, factor, size, known.window)
        group, _ = updated(setting, plan, {stream: now}, random)
        setting = setting.with_statistics({stream: now})
        plan = plan_of(group)
        assert plan == greedy(setting)


@pytest.mark.parametrize("seed", range(20))
def test_the_same_plan_quickly(seed: int) -> None:
    """What the slow test asks, for a few settings of three and four streams."""
    random = Random(seed)
    setting = random_site_setting(random, 3 + seed % 2)
    stream = random.choice(setting.sites.streams)
    now = random_statistics(random)
    group, _ = updated(setting, greedy(setting), {stream: now}, random)
    assert plan_of(group) == greedy(setting.with_statistics({stream: now}))


def test_a_member_knows_only_its_own_place() -> None:
    """Its statistics and links, and per sequence its neighbours and what arrives."""
    setting = paper_setting(4)
    member = members(setting, greedy(setting))["S3"]
    assert member.me == setting.candidate("S3")
    seat = member.seats["S1"]
    assert (seat.before, seat.after, seat.prefix.streams) == ("S2", "S4", ("S1", "S2"))
    assert set(member.me.inbound) == {"N1", "N2", "N4"}


def test_nothing_changes_nothing() -> None:
    setting = paper_setting(4)
    plan = greedy(setting)
    same = setting.statistics["S2"]
    group, sent = updated(setting, plan, {"S2": same}, Random(1))
    assert plan_of(group) == plan
    assert group["S2"].touched == frozenset()
    assert not any(isinstance(one.message, Affected) for one in sent)


def test_a_second_change_waits_for_the_first() -> None:
    setting = paper_setting(3)
    member, _ = change(members(setting, greedy(setting))["S2"], setting.statistics["S2"])
    with pytest.raises(MigrationError, match="the last change of S2 is not yet worked in"):
        change(member, setting.statistics["S2"])


@pytest.mark.parametrize("streams", [4, 6, 8])
def test_the_number_of_messages_does_not_depend_on_their_order(streams: int) -> None:
    setting = paper_setting(streams, {"S1": 50.0})
    fast = paper_setting(streams, {"S1": 200.0}).statistics["S1"]
    counts = set()
    for seed in range(5):
        group, sent = updated(setting, greedy(setting), {"S1": fast}, Random(seed))
        counts.add(tuple(sorted(counted(group, sent).items())))
    assert len(counts) == 1


def test_messages_between_streams_of_one_site_stay_there() -> None:
    random = Random(3)
    setting = random_site_setting(random, 5, shared=1.0)
    assert len(setting.sites.names) == 1
    group, sent = updated(setting, greedy(setting), {"S2": random_statistics(random)}, random)
    assert sent and not counted(group, sent)
