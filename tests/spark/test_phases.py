"""A query on Spark that is started again with another question and other processors, while it dies.

`./dev torture` does the same for as long as one likes, with everything drawn at random.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from plait.query.bounds import Bounds
from plait.query.expr import Column
from plait.query.query import Output
from plait_lab.torture.spark.campaign import Driver, run_story
from plait_lab.torture.spark.killpoints import LOCAL, POINTS, SITE_POINTS, Order
from plait_lab.torture.spark.rounds import Phase, Story, random_story
from plait_lab.torture.spark.sites import MODULE, random_site_story, run_site_story

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_ORDERS = (
    Order("task-begun", "worker", 1),
    Order("processors-asked", "driver"),
    Order("header-unwritten", "worker", 4),
)


def _story(folder: Path) -> Story:
    """Six batches; after three of them the window is wider, with one more column and processor."""
    tour = [point.name for point in POINTS if point.group == "rebalance"]
    story = random_story(folder, LOCAL, "phases", tour=tour)
    round_, (then,) = story.round, story.round.later
    query = then.query
    wider = Bounds(tuple(tuple(2 * d for d in row) for row in query.bounds.matrix))
    select = (*query.select, Output("value", Column(query.names[-1], "v")))
    later = (Phase(then.since, replace(query, bounds=wider, select=select), then.processors),)
    return replace(story, round=replace(round_, files=2, later=later), orders=_ORDERS)


def test_oracle_another_question_and_other_processors(tmp_path: Path) -> None:
    driver = Driver(LOCAL, tmp_path)
    try:
        story = _story(tmp_path / "round")
        tally, failures = run_story(story, driver)
    finally:
        driver.close()
    assert not failures
    assert tally.results > 50, "a history that shows something"
    assert tally.upgrades == 1 and (tmp_path / "round" / "divided-1").exists()
    assert tally.kills == {order.point: 1 for order in _ORDERS}


@pytest.mark.campaign
def test_oracle_sites_are_killed_behind_a_bad_network(tmp_path: Path) -> None:
    driver = Driver(LOCAL, tmp_path, MODULE)
    try:
        story = random_site_story(tmp_path / "round", "tour", tour=True)
        tally, failures = run_site_story(story, driver, ("repeated", "delayed", "damaged"))
    finally:
        driver.close()
    assert not failures
    assert tally.results > 10 and tally.mail_faults, "a history that shows something"
    assert set(tally.kills) == {point.name for point in SITE_POINTS}
