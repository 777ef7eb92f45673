"""Rounds on Spark with something that a test needs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from plait_lab.torture.spark.killpoints import LOCAL
from plait_lab.torture.spark.rounds import Story, random_story


def story_with(folder: Path, needed: Callable[[Story], bool]) -> Story:
    """The first of many rounds that has it; those that begin with a golden checkpoint have none."""
    for number in range(300):
        story = random_story(folder, LOCAL, f"with/{number}")
        if story.round.upgrade is None and needed(story):
            return story
    raise AssertionError("there is such a round among 300")
