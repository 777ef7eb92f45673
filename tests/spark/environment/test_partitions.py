"""The session's number of partitions is the user's: it is read, never kept changed."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

from plait.spark.environment.partitions import (
    SETTING,
    partitions,
    partitions_of,
    processor_count,
    warn_of_partitions,
)


class Session:
    """What is asked of a session."""

    def __init__(self, count: str | None = None) -> None:
        self.settings = {} if count is None else {SETTING: count}
        self.asked = 0

    @property
    def conf(self) -> Any:
        return self

    def get(self, name: str, default: str) -> str:
        return self.settings.get(name, default)

    def range(self, rows: int) -> Any:
        """A cluster of twelve cores."""
        self.asked += 1
        return self

    def selectExpr(self, text: str) -> Any:  # Spark's name
        return self

    def first(self) -> tuple[int]:
        return (11,)

    def set(self, name: str, value: str) -> None:
        self.settings[name] = value


def test_it_is_put_back_also_after_an_error() -> None:
    session: Any = Session("7")
    with partitions(session, 3) as count:
        assert count == partitions_of(session) == processor_count(session) == 3
    assert partitions_of(session) == 7
    with pytest.raises(ZeroDivisionError), partitions(session):
        assert partitions_of(session) == 12
        raise ZeroDivisionError
    assert partitions_of(session) == 7
    unset: Any = Session()
    with partitions(unset, 3):
        pass
    assert partitions_of(unset) == 200


def test_processors_follow_the_session_unless_it_has_the_default() -> None:
    session: Any = Session("7")
    assert processor_count(session) == 7 and processor_count(session, 5) == 5
    default: Any = Session()
    assert processor_count(default) == 12 and processor_count(default, 5) == 5
    assert processor_count(default) == 12
    assert default.asked == 2, "until two answers agree, and then no more in this session"
    assert not default.settings, "to ask changes nothing"


@pytest.mark.parametrize(
    ("count", "processors", "said"),
    [("200", 2, "198 of the 200 tasks of every batch"), ("2", 4, "have to share 2 tasks")],
)
def test_a_number_that_does_not_fit_is_told(count: str, processors: int, said: str) -> None:
    session: Any = Session(count)
    with pytest.warns(UserWarning, match=said):
        warn_of_partitions(session, processors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_partitions(session, int(count))
