"""Plain data that is not as it must be is refused with its place and in its own words."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from plait.errors import PlanError, QueryError
from plait.query.reading import Reader, shown

READ = Reader(QueryError)


def test_what_is_right_is_returned() -> None:
    READ.version({"version": 2}, 2, "plan")
    assert READ.fields({"a": 1, "b": 2}, "$", ("a", "b")) == {"a": 1, "b": 2}
    assert READ.items([5, "x"], "$.a") == [(5, "$.a[0]"), ("x", "$.a[1]")]
    assert READ.text("", "$") == ""
    assert READ.whole(-(10**30), "$") == -(10**30)


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: READ.version({"version": 3}, 2, "plan"), r"\$.version is 3; .* version 2; write"),
        (lambda: READ.version({"version": True}, 1, "plan"), r"\$.version is true"),
        (lambda: READ.fields({"a": 1}, "$.x", ("a", "b")), r"\$.x lacks the field 'b'"),
        (lambda: READ.fields({"a": 1, "bb": 2}, "$", ("a",)), r"\$ has an unknown field 'bb'"),
        (lambda: READ.mapping([], "$.x"), r"\$.x is \[\], not an object"),
        (lambda: READ.items("ab", "$.x"), r'\$.x is "ab", not a list'),
        (lambda: READ.text(5, "$.x", "a name"), r"\$.x is 5, not a name"),
        (lambda: READ.whole(1.0, "$.x"), r"\$.x is 1.0, not a whole number"),
        (lambda: READ.whole(False, "$.x"), r"\$.x is false"),
    ],
)
def test_what_is_wrong_is_named(read: Callable[[], object], message: str) -> None:
    with pytest.raises(QueryError, match=message):
        read()


def test_the_error_is_the_one_asked_for() -> None:
    with pytest.raises(PlanError):
        Reader(PlanError).text(None, "$")


def test_long_values_are_shortened() -> None:
    assert shown("x" * 100) == '"' + "x" * 36 + "..."
    assert shown({1}) == '"{1}"'


@pytest.mark.slow
def test_what_cannot_be_written_is_still_refused() -> None:
    deep: object = 1
    for _ in range(100_000):
        deep = [deep]
    for value in (deep, {(1, 2): 3}):
        with pytest.raises(QueryError, match=r"^\$ is a (list|dict) that cannot be shown, not a "):
            Reader(QueryError).whole(value, "$")
    with pytest.raises(QueryError, match=r"\$\.n is 9223372036854775808, not a whole number of 64"):
        Reader(QueryError).whole64(2**63, "$.n")
    for wrong in (True, None, "1", -1, float("nan"), 10**400):
        with pytest.raises(QueryError, match="not a number >= 0"):
            Reader(QueryError).number(wrong, "$")
    assert Reader(QueryError).number(2, "$") == 2.0
    with pytest.raises(QueryError, match="is 9007199254740993, more digits than a double has"):
        Reader(QueryError).number(2**53 + 1, "$")
