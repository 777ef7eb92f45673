"""Plans over sites: the paper's examples with their exact sets, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import (
    LinkWithoutRate,
    PlaitError,
    SiteError,
    SiteWithoutStream,
    UnknownSite,
    UnknownStream,
)
from plait.sites.plans.plan import (
    Flow,
    Jep,
    OneWayJoin,
    Operator,
    Placement,
    Sep,
    Ship,
    SiteLink,
    Sites,
    Update,
    check_jep,
    fully_connected,
    operator_sets,
    sep_operators,
    steps,
)

THREE = fully_connected({"S1": "N1", "S2": "N2", "S3": "N3"}, 0.005, 128_000, results="N0")
EXAMPLE_1 = Jep(
    (
        Sep("S1", ("S2", "S3"), (1, 1)),
        Sep("S2", ("S1", "S3"), (0, 1)),
        Sep("S3", ("S1", "S2"), (0, 0)),
    )
)
"""Figure 1 of the paper."""


def texts(operators: frozenset[Operator]) -> set[str]:
    return set(map(str, operators))


def test_example_2_has_the_operator_sets_of_the_paper() -> None:
    """The paper prints join(S^1_1, S_3) at N_3; its example 3 has join(S^1_2, S_3), as it must."""
    found = operator_sets(THREE, EXAMPLE_1)
    assert texts(found["N1"]) == {"ship(S1, N2)", "ship(S1, N3)"}
    assert texts(found["N2"]) == {
        "join(S1, S2)", "update(S2)", "ship(S1→S2, N3)",
        "update(S1)", "join(S2, S1)", "ship(S2→S1, N3)",
        "ship(S2, N3)",
    }  # fmt: skip
    assert texts(found["N3"]) == {
        "join(S1→S2, S3)", "update(S3)", "ship(S1→S3, N0)",
        "join(S2→S1, S3)", "ship(S2→S3, N0)",
        "join(S3, S1)", "join(S3→S1, S2)", "update(S1)", "update(S2)", "ship(S3→S2, N0)",
    }  # fmt: skip


def test_example_2_per_sequence() -> None:
    found = sep_operators(THREE, EXAMPLE_1.seps[1])
    assert found == {
        "N1": {Ship(Flow("S1"), "N2")},
        "N2": {Update("S1"), OneWayJoin(Flow("S2"), "S1"), Ship(Flow("S1", "S2"), "N3")},
        "N3": {
            OneWayJoin(Flow("S1", "S2"), "S3"),
            Update("S3"),
            Ship(Flow("S3", "S2"), "N0"),
        },
    }


def test_example_3_before_and_after_the_modification() -> None:
    before = sep_operators(THREE, EXAMPLE_1.seps[0])
    assert {site: texts(found) for site, found in before.items()} == {
        "N1": {"ship(S1, N2)"},
        "N2": {"join(S1, S2)", "update(S2)", "ship(S1→S2, N3)"},
        "N3": {"join(S1→S2, S3)", "update(S3)", "ship(S1→S3, N0)"},
    }
    after = sep_operators(THREE, Sep("S1", ("S3", "S2"), (0, 1)))
    assert {site: texts(found) for site, found in after.items()} == {
        "N1": {"join(S1, S3)", "update(S3)", "ship(S1→S3, N2)"},
        "N2": {"join(S1→S3, S2)", "update(S2)", "ship(S1→S2, N0)"},
        "N3": {"ship(S3, N1)"},
    }


def test_a_run_of_joins_at_the_source_stays_where_it_began() -> None:
    sites = fully_connected({s: f"n{s}" for s in "abcde"}, 0.005, 128_000)
    sep = Sep("a", ("b", "c", "d", "e"), (1, 0, 0, 1))
    assert [step.site for step in steps(sites, sep)] == ["nb", "nb", "nb", "ne"]
    found = sep_operators(sites, sep)
    assert texts(found["nb"]) == {
        "join(a, b)", "update(b)", "join(a→b, c)", "update(c)", "join(a→c, d)", "update(d)",
        "ship(a→d, ne)",
    }  # fmt: skip
    assert texts(found["nc"]) == {"ship(c, nb)"}


def test_streams_at_one_site_ship_nothing_and_both_placements_are_the_same() -> None:
    sites = fully_connected({"a": "n1", "b": "n1", "c": "n2"}, 0.005, 128_000)
    at_source = sep_operators(sites, Sep("a", ("b", "c"), (0, 1)))
    assert at_source == sep_operators(sites, Sep("a", ("b", "c"), (1, 1)))
    assert texts(at_source["n1"]) == {"join(a, b)", "update(b)", "ship(a→b, n2)"}
    assert texts(at_source["n2"]) == {"join(a→b, c)", "update(c)", "ship(a→c, results)"}


def test_results_may_stay_at_one_of_the_sites() -> None:
    sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000, results="n2")
    assert Ship(Flow("b", "a"), "n2") in sep_operators(sites, Sep("a", ("b",), (1,)))["n2"]


@st.composite
def plans(draw: st.DrawFn) -> tuple[Sites, Jep]:
    """Any plan, with streams that share sites and names that are no plain words."""
    streams = draw(st.lists(st.text(max_size=3), min_size=2, max_size=5, unique=True))
    sites = draw(st.lists(st.text(max_size=3), min_size=1, max_size=4, unique=True))
    homes = {stream: draw(st.sampled_from(sites)) for stream in streams}
    place: st.SearchStrategy[Placement] = st.sampled_from((0, 1))
    seps = []
    for head in streams:
        order = draw(st.permutations([s for s in streams if s != head]))
        seps.append(Sep(head, tuple(order), tuple(draw(place) for _ in order)))
    return fully_connected(homes, 0.01, 1000.0), Jep(tuple(seps))


@given(plans())
def test_every_join_runs_once_where_its_window_and_its_tuples_are(case: tuple[Sites, Jep]) -> None:
    """The sets alone say it: each flow is made at one site, and everything it needs gets there."""
    sites, jep = case
    sets = operator_sets(sites, jep)
    made = {Flow(stream): {sites.home(stream)} for stream in sites.streams}
    for site, operators in sets.items():
        for operator in operators:
            if isinstance(operator, OneWayJoin):
                flow = operator.flow
                head = flow.stream if flow.head is None else flow.head
                made.setdefault(Flow(operator.stream, head), set()).add(site)
                assert Update(operator.stream) in operators
    assert all(len(where) == 1 for where in made.values())

    def arrives(flow: Flow, site: str) -> bool:
        (origin,) = made[flow]
        return origin == site or Ship(flow, site) in sets[origin]

    for site, operators in sets.items():
        for operator in operators:
            if isinstance(operator, OneWayJoin):
                assert arrives(operator.flow, site)
            elif isinstance(operator, Update):
                assert arrives(Flow(operator.stream), site)
            else:
                assert made[operator.flow] == {site}
    for sep in jep.seps:
        assert arrives(Flow(sep.order[-1], sep.head), sites.results)


def two(**given: Any) -> Sites:
    usual: dict[str, Any] = {
        "names": ("n1", "n2"),
        "homes": (("a", "n1"), ("b", "n2")),
        "links": (SiteLink("n1", "n2", 0.1, 1.0), SiteLink("n2", "n1", 0.1, 1.0)),
        "results": "here",
    }
    return Sites(**usual | given)


@pytest.mark.parametrize(
    ("given_", "error", "message"),
    [
        (
            {"names": ("n1", "n2", "n3")},
            SiteWithoutStream,
            "no stream arrives at the site n3; leave it out; results may go to a site that is "
            "not listed",
        ),
        (
            {"homes": (("a", "n1"), ("b", "m2"))},
            UnknownSite,
            "the stream b arrives at an unknown site 'm2'; known: n1, n2",
        ),
        (
            {"links": (SiteLink("n1", "n2", 0.1, 1.0),)},
            LinkWithoutRate,
            "the link from n2 to n1 has no transmission rate; give latency and rate for each "
            "pair of sites, in both directions",
        ),
        (
            {"links": (SiteLink("n1", "x", 0.1, 1.0),)},
            UnknownSite,
            "there is a link from n1 to x, but no site 'x'; known: n1, n2",
        ),
        (
            {"links": (SiteLink("n1", "n2", 0.1, 1.0), SiteLink("n1", "n2", 0.2, 1.0))},
            SiteError,
            "the link 'n1 → n2' is there twice; name it once",
        ),
        ({"names": ("n1", "n1")}, SiteError, "the site 'n1' is there twice; name it once"),
        (
            {"homes": (("a", "n1"), ("a", "n2"))},
            SiteError,
            "the stream 'a' is there twice; name it once",
        ),
        (
            {"names": ("n1",), "homes": (("a", "n1"),)},
            SiteError,
            "fewer than two streams arrive; a join needs two",
        ),
    ],
)
def test_sites_that_make_no_sense_are_refused(
    given_: dict[str, Any], error: type[PlaitError], message: str
) -> None:
    assert two().link("n2", "n1").latency == 0.1
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        two(**given_)


@pytest.mark.parametrize("rate", [0, -1.0, float("nan"), float("inf"), None, True, "fast"])
def test_a_link_without_a_rate_is_refused(rate: Any) -> None:
    with pytest.raises(LinkWithoutRate, match=r"^the link from n1 to n2 has the transmission rate"):
        SiteLink("n1", "n2", 0.0, rate)


@pytest.mark.parametrize("latency", [-1.0, float("nan"), float("inf"), None, False])
def test_a_latency_that_is_none_is_refused(latency: Any) -> None:
    with pytest.raises(SiteError, match=r"^the link from n1 to n2 has the latency"):
        SiteLink("n1", "n2", latency, 1.0)


def test_a_link_from_a_site_to_itself_is_refused() -> None:
    with pytest.raises(SiteError, match=r"leads nowhere; what stays at a site needs no link"):
        SiteLink("n1", "n1", 0.0, 1.0)


@pytest.mark.parametrize(
    ("seps", "error", "message"),
    [
        ([("a", "b")], SiteError, "the plan has no sequence for the stream b"),
        ([("a", "b"), ("a", "b")], SiteError, "the plan has two sequences for the stream a"),
        ([("a", "a"), ("b", "a")], SiteError, "joins the stream a twice"),
        ([("a", ""), ("b", "a")], SiteError, "the sequence a lacks the stream b"),
        ([("a", "c"), ("b", "a")], SiteError, "the plan has a stream 'c' that"),
        ([("a", "b"), ("c", "a")], SiteError, "the plan has a stream 'c' that"),
    ],
)
def test_a_plan_for_other_streams_is_refused(
    seps: list[tuple[str, str]], error: type[PlaitError], message: str
) -> None:
    jep = Jep(tuple(Sep(head, tuple(order), tuple(1 for _ in order)) for head, order in seps))
    with pytest.raises(error, match=message):
        check_jep(two(), jep)


@pytest.mark.parametrize("placement", [2, -1, True, 0.0, "1", None])
def test_a_placement_is_0_or_1(placement: Any) -> None:
    with pytest.raises(SiteError, match=r"has the placement .*; give 0 \(at the source\)"):
        Sep("a", ("b",), (placement,))


def test_unknown_names_are_named() -> None:
    with pytest.raises(UnknownStream, match="no sequence begins with 'S4'"):
        EXAMPLE_1.of("S4")
    with pytest.raises(UnknownSite, match="there is no site 'n9'"):
        two().link("n1", "n9")
    with pytest.raises(SiteError, match="joins 1 streams but has 2 placements"):
        Sep("a", ("b",), (0, 1))
