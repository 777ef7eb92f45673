"""Rounds at sites on Spark, without Spark: they repeat, and what is lost or repeated is seen."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plait.errors import PlaitError
from plait_lab.torture.spark import sites as spark_sites
from plait_lab.torture.spark.campaign import Driver
from plait_lab.torture.spark.killpoints import SITE_POINTS, Orders
from plait_lab.torture.spark.sites import (
    SiteStory,
    campaign,
    check,
    definition,
    random_site_story,
    read_site_round,
    repeat,
    write_site_story,
)
from plait_lab.torture.tally import Tally


def test_a_round_is_read_as_it_was_written(tmp_path: Path) -> None:
    for number in range(4):
        story = random_site_story(tmp_path / str(number), f"3/{number}")
        write_site_story(story)
        round_ = read_site_round(story.round.folder)
        assert round_ == story.round
        assert len(Orders(story.round.folder).waiting()) == len(story.orders)
        assert round_.step() == 0
        for _ in range(2):  # again, if somebody died in the middle
            round_.release(0)
        files = sorted(path.name for path in (round_.folder / "feeds").rglob("*.parquet"))
        assert files == ["0000.parquet"] * 3


def test_a_tour_visits_every_point(tmp_path: Path) -> None:
    story = random_site_story(tmp_path, "1/0", tour=True)
    assert {order.point for order in story.orders} == {point.name for point in SITE_POINTS}


def test_the_definition() -> None:
    near = {"a": [[(1, 1, 0)]], "b": [[(1, 2, 6_000_000)]], "c": [[(1, 3, 3_000_000)]]}
    assert definition(near) == {(1, 2, 3): 1}
    assert not definition({**near, "c": [[(1, 3, -1)]]}), "too far from the row of b"
    assert not definition({**near, "c": [[(2, 3, 0)]]}), "another key"


def _found(story: SiteStory, rows: list[tuple[int, ...]]) -> None:
    out = story.round.folder / "found-all" / "out"
    (out / "_spark_metadata").mkdir(parents=True)
    columns = zip(*rows, strict=True)
    pq.write_table(pa.table(dict(zip("abc", columns, strict=True))), out / "part.parquet")
    line = json.dumps({"path": (out / "part.parquet").as_uri(), "action": "add"})
    (out / "_spark_metadata" / "0").write_text(f"v1\n{line}")


@pytest.mark.parametrize("told", ["", "1 results lost", "1 repeated or wrong"])
def test_one_result_more_or_less_is_seen(tmp_path: Path, told: str) -> None:
    story = random_site_story(tmp_path, "5/1")
    rows = list(definition(story.rows).elements())
    assert len(rows) > 10, "a history that shows something"
    _found(story, rows[1:] if "lost" in told else rows + rows[: bool(told)])
    _, found = check(story)
    assert len(found) == bool(told) and all(told in text for text in found)


def test_a_campaign_adds_up_and_tells_what_was_never_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(story: SiteStory, driver: Driver) -> tuple[Tally, list[str]]:
        wrong = ["1 results lost"] if story.round.folder.name == "round1" else []
        return Tally(1, 10, mail_faults=3, kills={"step-begun": 1}), wrong

    monkeypatch.setattr(spark_sites, "run_site_story", run)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    said: list[str] = []
    tally, failures = campaign(0.0, 7, said.append)
    assert tally.queries == 2 and tally.mail_faults == 6 and tally.kills["step-begun"] == 2
    assert [failure.case for failure in failures] == ["7/1", "7/0"]
    assert "never reached" in failures[1].text and "mail-logged" in failures[1].text
    again, failures = repeat("7/1", said.append)
    assert again.queries == 1 and failures[0].text == "1 results lost"
    with pytest.raises(PlaitError, match="names no round at sites"):
        repeat("7", said.append)
