"""Sites in virtual time: what work, links and copies take, and that a run can be repeated."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.sites.planner.cost import NESTED_LOOP
from plait.sites.plans.plan import Jep, Sep, SiteLink, fully_connected
from plait.sites.site.setup import SiteSetup
from plait.testing.examples import clique
from plait_lab.virtual.machines import Machine
from plait_lab.virtual.sites import Entry, VirtualSites

SLOW = SiteLink("oslo", "rome", 0.5, 100)
SITES = fully_connected({"a": "oslo", "b": "rome"}, 0.005, 128_000, others=[SLOW], results="rome")
JEP = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))


def rows(count: int) -> pa.Table:
    times = pa.array([n * 1000 for n in range(count)], pa.timestamp("us"))
    return pa.table({"ts": times, "k": pa.array([1] * count, pa.int64())})


def host(tuple_bytes: float | None = 50, speed: float = 1.0) -> VirtualSites:
    setup = SiteSetup(clique(2), SITES, JEP, prices=NESTED_LOOP)
    found = VirtualSites(setup, {"rome": Machine(speed)}, tuple_bytes=tuple_bytes)
    found.arrive(0.0, "b", rows(3))
    found.arrive(0.1, "a", rows(2))
    found.run(10.0)
    return found


def spent(found: VirtualSites, what: str) -> list[Entry]:
    return [entry for entry in found.entries if entry.what == what]


def test_each_link_has_its_own_latency_and_rate() -> None:
    (sent,) = spent(host(), "data")
    assert (sent.site, sent.nbytes) == ("oslo", 100)
    assert sent.seconds == pytest.approx(0.5 + 100 / 100)


def test_work_is_that_of_nested_loops_on_the_machine_of_the_site() -> None:
    usual, slower = ([e for e in spent(host(speed=s), "work") if e.site == "rome"]
                     for s in (1.0, 0.5))  # fmt: skip
    probing = max(usual, key=lambda entry: entry.seconds)
    # Rows of a probe 3 rows of b each; both rows of a are kept there.
    assert probing.seconds == pytest.approx(6 * NESTED_LOOP.probe + 2 * NESTED_LOOP.update)
    assert max(e.seconds for e in slower) == pytest.approx(2 * probing.seconds)
    assert probing.time >= 0.1 + 1.5, "the packet has crossed the slow link"


def test_by_default_packets_have_the_bytes_of_their_bodies() -> None:
    body, counted = host(None), host()
    assert max(t for t, _ in body.reports) > max(t for t, _ in counted.reports)


def test_a_run_can_be_repeated() -> None:
    first, again = host(), host()
    assert first.entries == again.entries
    assert sum(batch.num_rows for batch in first.results) == 6
