"""Laws 1 and 5 on Spark: parts of a running query are killed with signal 9, and nothing is lost.

Two driver processes run a query each, one with a local master and one on a cluster of two
executors; their parts die on order at named points of a batch, also while plans change. They are
started again until all input is used up. What the sinks have then is what the definition says.
`plait torture --host spark` does the same for as long as one likes.
"""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from plait.workshop.torture.killpoints import CLUSTER, LOCAL, POINTS, Order, Orders
from plait.workshop.torture.spark import Driver, run_story
from plait.workshop.torture.spark_rounds import Story, random_story
from plait.workshop.torture.tally import Tally

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]

_SEED = "law"
_SELECTED = (
    Order("task-begun", "executor", 1),
    Order("header-unwritten", "worker", 2),
    Order("header-unwritten", "executor", 3),
    Order("state-logged", "executor", 4),
    Order("results-ended", "executor", 5),
    Order("sink-logged", "executor", 6),
)
"""Deaths on the cluster; the campaign visits all points there too."""


def _story(folder: Path, master: str) -> Story:
    story = random_story(folder, master, _SEED, tour=[point.name for point in POINTS])
    if master == LOCAL:
        return story
    return replace(story, orders=_SELECTED, round=replace(story.round, staged=False))


def _ran(where: Path) -> dict[str, tuple[Story, Tally, list[str]]]:
    """Both queries, run at the same time: each spends most of it on starting again."""
    drivers = {master: Driver(master, where / name) for master, name in _NAMES.items()}
    stories = {m: _story(driver.home / "round", m) for m, driver in drivers.items()}
    with ThreadPoolExecutor() as pool:
        try:
            told = list(pool.map(run_story, stories.values(), drivers.values()))
        finally:
            for driver in drivers.values():
                driver.close()
    return {m: (story, *found) for (m, story), found in zip(stories.items(), told, strict=True)}


_NAMES = {LOCAL: "local", CLUSTER: "cluster"}


def test_oracle_killed_at_every_point(tmp_path: Path) -> None:
    ran = _ran(tmp_path)
    for story, tally, failures in ran.values():
        assert not failures
        assert tally.results > 100, "a history that shows something"
        obeyed = Counter(order.point for order in story.orders)
        assert tally.kills == obeyed, "every order was obeyed"
        assert not Orders(story.round.folder).waiting()
        assert tally.migrations > 2, "plans changed meanwhile"
        assert tally.starts > sum(order.target == "driver" for order in story.orders)
    assert set(ran[LOCAL][1].kills) == {point.name for point in POINTS}
