"""A site step by step: what it keeps, what it sends, what it refuses, and what it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest

from plait.errors import (
    CheckpointDamaged,
    CheckpointMismatch,
    MigrationError,
    SiteError,
    UnknownSite,
)
from plait.query.query import Query
from plait.sites.plans.plan import Jep, Placement, Sep, fully_connected
from plait.sites.site.packets import SitePacket
from plait.sites.site.setup import SiteSetup
from plait.sites.site.site import Site
from plait.testing.examples import clique
from plait_lab.laws.processors import MemoryStore

QUERY = clique(2)
SITES = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, results="rome")


def setup(a: Placement = 1, b: Placement = 1, query: Query = QUERY, **options: Any) -> SiteSetup:
    jep = Jep((Sep("a", ("b",), (a,)), Sep("b", ("a",), (b,))))
    return SiteSetup(query, SITES, jep, **options)


def rows(*seconds: int, k: int = 1) -> pa.Table:
    times = pa.array([s * 1_000_000 for s in seconds], pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array([k] * len(seconds), pa.int64())})


def test_at_the_home_of_a_window_nothing_waits() -> None:
    given = setup()
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    rome.step({"b": rows(1, 2)})
    sent = oslo.step({"a": rows(1)}, now=10)  # after the rows of b
    found = rome.step(packets=sent.packets)
    assert sum(batch.num_rows for batch in found.results) == 2
    assert (found.report.probes, found.report.matches, found.report.compared) == (1, 2, 2)
    assert found.report.waiting == 0


def test_theta_joins_count_what_nested_loops_compare() -> None:
    given = setup(query=replace(QUERY, equalities=()))
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    rome.step({"b": rows(1, 2, 300, k=5)})
    found = rome.step(packets=oslo.step({"a": rows(1)}, now=10).packets)
    assert sum(batch.num_rows for batch in found.results) == 2
    assert found.report.compared == 3


def test_without_asking_a_beat_brings_the_answer() -> None:
    given = setup(a=0, b=0, ask=False)
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    first = rome.step({"b": rows(1)})
    waits = oslo.step({"a": rows(1)}, first.packets, now=10)
    assert waits.report.waiting == 1
    assert not any(one.asking for one in waits.news.values())
    later = rome.step(packets=waits.packets, now=50, beat=True)
    assert oslo.step(packets=later.packets).report.waiting == 0


def test_windows_shrink_while_packets_are_under_way_only_as_far_as_these_allow() -> None:
    given = setup()
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    rome.step({"b": rows(1)})
    slow = oslo.step({"a": rows(1)}, now=10).packets
    late = oslo.step({"a": rows(1_000)}).packets
    kept = rome.step(packets=late)
    assert kept.report.windows == {"b": 1}, "the first packet may still need it"
    found = rome.step(packets=slow)
    assert sum(batch.num_rows for batch in found.results) == 1
    assert found.report.windows == {"b": 0}


def test_rows_after_the_end_and_rows_of_other_streams_are_refused() -> None:
    oslo = Site.load(setup(), "oslo")
    with pytest.raises(SiteError, match=r"rows of 'b' have come to the site oslo; .*: a"):
        oslo.step({"b": rows(1)})
    oslo.step(ended=True)
    with pytest.raises(SiteError, match="after its end"):
        oslo.step({"a": rows(1)})


def test_what_cannot_be_set_up() -> None:
    with pytest.raises(SiteError, match="least watermark"):
        setup(query=replace(QUERY, lateness="least"))
    idle = replace(QUERY.streams[0], idle=5)
    with pytest.raises(SiteError, match="the stream a has an idle time-out"):
        setup(query=replace(QUERY, streams=(idle, QUERY.streams[1])))
    with pytest.raises(SiteError, match="the sites have the streams a, b, the query a, b, c"):
        setup(query=clique(3))
    with pytest.raises(UnknownSite, match="did you mean 'oslo'"):
        Site.load(setup(), "osslo")


def test_a_store_belongs_to_one_site_of_one_join() -> None:
    store = MemoryStore()
    Site.load(setup(), "oslo", store).step({"a": rows(1)}, store=store, token="t")
    assert Site.load(setup(), "oslo", store).token == "t"
    with pytest.raises(CheckpointMismatch, match="that of the site oslo, not of rome"):
        Site.load(setup(), "rome", store)
    moved = fully_connected({"a": "oslo", "b": "bonn"}, 0.005, 128_000, results="oslo")
    with pytest.raises(CheckpointMismatch, match="streams at other sites"):
        Site.load(replace(setup(), sites=moved), "oslo", store)
    store.header = (store.header or "").replace('"version": 1', '"version": 2', 1)
    with pytest.raises(CheckpointMismatch, match="later version"):
        Site.load(setup(), "oslo", store)
    store.header = "{}"
    with pytest.raises(CheckpointDamaged, match="cannot be read"):
        Site.load(setup(), "oslo", store)


def test_a_plan_is_installed_filled_switched_to_and_the_old_one_goes() -> None:
    given, other = setup(), setup(a=0, b=1).jep
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    rome.step({"b": rows(1)})
    for site in (oslo, rome):
        site.migration.install(1, other)
    assert rome.migration.is_full(1)
    assert not oslo.migration.is_full(1)
    with pytest.raises(MigrationError, match="plan 1 lacks windows at the site oslo"):
        oslo.migration.switch(1, 5)
    asked = oslo.step()
    rome.step(packets=asked.packets)
    assert oslo.step(packets=rome.links.outstanding()).report.windows["b"] == 1
    assert oslo.migration.is_full(1)
    oslo.migration.hold(oslo.clock + 1)
    assert oslo.step({"a": rows(1)}, now=20).report.probes == 0, "its head is held"
    for site in (oslo, rome):
        site.migration.switch(1, 21)
        site.migration.switch(1, 21)  # once more
    with pytest.raises(MigrationError, match="install one plan at a time"):
        oslo.migration.install(2, other)
    results = 0
    for _ in range(5):
        oslo.step(packets=rome.links.outstanding())
        found = rome.step(packets=oslo.links.outstanding()).results
        results += sum(batch.num_rows for batch in found)
    assert results == 1
    assert list(oslo.plans) == list(rome.plans) == [1]


def test_what_is_saved_does_not_grow_with_the_number_of_changes() -> None:
    given, sizes = setup(), []
    plans = (setup(a=0, b=1).jep, given.jep)
    oslo, rome = both = [Site.load(given, name) for name in ("oslo", "rome")]
    for number in range(1, 200):
        for site in both:
            site.migration.install(number, plans[number % 2])
        if number % 3:
            for _ in range(3):
                oslo.step(packets=rome.links.outstanding())
                rome.step(packets=oslo.links.outstanding())
            stamp = max(site.clock for site in both) + 1
            for site in both:
                site.migration.switch(number, stamp)
        else:
            for site in both:
                site.migration.give_up(number)
        for _ in range(4):
            oslo.step(packets=rome.links.outstanding())
            rome.step(packets=oslo.links.outstanding())
        assert len(oslo.plans) == len(rome.plans) == 1
        sizes.append(len(oslo.header.to_json()))
    assert max(sizes[150:]) < 1.5 * max(sizes[90:110])
    assert len(oslo.migration.eras.begins) == 1


def test_a_plan_that_is_given_up_leaves_nothing_behind() -> None:
    given, other = setup(), setup(a=0, b=1).jep
    oslo, store = Site.load(given, "oslo"), MemoryStore()
    oslo.migration.install(1, other)
    oslo.migration.hold(1)
    assert oslo.step({"a": rows(1)}, store=store).report.windows == {"a": 1, "b": 0}
    oslo = Site.load(given, "oslo", store)
    assert list(oslo.plans) == [0, 1]
    oslo.migration.give_up(1)
    oslo.migration.install(1, other)  # too late
    after = oslo.step({"a": rows(2)}, store=store)
    assert (list(oslo.plans), after.report.windows) == ([0], {"a": 2})
    assert not oslo.migration.eras.missing


def test_a_copy_of_a_window_overtakes_rows_that_are_still_coming_from_its_home() -> None:
    query = clique(3)
    sites = fully_connected({"a": "n1", "b": "n2", "c": "n3"}, 0.005, 128_000, results="n1")
    a, b = Sep("a", ("b", "c"), (0, 1)), Sep("b", ("a", "c"), (1, 1))
    old = Jep((a, b, Sep("c", ("b", "a"), (0, 1))))  # n1 and n3 keep b
    new = Jep((a, b, Sep("c", ("a", "b"), (1, 0))))  # n1 needs what n3 keeps for heads of c
    n1, n2, n3 = (Site.load(SiteSetup(query, sites, old), name) for name in sites.names)

    def to(site: Site, *packets: SitePacket) -> list[SitePacket]:
        return [packet for packet in packets if packet.target == site.name]

    first = n2.step({"b": rows(1)}).packets
    n3.step(packets=to(n3, *first))
    for site in (n1, n2, n3):
        site.migration.install(1, new)
    asked = n2.step(packets=to(n2, *n1.step().packets)).packets
    copy = n3.step(packets=to(n3, *asked)).packets
    assert n1.step(packets=to(n1, *copy)).report.windows["b"] == 1
    assert n1.migration.is_full(1)
    late = n1.step(packets=to(n1, *first, *n2.links.outstanding()))
    assert late.report.windows["b"] == 1, "it is the same row"
    later = n2.step({"b": rows(2)}).packets
    assert n1.step(packets=to(n1, *later)).report.windows["b"] == 2


def test_a_head_between_promise_and_outcome_follows_the_plan_of_its_stamp() -> None:
    given, other = setup(a=0, b=1), setup(a=1, b=0).jep  # everything in oslo, then in rome
    oslo, rome = Site.load(given, "oslo"), Site.load(given, "rome")
    for site in (oslo, rome):
        site.migration.install(1, other)
    for _ in range(3):
        oslo.step(packets=rome.links.outstanding())
        rome.step(packets=oslo.links.outstanding())
    for site in (oslo, rome):
        assert site.migration.is_full(1)
        site.migration.hold(site.clock + 1)
    agreed = max(site.clock + 1 for site in (oslo, rome))
    rome.migration.switch(1, agreed)
    rome.step()
    assert list(rome.plans) == [1], "it ships nothing more for the old plan"
    rome.step({"b": rows(1)}, now=agreed)
    oslo.step({"a": rows(1)}, now=agreed + 50)  # it has not heard of the outcome
    results = 0
    for beat in range(6):
        oslo.step(packets=rome.links.outstanding())
        found = rome.step(packets=oslo.links.outstanding()).results
        results += sum(batch.num_rows for batch in found)
        if beat == 2:
            oslo.migration.switch(1, agreed)
    assert results == 1
