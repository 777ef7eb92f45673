"""Laws 1, 3 and 5 at sites: the answer of the definition, whatever plan, network and crashes."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.sites.planner.policy import UpdateWay
from plait_lab.laws.site_world import assert_lawful_at_sites, marched, tied
from plait_lab.laws.strategies.histories import History, cases, churns, crowds

SEEDS = st.integers(0, 2**32)


@pytest.mark.slow
@settings(max_examples=20)
@given(
    history=st.one_of(cases(late=True), crowds(late=True), churns()),
    seed=SEEDS,
)
def test_oracle_any_plan_network_and_crashes(history: History, seed: int) -> None:
    assert_lawful_at_sites(history, seed)


@pytest.mark.slow
@settings(max_examples=8)
@given(history=cases(late=True, streams=st.integers(2, 3)), seed=SEEDS)
def test_oracle_theta_joins(history: History, seed: int) -> None:
    assert_lawful_at_sites(history, seed, theta=True)


@pytest.mark.campaign
@settings(max_examples=1000)
@given(
    history=st.one_of(cases(late=True), crowds(late=True), churns()),
    seed=SEEDS,
    theta=st.booleans(),
    update=st.sampled_from((None, "central", "distributed")),
    wishes=st.sampled_from((0.0, 0.02)),
)
def test_campaign_at_sites(
    history: History, seed: int, theta: bool, update: UpdateWay | None, wishes: float
) -> None:
    theta = theta and len(history.query.streams) <= 3
    changes = 0.2 if update is None and not wishes else 0.0
    assert_lawful_at_sites(
        history, seed, theta=theta, changes=changes, update=update, wishes=wishes
    )


@pytest.mark.slow
@settings(max_examples=10)
@given(history=crowds(), seed=SEEDS)
def test_oracle_the_plan_changes_while_rows_flow(history: History, seed: int) -> None:
    assert_lawful_at_sites(history, seed, changes=0.3)


@pytest.mark.slow
@settings(max_examples=6)
@given(history=crowds(), seed=SEEDS, update=st.sampled_from(("central", "distributed")))
def test_oracle_the_sites_change_the_plan_themselves(
    history: History, seed: int, update: UpdateWay
) -> None:
    assert_lawful_at_sites(history, seed, update=update)


@pytest.mark.slow
@settings(max_examples=6)
@given(history=crowds(), seed=SEEDS, update=st.sampled_from((None, "central", "distributed")))
def test_oracle_the_plan_changes_because_somebody_wants_it(
    history: History, seed: int, update: UpdateWay | None
) -> None:
    assert_lawful_at_sites(history, seed, update=update, wishes=0.05)


@pytest.mark.slow
@pytest.mark.parametrize("wishes", [0.0, 0.03], ids=["by hand", "in turns"])
def test_oracle_one_site_hears_of_a_change_long_after_all_others(wishes: float) -> None:
    for seed in range(8):
        changes = 0.0 if wishes else 0.3
        assert_lawful_at_sites(marched(Random(seed)), seed, changes=changes, wishes=wishes)


@pytest.mark.slow
@pytest.mark.parametrize("update", ["central", "distributed"])
def test_oracle_attempts_at_a_step_race_with_their_rows_in_other_orders(update: UpdateWay) -> None:
    for seed in range(2):
        assert_lawful_at_sites(tied(Random(seed)), seed, update=update)
