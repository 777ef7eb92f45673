"""Patterns of Java: what is read, and what is refused by name."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest

from plait.query.values.forms import Unfit
from plait.query.values.regex import java_pattern, regexp_extract, regexp_replace, rlike


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        (r"\bword", r"\b"), (r"(a)\1", r"\1"), (r"\p{L}", r"\p"), ("a++", "+ after +"),
        ("[a[b]]", "[ within"), ("[a&&b]", "& within"), ("(?=a)", "(?=...)"), ("(?<n>a)", "(?<n"),
        ("a(?i)b", "(?i...)"), ("a{,3}", "{ after nothing"), ("*a", "* after nothing"),
        ("(a*)+", "may be empty"), ("^*", "nothing that can be repeated"), ("a{2000}", "1000"),
        ("(a", "'(' without"), ("a)", "')' without"), ("[a", "'[' without"), ("[]a]", "[]...]"),
        ("[z-a]", "range"), (r"[\d-z]", "range"), (r"\Qa\E", r"\Q"), ("(?i)ä", "beyond ASCII"),
        ("a\\", "\\"),
    ],
)  # fmt: skip
def test_what_java_reads_differently_is_refused(pattern: str, what: str) -> None:
    with pytest.raises(Unfit, match=re.escape(what)) as caught:
        java_pattern(pattern)
    assert "before the join" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "pattern", "expected"),
    [
        ("two\r\n", "two$", True), ("two\n\n", "two$", False), ("a\u2028", "a$", True),
        ("a\u0085b", "a.b", False), ("a\x0bb", r"a\sb", True), ("\u0661", r"\d", False),
        ("\u212a", "(?i)k", False), ("K", "(?i)k", True), ("a-b", r"[\w-]{3}", True),
        ("]", "]", True), ("a", r"\A\x", None), ("x\n", r"x\z", False),
    ],
)  # fmt: skip
def test_lines_and_classes_are_those_of_java(
    text: str, pattern: str, expected: bool | None
) -> None:
    if expected is None:
        with pytest.raises(Unfit):
            rlike(pa.array([text]), pa.scalar(pattern))
        return
    alone = rlike(pa.array([text]), pa.scalar(pattern)).to_pylist()
    mixed = rlike(pa.array([text, "\n", "ü", None]), pa.scalar(pattern)).to_pylist()
    assert alone == [expected]
    assert mixed[0] is expected
    assert mixed[-1] is None


def test_groups() -> None:
    text = pa.array(["ab12"])
    with pytest.raises(Unfit, match="groups 0 to 1"):
        regexp_extract(text, pa.scalar("(a)"), pa.scalar(2))
    with pytest.raises(Unfit, match="repeated group"):
        regexp_extract(text, pa.scalar("(?:(a)|b)+"), pa.scalar(1))
    with pytest.raises(Unfit, match="may match nothing"):
        regexp_replace(text, pa.scalar("x*"), pa.scalar("-"))
    with pytest.raises(Unfit, match="no group 2"):
        regexp_replace(text, pa.scalar("(a)"), pa.scalar("$2"))
    with pytest.raises(Unfit, match=r"\$ alone"):
        regexp_replace(text, pa.scalar("a"), pa.scalar("cost $"))
    found = regexp_replace(text, pa.scalar(r"([a-z])(\d)"), pa.scalar(r"\$$2$10"))
    assert found.to_pylist() == ["a$1b02"]
