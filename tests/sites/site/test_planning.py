"""Sites that change their plan themselves: what they measure, refuse, save and give up."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from plait.errors import CheckpointDamaged, SiteError
from plait.sites.planner.assumptions import site_setting
from plait.sites.planner.greedy import greedy
from plait.sites.planner.policy import PlacementPolicy, UpdateWay
from plait.sites.plans.plan import Jep, Sep, fully_connected
from plait.sites.site.packets import SitePacket
from plait.sites.site.setup import SiteSetup
from plait.sites.site.site import Site
from plait.testing.examples import clique
from plait_lab.laws.processors import MemoryStore

QUERY = clique(3)
SITES = fully_connected({"a": "oslo", "b": "rome", "c": "bonn"}, 0.005, 128_000, results="oslo")
EAGER = PlacementPolicy(threshold=0.0, interval=1, sigmas=0.0, patience=100)


def rows(second: int, count: int) -> pa.Table:
    times = pa.array([second * 1_000_000] * count, pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array([1] * count, pa.int64())})


def to(site: Site, other: Site) -> list[SitePacket]:
    return [packet for packet in other.links.outstanding() if packet.target == site.name]


def setup(update: UpdateWay = "central") -> SiteSetup:
    policy = PlacementPolicy(0.0, update, 1, 0.0, patience=100)
    return SiteSetup(QUERY, SITES, greedy(site_setting(QUERY, SITES)), policy=policy)


@pytest.mark.parametrize("update", ["central", "distributed"])
def test_a_site_that_never_answers_is_given_up_and_named(update: UpdateWay) -> None:
    given = setup(update)
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")  # bonn never starts
    for second in range(3):
        oslo.step({"a": rows(second, 500)}, to(oslo, rome), now=second)
        rome.step(packets=to(rome, oslo), now=second)
    oslo.step(packets=to(oslo, rome), now=4)
    waits = oslo.step(now=5).report
    assert waits.turn == 1
    assert waits.phase in ("planning", "copying", "local-ready")
    gone = oslo.step(now=500).report
    (note,) = gone.notes
    assert note.startswith("turn 1 is given up: migration 1 waits for ")
    assert "bonn" in note and "do" in note and "not answer" in note
    assert list(oslo.plans) == [0]
    assert oslo.step({"a": rows(9, 1)}, now=501).report.rows == {"a": 1}, "it goes on"


def test_a_clock_that_is_set_back_does_not_make_patience_longer() -> None:
    given, days = setup(), 30 * 86_400_000_000
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")  # bonn never starts
    for second in range(3):
        oslo.step({"a": rows(second, 500)}, to(oslo, rome), now=days + second)
        rome.step(packets=to(rome, oslo), now=second)
    oslo.step(packets=to(oslo, rome), now=4)
    assert oslo.step(now=5).report.turn == 1
    (note,) = oslo.step(now=500).report.notes
    assert note.startswith("turn 1 is given up")


def test_streams_at_one_site_are_planned_together() -> None:
    both = fully_connected({"a": "oslo", "b": "oslo", "c": "rome"}, 0.005, 128_000, results="oslo")
    given = SiteSetup(QUERY, both, greedy(site_setting(QUERY, both)), policy=EAGER)
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    assert oslo.planning is not None
    assert sorted(oslo.planning.planner.members) == ["a", "b"]
    for second in range(8):
        oslo.step({"a": rows(second, 400), "b": rows(second, 1)}, rome.links.outstanding())
        rome.step({"c": rows(second, 1)}, oslo.links.outstanding())
    assert oslo.planning.planner.turn >= 1
    assert list(oslo.plans)[-1] >= 1


def test_a_plan_that_may_change_follows_from_statistics() -> None:
    jep = Jep(tuple(Sep(s, tuple("abc".replace(s, "")), (1, 0)) for s in "abc"))
    with pytest.raises(SiteError, match="not the one that follows from the statistics"):
        SiteSetup(QUERY, SITES, jep, policy=EAGER)
    SiteSetup(QUERY, SITES, jep, policy=EAGER, automatic=False)


def test_what_was_saved_is_read_again_or_refused() -> None:
    store = MemoryStore()
    given = setup("distributed")
    oslo = Site.load(given, "oslo", store)
    for second in range(3):
        oslo.step({"a": rows(second, 500)}, now=second, store=store)
    again = Site.load(given, "oslo", store)
    assert oslo.planning is not None
    assert again.planning is not None
    assert again.planning.planner == oslo.planning.planner
    assert again.planning.meters == oslo.planning.meters
    header = json.loads(store.header or "")
    header["planning"]["planner"]["turn"] = "three"
    store.header = json.dumps(header)
    with pytest.raises(CheckpointDamaged, match="changes of its plan cannot be read"):
        Site.load(given, "oslo", store)
