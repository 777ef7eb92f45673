"""Small, adversarial histories by Hypothesis, from a seed: what it finds, it also makes small."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from plait.plan.routed import Eddies, Teddies
from plait.sites.planner.policy import UpdateWay
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.checks import assert_lawful, assert_lawful_on_processors
from plait_lab.laws.site_world import assert_lawful_at_sites
from plait_lab.laws.strategies.histories import History, cases, crowds
from plait_lab.laws.strategies.questions import assert_lawful_through_changes
from plait_lab.torture.tally import Tally

EXAMPLES = 60
"""Histories of one round."""


def _local(history: History, chance: Random) -> Tally:
    plan = chance.choice((None, sample_plan(history.query, chance), Teddies(), Eddies()))
    assert_lawful(history, plan, hash_bits=chance.choice((64, 2, 0)))
    return Tally()


def _simulated(history: History, chance: Random) -> Tally:
    assert_lawful_on_processors(history, chance.randrange(1, 5), chance.randrange(2**32))
    return Tally()


def _upgrades(history: History, chance: Random) -> Tally:
    return Tally(upgrades=assert_lawful_through_changes(history, chance.randrange(2**32)))


def _sites(history: History, chance: Random) -> Tally:
    update: UpdateWay | None = chance.choice((None, "central", "distributed"))
    wishes = chance.choice((0.0, 0.02))
    world = assert_lawful_at_sites(
        history,
        chance.randrange(2**32),
        theta=len(history.query.streams) <= 3 and chance.random() < 0.5,
        changes=0.2 if update is None and not wishes else 0.0,
        update=update,
        wishes=wishes,
    )
    return Tally(crashes=world.crashes, migrations=world.switched, mail_faults=world.faults)


CHECKS: dict[str, Callable[[History, Random], Tally]] = {
    "local": _local,
    "simulated": _simulated,
    "simulated-upgrades": _upgrades,
    "simulated-sites": _sites,
}
"""What is checked of each history, by the kind of campaign."""


def play(kind: str, number: int) -> Tally:
    """One round; raises the smallest failure that was found."""
    tally = Tally()

    @seed(number)
    @settings(
        max_examples=EXAMPLES,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(cases(late=True), crowds(late=True)), st.integers(0, 2**32))
    def run(history: History, chance: int) -> None:
        tally.queries += 1
        tally.rows += sum(map(len, history.rows().values()))
        tally.add(CHECKS[kind](history, Random(chance)))

    run()
    return tally
