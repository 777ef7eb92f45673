"""Functions of strings."""

from __future__ import annotations

from decimal import Decimal

import pyarrow as pa
import pytest

from plait.query.values import text
from plait.query.values.forms import Unfit


@pytest.mark.parametrize(
    ("start", "count", "expected"),
    [
        (1, None, "stream"), (2, None, "tream"), (0, None, "stream"), (-2, None, "am"),
        (1, 2, "st"), (0, 2, "st"), (-3, 2, "ea"), (-3, 9, "eam"), (-9, 5, "st"), (-9, 2, ""),
        (7, 1, ""), (3, 0, ""), (3, -1, ""), (2, 2**40, "tream"), (-(2**40), 3, ""),
        (2**40, None, ""),
    ],
)  # fmt: skip
def test_substring(start: int, count: int | None, expected: str) -> None:
    words = pa.array(["stream", None])
    many = None if count is None else pa.scalar(count)
    assert text.substring(words, pa.scalar(start), many).to_pylist() == [expected, None]
    each = None if count is None else pa.array([count, count])
    assert text.substring(words, pa.array([start, start]), each).to_pylist() == [expected, None]
    assert text.substring(pa.scalar("stream"), pa.array([start]), many).to_pylist() == [expected]


def test_characters_are_not_bytes() -> None:
    assert text.substring(pa.array(["añb"]), pa.scalar(2), pa.scalar(1)).to_pylist() == ["ñ"]
    assert text.length(pa.array(["ñ"])).to_pylist() == [1]
    assert text.length(pa.array(["ñ".encode()])).to_pylist() == [2]
    assert text.upper(pa.array(["ñß"])).to_pylist() == ["ÑSS"]


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("", [""], ["a"]),
        ("ab", ["ab"], ["abc", "AB"]),
        ("a%", ["a", "ab", "a\nb"], ["ba"]),
        ("%a", ["a", "ba"], ["ab"]),
        ("%a%", ["a", "bab"], ["b"]),
        ("%", ["", "x"], []),
        ("_", ["a", "ñ", "\n"], ["", "ab"]),
        ("a_c%e", ["abcde", "a.c\ne"], ["abde"]),
        (r"10\%", ["10%"], ["10x", "10"]),
        (r"a\_b_", ["a_bc"], ["axbc"]),
        (r"\\", ["\\"], ["\\\\"]),
        ("%%a", ["a", "xa"], ["ax"]),
        (".*", [".*"], ["ab"]),
        ("(_)", ["(x)"], ["x"]),
    ],
)
def test_like(pattern: str, yes: list[str], no: list[str]) -> None:
    found = text.like(pa.array([*yes, *no, None]), pa.scalar(pattern)).to_pylist()
    assert found == [True] * len(yes) + [False] * len(no) + [None]


def test_like_with_a_pattern_that_is_none() -> None:
    assert not text.like(pa.array(["a"]), pa.scalar(None)).is_valid
    with pytest.raises(Unfit, match="backslash"):
        text.like(pa.array(["a"]), pa.scalar("a\\"))
    with pytest.raises(Unfit, match="string literal"):
        text.like(pa.array(["a"]), pa.scalar(5))


def test_concat_writes_other_values_out() -> None:
    parts = [pa.array(["a", None]), pa.scalar(1), pa.array([Decimal("1.50")] * 2), pa.scalar(True)]
    assert text.concat(parts).to_pylist() == ["a11.50true", None]
    assert text.concat([pa.array([b"a"]), pa.scalar(b"b")]).to_pylist() == [b"ab"]
    assert text.concat([pa.array(["a"], pa.large_string()), pa.scalar("b")]).to_pylist() == ["ab"]
    assert text.concat([pa.array(["a"]), pa.scalar(None)]).to_pylist() == [None]
