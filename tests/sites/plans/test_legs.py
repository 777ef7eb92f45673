"""Legs stand for exactly the operators of the node operator sets."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest

from plait.sites.plans.legs import Leg, example_sites, legs_of, site_part
from plait.sites.plans.plan import Flow, OneWayJoin, Operator, Sep, Ship, Update, operator_sets
from plait.testing.examples import clique
from plait_lab.laws.site_world import drawn_jep, drawn_sites


def enters(leg: Leg) -> Flow:
    """The tuples that come into a leg."""
    return Flow(leg.head) if not leg.number else Flow(leg.joined[-1], leg.head)


def operators(leg: Leg) -> Iterator[Operator]:
    """The operators that a leg stands for; those that ship streams are not its own."""
    flow = enters(leg)
    for stream in leg.streams:
        yield OneWayJoin(flow, stream)
        yield Update(stream)
        flow = Flow(stream, leg.head)
    yield Ship(flow, leg.target)


@pytest.mark.parametrize("seed", range(20))
def test_legs_and_shipments_are_the_operators_of_every_site(seed: int) -> None:
    chance = Random(seed)
    query = clique(chance.randint(2, 5))
    sites, jep = drawn_sites(query, chance), drawn_jep(query, chance)
    wanted = operator_sets(sites, jep)
    for site in sites.names:
        part = site_part(sites, jep, site)
        found: set[Operator] = {op for leg in part.legs for op in operators(leg)}
        found |= {Ship(Flow(s), target) for s, targets in part.ships.items() for target in targets}
        assert found == wanted[site]
        assert part.windows == {op.stream for op in wanted[site] if hasattr(op, "stream")}


def test_the_legs_of_the_papers_example() -> None:
    legs = legs_of(example_sites(), Sep("b", ("a", "c"), (0, 1)))
    assert [(leg.site, enters(leg), leg.streams) for leg in legs] == [
        ("n2", Flow("b"), ("a",)),
        ("n3", Flow("a", "b"), ("c",)),
    ]
    assert [leg.last for leg in legs] == [False, True]


def test_a_site_for_results_alone_does_nothing_else() -> None:
    query = clique(2)
    sites = drawn_sites(query, Random(1))
    part = site_part(sites, drawn_jep(query, Random(2)), "elsewhere")
    assert (part.legs, part.windows, part.ships) == ((), frozenset(), {})
