"""What plans are chosen from before anything is measured: one answer, wherever it is asked."""

from __future__ import annotations

import pyarrow as pa

import plait
from plait.sites.planner.assumptions import complete_statistics, conditions_of, site_setting
from plait.sites.planner.cost import StreamStatistics
from plait.sites.plans.legs import example_sites
from plait.sites.site.setup import SiteSetup
from plait.testing.examples import clique, keyed

ROW = pa.schema([("k", pa.int64()), ("text", pa.string()), ("ts", pa.timestamp("us"))])


def test_a_placed_join_and_its_sites_assume_the_same() -> None:
    asked = plait.join(a=ROW, b=ROW).on("a.k = b.k").within("5 seconds").watermark("2 seconds")
    placed = plait.sites.place(asked, at={"oslo": "a", "rome": "b"}, latency=0.005, rate=128_000)
    bare = SiteSetup(placed.setup.query, placed.setup.sites, placed.plan)
    assert bare.setting == placed.setting == placed.setup.setting
    assert placed.setting.statistics == complete_statistics(placed.setup.query, {})


def test_rows_are_as_large_as_their_columns_and_windows_as_long_as_the_bounds() -> None:
    asked = plait.join(a=ROW, b=ROW).on("a.k = b.k").within("5 seconds").watermark("2 seconds")
    known = complete_statistics(asked.query, {"b": {"rate": 3.0}})
    assert known["a"] == StreamStatistics(100.0, 0.01, 8 + 20 + 8, 5.0)
    assert known["b"] == StreamStatistics(3.0, 0.01, 8 + 20 + 8, 5.0)


def test_what_is_given_in_full_is_taken_as_it_is() -> None:
    given = StreamStatistics(1.0, 0.5, 7.0, 2.0)
    setting = site_setting(clique(3), example_sites(), {"a": given})
    assert setting.statistics["a"] == given
    assert setting.statistics["b"].rate == 100.0


def test_conditions_are_those_of_keys_or_none_at_all() -> None:
    pairs = frozenset({frozenset("ab"), frozenset("bc")})
    assert conditions_of(keyed("x", "xy", "y")) == pairs
