"""The difference of two queries names what differs, and nothing else."""

from __future__ import annotations

from dataclasses import replace

from plait.query.compare import difference
from plait.testing.examples import chain, clique, keyed, trades_quotes_news


def test_equal_queries_do_not_differ() -> None:
    assert difference(chain(3), chain(3)) == ""


def test_another_predicate_is_named() -> None:
    found = difference(keyed("xy", "xy"), keyed("xy", "x"))
    assert "equalities a.y = b.y instead of none" in found
    assert "a.x = b.x" not in found, "what both have is not a difference"


def test_a_stream_too_many_is_named_with_its_predicate() -> None:
    found = difference(clique(3), clique(2))
    assert "streams c(ts timestamp[us], k int64) by ts" in found
    assert "equalities b.k = c.k instead of none" in found
    assert "a(" not in found, "what both have is not a difference"


def test_a_condition_that_is_missing_is_named() -> None:
    less = replace(trades_quotes_news, residuals=trades_quotes_news.residuals[1:])
    (gone,) = trades_quotes_news.residuals[:1]
    assert difference(less, trades_quotes_news) == f"conditions none instead of {gone}"
