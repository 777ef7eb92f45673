"""What users say about sites: what is wrong with it is named."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa
import pytest

import plait
from plait.errors import (
    LinkWithoutRate,
    PlaitError,
    PolicyError,
    SiteError,
    SiteWithoutStream,
    SourceError,
    StatisticsError,
    UnknownSite,
    UnknownStream,
)
from plait.query.builder import JoinBuilder
from plait.sites.plans.plan import Jep, Sep, SiteLink
from plait.sites.plans.serde import dumps
from plait.sites.spark.join import PlacedJoin
from plait.sites.spark.settings import settings_of

AT = {"oslo": ["a"], "rome": "b"}
LINKS: dict[str, Any] = {"latency": 0.005, "rate": 128_000}


def _asked(**options: str) -> Any:
    row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    asked = plait.join(a=row, b=row).on("a.k = b.k").within("5 seconds").watermark("2 seconds")
    for name, value in options.items():
        asked = getattr(asked, name)(value)
    return asked


def _placed(at: Any = AT, **options: Any) -> PlacedJoin:
    return plait.sites.place(_asked(), **{"at": at, **LINKS, **options})


def test_a_plan_is_chosen_and_explained() -> None:
    placed = _placed(results="rome", statistics={"a": {"rate": 5.0}})
    text = placed.explain()
    assert "oslo  a" in text
    assert "ms per second" in text
    assert placed.plan.of("b").order == ("a",)
    assert placed.site("rome").application == "site-rome"
    assert placed.application == "all"
    assert placed.site("rome").question == placed.question != _placed().question


def test_a_plan_that_is_given_is_taken() -> None:
    plan = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    placed = _placed(plan=plan)
    assert placed.plan == plan
    assert _placed(plan=dumps(placed.setup.sites, plan)).plan == plan


def test_links_may_differ() -> None:
    slow = SiteLink("oslo", "rome", 0.5, 100)
    links = _placed(links=[slow]).setup.sites.links
    assert [link.rate for link in links] == [100, 128_000]


BAD: list[tuple[dict[str, Any], type[PlaitError], str]] = [
    ({"at": {**AT, "bonn": []}}, SiteWithoutStream, "no stream arrives at the site bonn"),
    ({"at": {"oslo": ["a"]}}, SiteError, "the stream b arrives at no site"),
    ({"at": {"oslo": ["a", "b"], "rome": "b"}}, SiteError, "b arrives at two sites, oslo and"),
    ({"at": {"oslo": ["a"], "rome": ["q"]}}, UnknownStream, "no stream 'q'"),
    ({"rate": None}, LinkWithoutRate, "a latency but no rate"),
    ({"latency": None, "rate": None}, LinkWithoutRate, "from oslo to rome has no transmission"),
    ({"links": [("oslo", "rome", 0.1, 0)]}, LinkWithoutRate, "has the transmission rate 0"),
    ({"links": [("oslo", "paris", 0.1, 9)]}, UnknownSite, "no site 'paris'"),
    ({"links": [("oslo", "rome", 0, 9)] * 2}, SiteError, "is there twice"),
    ({"results": "paris"}, UnknownSite, "unknown site 'paris'"),
    ({"plan": Jep((Sep("a", ("b",), (1,)),))}, SiteError, "no sequence for the stream b"),
    ({"statistics": {"q": {}}}, UnknownStream, "unknown stream 'q'"),
    ({"statistics": {"a": {"speed": 1}}}, StatisticsError, "'speed' is no statistic"),
    ({"statistics": {"a": {"rate": -1}}}, StatisticsError, "the rate of a stream is -1"),
    ({"statistics": {"a": 5}}, StatisticsError, "the statistics of a are 5"),
    ({"at": ["a", "b"]}, SiteError, "does not say which streams arrive at which site"),
    ({"at": {"oslo": None, "rome": ["a", "b"]}}, SiteWithoutStream, "no stream arrives at the"),
    ({"at": {1: "a", 2: "b"}}, SiteError, "a site cannot be named 1"),
    ({"at": {"../oslo": "a", "rome": "b"}}, SiteError, "a site cannot be named '../oslo'"),
    ({"at": {" ": "a", "rome": "b"}}, SiteError, "a site cannot be named ' '"),
    ({"at": {"oslo\n": "a", "rome": "b"}}, SiteError, "a site cannot be named"),
    ({"at": {"o" * 61: "a", "rome": "b"}}, SiteError, "1 to 60 printable characters"),
    ({"links": [("oslo", "rome", 0.1)]}, LinkWithoutRate, "is not complete"),
    ({"links": [7]}, LinkWithoutRate, "the link 7 is not complete"),
    ({"adapt": "yes"}, PolicyError, "adapt='yes' is no policy"),
    ({"plan": "{}"}, SiteError, "the plan that was given cannot be read"),
]


@pytest.mark.parametrize(("given", "error", "text"), BAD, ids=[text for *_, text in BAD])
def test_what_is_wrong_is_named(given: dict[str, Any], error: type[PlaitError], text: str) -> None:
    with pytest.raises(error, match=text):
        _placed(**given)


def test_what_no_site_can_know_is_refused() -> None:
    with pytest.raises(SiteError, match="least watermark"):
        plait.sites.place(_asked(lateness="least"), at=AT, **LINKS)
    with pytest.raises(SiteError, match="idle time-out"):
        plait.sites.place(_asked(idle="5 seconds"), at=AT, **LINKS)


def test_streams_must_be_dataframes_where_they_arrive(tmp_path: Any) -> None:
    with pytest.raises(SourceError, match="the source of b is a Schema, not a DataFrame"):
        _placed().site("rome").start(mailbox=tmp_path / "box", checkpoint=tmp_path / "c")
    with pytest.raises(UnknownSite, match="no site 'paris'"):
        _placed().site("paris")


TOLD: dict[str, Callable[[Any], Any]] = {
    "limits": lambda asked: asked.budget(cpu=0.5),
    "enforced": lambda asked: asked.budget(memory="1 GB", enforce=False),
    "known": lambda asked: asked.statistics({"selectivities": {"a.k = b.k": 0.1}}),
    "router": lambda asked: asked.engine("teddies"),
    "adaptive": lambda asked: asked.adapt(plait.PlanPolicy(margin=0.5)),
    "balanced": lambda asked: asked.balance(plait.BalancePolicy(margin=0.5)),
}
"""For each setting of a join, how to give it one that sites do not know."""


def _sql() -> Any:
    row = pa.schema([("k", pa.int64()), ("ts", pa.timestamp("us"))])
    text = (
        "SELECT a.k FROM a JOIN b ON a.k = b.k AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 SECOND"
    )
    return plait.sql({"a": row, "b": row}, text, time={"a": "ts", "b": "ts"}, watermark="1 second")


@pytest.mark.parametrize("asked", [_asked, _sql])
def test_no_setting_of_a_join_is_ignored(asked: Callable[[], Any]) -> None:
    question = {"query", "sources", *(field.name for field in fields(JoinBuilder))}
    settings = {field.name for field in fields(asked())} - question
    assert settings == set(TOLD), "say what sites make of a new setting"
    plait.sites.place(asked(), at=AT, **LINKS)
    for name, tell in TOLD.items():
        told = tell(asked())
        assert name in settings_of(told)
        with pytest.raises(SiteError, match=r"the join was told (\w+) \(.*; \w+") as refused:
            plait.sites.place(told, at=AT, **LINKS)
        (method,) = re.findall(r"told (\w+)", str(refused.value))
        assert callable(getattr(told, method)), "it is named as users know it"


def test_a_setting_that_nobody_has_thought_of_is_refused() -> None:
    @dataclass(frozen=True)
    class Later:
        query: Any
        sources: Any
        colour: str = "none"

    asked = _asked()
    plait.sites.place(Later(asked.query, asked.sources), at=AT, **LINKS)
    with pytest.raises(SiteError, match=r"the join was told colour \(red\)"):
        plait.sites.place(Later(asked.query, asked.sources, "red"), at=AT, **LINKS)


def test_what_a_join_was_told_holds_for_sites_where_they_can() -> None:
    told = _asked().statistics({"rates": {"a": 7}})
    placed = plait.sites.place(told, at=AT, **LINKS)
    assert placed.setting.statistics["a"].rate == 7
    assert placed.setting.statistics["b"].rate != 7
    both = plait.sites.place(told, at=AT, **LINKS, statistics={"a": {"rate": 8, "factor": 0.5}})
    assert both.setting.statistics["a"].rate == 8, "what the sites are told counts"
    assert plait.sites.place(_asked().adapt(False), at=AT, **LINKS).setup.automatic is False
    assert plait.sites.place(_asked().adapt(), at=AT, **LINKS).setup.automatic
    assert plait.sites.place(_asked().balance(False).engine("tree"), at=AT, **LINKS).setup.automatic
    with pytest.raises(SiteError, match="the join was told adapt"):
        plait.sites.place(_asked().adapt(False), at=AT, **LINKS, adapt=True)
