"""Small, adversarial histories by Hypothesis, from a seed: what it finds, it also makes small."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from plait.plan.enumerate import sample_plan
from plait.plan.routed import Eddies, Teddies
from plait.workshop.laws.checks import assert_lawful, assert_lawful_on_processors
from plait.workshop.laws.histories import History, cases, crowds
from plait.workshop.torture.tally import Tally

EXAMPLES = 60
"""Histories of one round."""


def _local(history: History, chance: Random) -> None:
    plan = chance.choice((None, sample_plan(history.query, chance), Teddies(), Eddies()))
    assert_lawful(history, plan, hash_bits=chance.choice((64, 2, 0)))


def _simulated(history: History, chance: Random) -> None:
    assert_lawful_on_processors(history, chance.randrange(1, 5), chance.randrange(2**32))


CHECKS: dict[str, Callable[[History, Random], None]] = {"local": _local, "simulated": _simulated}


def play(host: str, number: int) -> Tally:
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
        CHECKS[host](history, Random(chance))

    run()
    return tally
