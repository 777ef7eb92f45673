"""The text of plans over sites."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plait.errors import SiteError
from plait.sites.plans.explain import explain, in_order, way
from plait.sites.plans.plan import Flow, Jep, Operator, Sep, Ship, SiteLink, Update, fully_connected

Golden = Callable[[str, str], None]


def test_golden_the_papers_example(golden: Golden) -> None:
    sites = fully_connected({"S1": "N1", "S2": "N2", "S3": "N3"}, 0.005, 128_000, results="N0")
    seps = (
        Sep("S1", ("S2", "S3"), (1, 1)),
        Sep("S2", ("S1", "S3"), (0, 1)),
        Sep("S3", ("S1", "S2"), (0, 0)),
    )
    golden("sites_example.txt", explain(sites, Jep(seps), {"S1": "0.26 s/s"}))


def test_golden_shared_sites_and_slow_links(golden: Golden) -> None:
    sites = fully_connected(
        {"trades": "new york", "quotes": "new york", "news": "oslo", "orders": "rome"},
        0.002,
        5e6,
        others=[SiteLink("oslo", "rome", 1.5, 800.0), SiteLink("rome", "oslo", 0.2, 2e9)],
    )
    seps = (
        Sep("trades", ("quotes", "news", "orders"), (0, 1, 0)),
        Sep("quotes", ("trades", "orders", "news"), (1, 1, 1)),
        Sep("news", ("orders", "trades", "quotes"), (0, 1, 0)),
        Sep("orders", ("quotes", "trades", "news"), (0, 0, 0)),
    )
    golden("sites_shared.txt", explain(sites, Jep(seps)))


def test_all_streams_at_one_site_need_no_link() -> None:
    sites = fully_connected({"a": "n1", "b": "n1"}, 0.005, 1.0)
    plan = Jep((Sep("a", ("b",), (0,)), Sep("b", ("a",), (1,))))
    text = explain(sites, plan)
    assert "links\n  none" in text
    assert way(sites, plan.of("b")) == "b @ n1  →  ⋈ a @ n1  → results"


def test_a_plan_for_other_streams_is_refused() -> None:
    sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 1.0)
    with pytest.raises(SiteError):
        explain(sites, Jep((Sep("a", ("b",), (1,)),)))


def test_operators_are_listed_by_kind() -> None:
    some: frozenset[Operator] = frozenset({Ship(Flow("b"), "n"), Ship(Flow("a"), "n"), Update("z")})
    assert [str(x) for x in in_order(some)] == ["update(z)", "ship(a, n)", "ship(b, n)"]
