"""Orders to sites: each has its number, and what sites make of it."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from plait.errors import SourceError
from plait.sites.planner.assumptions import complete_statistics
from plait.sites.planner.policy import PlacementPolicy
from plait.sites.plans.plan import Jep, Sep, fully_connected
from plait.sites.protocol.messages import WantPlan, Wish, Withdraw
from plait.sites.site.packets import SitePacket
from plait.sites.site.setup import SiteSetup
from plait.sites.site.site import Site
from plait.sites.spark.orders import (
    SiteOrder,
    order_path,
    read_order,
    strays,
    want,
    withdraw,
)
from plait.sites.spark.progress import plan_status
from plait.testing.examples import clique

SITES = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, results="rome")
OLD = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
NEW = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))
QUERY = clique(2)
WANTED = WantPlan(1, NEW, tuple(complete_statistics(QUERY, {}).items()), SITES.links)
SETUP = SiteSetup(QUERY, SITES, OLD, policy=PlacementPolicy(), automatic=False)


def test_every_order_has_a_number_of_its_own(tmp_path: Path) -> None:
    first = want(tmp_path, lambda number: replace(WANTED, request=number))
    second = want(tmp_path, lambda number: replace(WANTED, request=number))
    withdraw(tmp_path, first.request)
    withdraw(tmp_path, first.request)
    files = sorted(tmp_path.iterdir())
    read = [SiteOrder.from_json(path.read_text()) for path in files]
    assert [order.wish for order in read] == [first, Withdraw(1), second]
    assert sorted(read, key=lambda order: order.place) == read
    assert second.request == 2


@pytest.mark.parametrize("text", ["{}", "[1]", '{"order": "Dance"}', '{"order": "Withdraw"}', "x"])
def test_an_order_that_cannot_be_read_is_named(text: str) -> None:
    with pytest.raises(SourceError, match="it is no order to sites"):
        SiteOrder.from_json(text)


def litter(folder: Path) -> dict[str, str]:
    """Everything that people leave in a folder, and what is said of it."""
    (folder / "notes.txt").write_text("call Rome")
    (folder / "1x.json").write_text("{}")
    (folder / "000003-0.json").mkdir()
    (folder / "000003-0.json" / "000004-0.json").write_text(SiteOrder(Withdraw(4)).to_json())
    os.mkfifo(folder / "000005-0.json")
    (folder / "000006-1.json").symlink_to(folder / "notes.txt")
    (folder / "000007-0.json").write_text(SiteOrder(WANTED).to_json()[:50])
    (folder / "000008-1.json").write_text(SiteOrder(Withdraw(1)).to_json())
    (folder / "000009-1.json").write_bytes(b"\xff\xfe")
    (folder / "000010-1.json").write_text("")
    (folder / "_123-abc").write_text("a draft")
    return {
        "notes.txt": "is not named like an order",
        "1x.json": "is not named like an order",
        "000003-0.json": "regular file|directory",
        "000005-0.json": "is no regular file",
        "000006-1.json": "is a link",
        "000007-0.json": "is no order",
        "000008-1.json": "another number than its name",
        "000009-1.json": "decode",
        "000010-1.json": "is no order",
    }


def test_what_lies_among_orders_is_left_alone_and_named(tmp_path: Path) -> None:
    there = litter(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    wish = want(tmp_path, lambda number: replace(WANTED, request=number))
    assert wish.request == 11, "a number that nothing there has"
    assert read_order(order_path(tmp_path, wish)).wish == wish
    told = strays(tmp_path)
    assert len(told) == len(there)
    for name, why in there.items():
        (line,) = (line for line in told if f"/{name} is not followed" in line)
        assert re.search(why, line)
        assert line.endswith("; remove it, and order it again if it was meant")
    with pytest.raises(SourceError, match="not named like an order"):
        read_order(tmp_path / "000003-0.json" / "000004-0.json")
    assert sorted(tmp_path.rglob("*")) == sorted([*before, order_path(tmp_path, wish)])


def _row() -> pa.Table:
    return pa.table({"ts": pa.array([0], pa.timestamp("us")), "k": [1]})


class _World:
    """Two sites, and packets that come in the next round."""

    def __init__(self) -> None:
        self.sites = {name: Site.load(SETUP, name) for name in SITES.names}
        self.packets: list[SitePacket] = []
        self.results = self.rounds = 0

    def step(self, *wishes: Wish, rows: bool = False) -> None:
        streams = {"oslo": "a", "rome": "b"}
        sent = []
        self.rounds += rows
        for name, site in self.sites.items():
            given = {streams[name]: _row()} if rows else {}
            came = [packet for packet in self.packets if packet.target == name]
            outcome = site.step(given, came, wishes=wishes)
            sent += outcome.packets
            self.results += sum(rows.num_rows for rows in outcome.results)
        self.packets = sent

    def follow(self) -> list[int]:
        return [plan_status(site, None)["follows"] for site in self.sites.values()]


def test_sites_change_their_plan_by_orders() -> None:
    world = _World()
    world.step(rows=True)
    world.step(WANTED, rows=True)
    for _ in range(10):
        world.step(rows=True)
    for _ in range(8):
        world.step()
    assert world.follow() == [1, 1]
    assert [list(site.plans) for site in world.sites.values()] == [[1], [1]]
    assert world.results == world.rounds**2
    assert not world.packets, "everything has come to rest"
    told = plan_status(world.sites["oslo"], 0)
    assert json.loads(json.dumps(told["plan"])), "the plan is told"
    assert plan_status(world.sites["oslo"], 1)["plan"] is None, "but only once"


def test_a_plan_that_is_wanted_no_longer_is_given_up_by_all() -> None:
    world = _World()
    world.step(WANTED, rows=True)
    world.step(Withdraw(1), rows=True)
    for _ in range(8):
        world.step(rows=True)
    for _ in range(6):
        world.step()
    assert world.follow() == [0, 0]
    assert all(plan_status(site, 0)["abandoned"] == [1] for site in world.sites.values())
    assert world.results == world.rounds**2


def test_one_that_was_withdrawn_before_its_turn_has_none() -> None:
    world = _World()
    world.step(Withdraw(1), rows=True)
    world.step(WANTED, rows=True)
    for _ in range(4):
        world.step()
    assert world.follow() == [0, 0]
    assert [site.planning.planner.turn for site in world.sites.values() if site.planning] == [0, 0]
