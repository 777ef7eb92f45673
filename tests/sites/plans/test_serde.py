"""Plans over sites as JSON: what is written is read back, and damage is named with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plait.errors import PlanError
from plait.sites.plans.plan import Jep, Placement, Sep, SiteLink, Sites, fully_connected
from plait.sites.plans.serde import dumps, from_dict, loads, to_dict

SITES = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000.0)
PLAN = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))


@st.composite
def plans(draw: st.DrawFn) -> tuple[Sites, Jep]:
    streams = draw(st.lists(st.text(max_size=3), min_size=2, max_size=5, unique=True))
    named = draw(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True))
    homes = tuple((stream, draw(st.sampled_from(named))) for stream in streams)
    names = tuple(dict.fromkeys(site for _, site in homes))
    links = tuple(
        SiteLink(o, t, draw(st.floats(0, 1e9)), draw(st.floats(1e-9, 1e18)))
        for o in names
        for t in names
        if o != t
    )
    place: st.SearchStrategy[Placement] = st.sampled_from((0, 1))
    seps = []
    for head in streams:
        order = draw(st.permutations([s for s in streams if s != head]))
        placements = tuple(draw(place) for _ in order)
        seps.append(Sep(head, tuple(order), placements))
    return Sites(names, homes, links, draw(st.text(max_size=3))), Jep(tuple(seps))


@given(plans())
def test_round_trip(case: tuple[Sites, Jep]) -> None:
    assert loads(dumps(*case)) == case
    assert from_dict(to_dict(*case)) == case
    assert json.loads(dumps(*case)) == to_dict(*case)


def test_golden(golden: Callable[[str, str], None]) -> None:
    golden("sites.json", dumps(SITES, PLAN))


def test_a_plan_for_other_sites_is_not_written() -> None:
    with pytest.raises(PlanError, match="no sequence for the stream b"):
        dumps(SITES, Jep(PLAN.seps[:1]))


def changed(path: list[Any], value: object) -> object:
    """The example with something else in one place; without it if the value is ..."""
    data: Any = json.loads(dumps(SITES, PLAN))
    at = data
    for key in path[:-1]:
        at = at[key]
    if value is ...:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return data


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (["version"], 2, "$.version is 2; this release reads version 1; write the plan again"),
        (["version"], ..., "$ lacks the field 'version'"),
        (["plans"], [], "$ has an unknown field 'plans'; did you mean 'plan'?"),
        (["sites"], [], "$.sites is [], not an object"),
        (["sites", "names"], "n1", '$.sites.names is "n1", not a list'),
        (["sites", "names", 0], 1, "$.sites.names[0] is 1, not the name of a site"),
        (["sites", "names"], ["n1", "n2", "n3"], "$.sites: no stream arrives at the site n3"),
        (["sites", "homes", "b"], "n3", "$.sites: the stream b arrives at an unknown site 'n3'"),
        (["sites", "homes", "b"], None, "$.sites.homes.b is null, not the name of a site"),
        (["sites", "links", 0, "rate"], 0, "$.sites.links[0]: the link from n1 to n2 has the "),
        (["sites", "links", 0, "rate"], ..., "$.sites.links[0] lacks the field 'rate'"),
        (["sites", "links", 0, "rate"], None, "$.sites.links[0].rate is null, not a number >= 0"),
        (["sites", "links", 0, "latency"], -1, "$.sites.links[0].latency is -1, not a number"),
        (["sites", "links", 0], ..., "$.sites: the link from n1 to n2 has no transmission rate"),
        (["sites", "results"], 0, "$.sites.results is 0, not the name of a site"),
        (["plan"], {}, "$.plan is {}, not a list"),
        (["plan", 1], ..., "$.plan: the plan has no sequence for the stream b"),
        (["plan", 0, "order"], ["c"], "$.plan: the plan has a stream 'c' that does not arrive"),
        (["plan", 0, "order", 0], None, "$.plan[0].order[0] is null, not the name of a stream"),
        (["plan", 0, "placements"], [], "$.plan[0]: the sequence of a joins 1 streams but has 0"),
        (["plan", 0, "placements", 0], 2, "$.plan[0]: the join with b in the sequence of a has "),
        (["plan", 0, "placements", 0], True, "$.plan[0].placements[0] is true, not 0 or 1"),
        (["plan", 0, "head"], 1, "$.plan[0].head is 1, not the name of a stream"),
    ],
)
def test_damage_is_refused_with_its_place(path: list[Any], value: object, message: str) -> None:
    with pytest.raises(PlanError, match=f"^{re.escape(message)}"):
        from_dict(changed(path, value))


def parts(data: object) -> list[list[Any]]:
    """The place of everything in plain data."""
    if isinstance(data, dict):
        return [[k, *rest] for k, v in data.items() for rest in [[], *parts(v)]]
    if isinstance(data, list):
        return [[n, *rest] for n, v in enumerate(data) for rest in [[], *parts(v)]]
    return []


odd = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=2) | st.just(...)


@given(st.sampled_from(parts(to_dict(SITES, PLAN))), odd | st.lists(odd) | st.just({}))
@example(["sites", "links", 0, "latency"], 2**53 + 1)
def test_whatever_is_changed_is_a_plan_or_a_plan_error(path: list[Any], value: object) -> None:
    data = changed(path, value)
    try:
        found = from_dict(data)
    except PlanError:
        return
    assert to_dict(*found) == data


@pytest.mark.parametrize("text", ["", "[", '{"version": 1', "[" * 100_000, '{"a": 1, "a": 2}'])
def test_text_that_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(PlanError):
        loads(text)
