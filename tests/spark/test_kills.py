"""Laws 1 and 5 on Spark: parts of a running query are killed with signal 9, and nothing is lost.

Two driver processes run a query each, one with a local master and one on a cluster of two
executors; their parts die on order at named points of a batch, also while plans change. They are
started again until all input is used up. What the sinks have then is what the definition says.
`./dev torture --host spark` does the same for as long as one likes.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

import plait
from plait_lab.torture.spark.campaign import Driver, check, run_story, table_files
from plait_lab.torture.spark.killpoints import CLUSTER, LOCAL, POINTS, Order, Orders
from plait_lab.torture.spark.rounds import Story, random_story
from plait_lab.torture.tally import Tally

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


_CHEAP = ("task", "sink")
"""Places at which a worker dies; a driver takes many seconds to start again."""
_DRIVERS = ("table-published",)
"""The point at which the driver dies in the short test, which has no cluster either."""


def _points(*, all_of_them: bool) -> list[str]:
    here = [p for p in POINTS if p.group != "delta"]
    return [p.name for p in here if all_of_them or p.place in _CHEAP or p.name in _DRIVERS]


def _story(folder: Path, master: str, points: list[str]) -> Story:
    story = random_story(folder, master, _SEED, tour=points)
    if master == LOCAL:
        return story
    return replace(story, orders=_SELECTED, round=replace(story.round, staged=False))


def _ran(
    where: Path, points: list[str], masters: Sequence[str]
) -> dict[str, tuple[Story, Tally, list[str]]]:
    """The queries, run at the same time: each spends most of it on starting again."""
    drivers = {master: Driver(master, where / _NAMES[master]) for master in masters}
    stories = {m: _story(driver.home / "round", m, points) for m, driver in drivers.items()}
    with ThreadPoolExecutor() as pool:
        try:
            told = list(pool.map(run_story, stories.values(), drivers.values()))
        finally:
            for driver in drivers.values():
                driver.close()
    return {m: (story, *found) for (m, story), found in zip(stories.items(), told, strict=True)}


_NAMES = {LOCAL: "local", CLUSTER: "cluster"}


@pytest.mark.parametrize(
    "all_of_them",
    [False, pytest.param(True, marks=pytest.mark.campaign)],
    ids=["workers", "every point"],
)
def test_oracle_killed_at_every_point(tmp_path: Path, all_of_them: bool) -> None:
    points = _points(all_of_them=all_of_them)
    ran = _ran(tmp_path, points, (LOCAL, CLUSTER) if all_of_them else (LOCAL,))
    for story, tally, failures in ran.values():
        assert not failures
        assert tally.results > 100, "a history that shows something"
        obeyed = Counter(order.point for order in story.orders)
        assert tally.kills == obeyed, "every order was obeyed"
        assert not Orders(story.round.folder).waiting()
        assert tally.migrations > 2, "plans changed meanwhile"
        assert tally.starts > sum(order.target == "driver" for order in story.orders)
    assert set(ran[LOCAL][1].kills) == set(points)


@pytest.mark.campaign
def test_oracle_killed_around_a_delta_table(tmp_path: Path) -> None:
    """Before the files, in the middle, after them, before the log's entry and after it."""
    points = [p.name for p in POINTS if p.group == "delta"]
    story, tally, failures = _ran(tmp_path, points, (LOCAL,))[LOCAL]
    assert not failures
    assert story.round.delta and tally.results > 100, "a history that shows something"
    assert tally.kills == dict.fromkeys(points, 1), "every order was obeyed"
    out = story.round.folder / "out"
    left = {path.name for path in out.glob("*.parquet")} - {p.name for p in table_files(out)}
    assert left, "the dead have left files behind, and nobody has seen them"
    for name in left:
        os.utime(out / name, (1, 1))
    assert set(plait.spark.vacuum(out)) == left
    assert check(story) == (tally.results, [])
