"""Positions in the text of a query."""

from __future__ import annotations

import pytest

from plait.errors import QueryError, UnknownColumn, UnsupportedSql
from plait.query.sql.source import SqlText


def test_positions_count_lines_and_columns_from_one() -> None:
    source = SqlText("a\nbc\n\nd")
    assert [source.position(i) for i in (0, 1, 2, 3, 5, 6)] == [
        (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (4, 1),
    ]  # fmt: skip


def test_positions_do_not_count_what_was_put_before_the_text() -> None:
    source = SqlText("x +\n  y", lead="SELECT ")
    (select,) = source.parse()
    last = select.expressions[0].args["expression"]
    assert source.position(source.offset(last)) == (2, 3)


def test_an_error_is_placed_once_and_keeps_its_type() -> None:
    source = SqlText("one\ntwo")
    with pytest.raises(UnknownColumn) as caught, source.placing(0), source.placing(4):
        raise UnknownColumn("no column 'two'", remedy="there are none")
    assert str(caught.value) == "line 2, column 1: no column 'two'; there are none"
    with pytest.raises(UnsupportedSql, match="line 2, column 1: X is not supported"):
        source.refuse("X", 4)
    with pytest.raises(QueryError), source.placing(0):
        source.refuse("Y", 4)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 'x", "line 1, column 5: syntax error: a ' without its end; close it"),
        ("a =\n `x", "line 2, column 2: syntax error: a ` without its end"),
        ("a /* x", "syntax error: this text does not end"),
    ],
)
def test_texts_that_do_not_end(text: str, message: str) -> None:
    with pytest.raises(UnsupportedSql) as caught:
        SqlText(text)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(a = b", "line 1, column 6: syntax error near 'b': Expecting )"),
        ("a = b c d", "line 1, column 9: syntax error near 'd'"),
        ("a =\n\n  = b", "line 3, column 3: syntax error near '='"),
    ],
)
def test_syntax_errors_have_a_place(text: str, message: str) -> None:
    with pytest.raises(UnsupportedSql) as caught:
        SqlText(text).parse()
    assert message in str(caught.value)
    assert "the text is not SQL as Spark reads it" in str(caught.value)
