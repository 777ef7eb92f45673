"""Orders to sites: one decision for each change, and what a site makes of it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SourceError
from plait.hosts.spark.site_orders import (
    SiteOrder,
    install_order,
    obey,
    publish,
    published,
    ready,
    standing,
)
from plait.node.site import Site
from plait.node.site_packets import SitePacket
from plait.node.site_setup import SiteSetup
from plait.plan.examples import clique
from plait.plan.sites import Jep, Sep, fully_connected

SITES = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, results="rome")
OLD = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
NEW = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))


def test_the_first_decision_counts(tmp_path: Path) -> None:
    install = install_order(SITES, 1, NEW)
    assert publish(tmp_path, install) == install
    switch = publish(tmp_path, SiteOrder(1, 1, "switch", 40))
    assert publish(tmp_path, SiteOrder(1, 1, "give-up")) == switch
    assert published(tmp_path) == [install, switch]
    assert install.jep == NEW
    assert len(list(tmp_path.iterdir())) == 2, "no drafts are left"


def test_an_order_that_cannot_be_read_is_named() -> None:
    with pytest.raises(SourceError, match="an order to sites cannot be read"):
        SiteOrder.from_json("{}")


def _row() -> pa.Table:
    return pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})


def test_sites_change_their_plan_by_orders() -> None:
    setup = SiteSetup(clique(2), SITES, OLD)
    sites = {name: Site.load(setup, name) for name in SITES.names}
    streams = {"oslo": "a", "rome": "b"}
    packets: list[SitePacket] = []
    results = 0

    def step(orders: list[SiteOrder], *, rows: bool = False) -> None:
        nonlocal packets, results
        sent = []
        for name, site in sites.items():
            for order in orders:
                obey(site, order)
            given = {streams[name]: _row()} if rows else {}
            outcomes = [site.step(given, [p for p in packets if p.target == name])]
            if ready(site):
                site.hold(site.clock + 1)
                outcomes.append(site.step())
            sent += [packet for outcome in outcomes for packet in outcome.packets]
            results += sum(rows.num_rows for o in outcomes for rows in o.results)
        packets = sent

    step([], rows=True)
    step([install_order(SITES, 1, NEW)], rows=True)
    for _ in range(6):
        step([], rows=True)
    holds = [standing(site)["hold"] for site in sites.values()]
    assert None not in holds, "all are ready"
    switch = SiteOrder(1, 1, "switch", max(holds))
    step([switch], rows=True)
    step([switch, install_order(SITES, 1, NEW)], rows=True)
    for _ in range(6):
        step([])
    assert [standing(site)["follows"] for site in sites.values()] == [1, 1]
    assert results == 10 * 10
    assert not packets, "everything has come to rest"


def test_a_plan_that_was_given_up_is_not_installed_again() -> None:
    site = Site.load(SiteSetup(clique(2), SITES, OLD), "oslo")
    obey(site, install_order(SITES, 1, NEW))
    obey(site, SiteOrder(1, 1, "give-up"))
    obey(site, install_order(SITES, 1, NEW))
    site.step()
    found = standing(site)
    assert (found["plans"], found["follows"], found["hold"]) == ([0], 0, None)
    assert found["abandoned"] == [1]
