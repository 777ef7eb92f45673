"""What a user needs to compare a query with the definition: in one process, and batch by batch."""

from __future__ import annotations

import pyarrow as pa
import pytest

import plait
from plait.errors import SourceError

SECOND = 1_000_000


def rows(*pairs: tuple[int | None, int | None]) -> pa.Table:
    return pa.table(
        {
            "k": pa.array([key for key, _ in pairs], pa.int64()),
            "ts": pa.array([t and t * SECOND for _, t in pairs], pa.timestamp("us")),
        }
    )


A, B = rows((1, 0), (1, 1), (2, 9)), rows((1, 1), (2, 9), (2, 9), (3, 0))
JOIN = (
    plait.join(a=A, b=B)
    .on("k")
    .within("5 seconds")
    .watermark("2 seconds")
    .select("a.k", "b.ts AS at")
)


@pytest.mark.parametrize("plan", ["mjoin", "(a b)", "teddies"])
def test_oracle_a_run_is_what_the_definition_says(plan: str) -> None:
    found = plait.testing.actual(JOIN.run(plan=plan, batch_rows=2))
    assert found == plait.testing.expected(JOIN) and found.total() == 4


def test_sql_and_queries_are_questions_too() -> None:
    text = "SELECT a.k, b.ts AS at FROM a JOIN b ON a.k = b.k WITHIN 5 SECONDS"
    sql = plait.sql({"a": A, "b": B}, text)
    assert plait.testing.expected(sql) == plait.testing.expected(JOIN)
    assert plait.testing.expected(JOIN.query, {"a": A, "b": B}) == plait.testing.expected(JOIN)


def test_rows_that_are_late_in_their_batch_are_set_aside() -> None:
    batches = [{"a": A.slice(2), "b": B}, {"a": A.slice(0, 2).to_pylist()}, {}]
    late = plait.testing.set_aside(JOIN, *batches)["a"]["late"]
    assert len(late) == 2
    assert plait.testing.expected(JOIN, *batches).total() == 2


def test_what_holds_no_rows_is_refused() -> None:
    schema = A.schema
    asked = plait.join(a=schema, b=schema).on("k").within("5 seconds")
    with pytest.raises(SourceError, match="rows of stream 'a' are not in memory"):
        plait.testing.expected(asked)
    with pytest.raises(SourceError, match="rows of stream 'a' are not in memory"):
        plait.testing.expected(asked.query)
    with pytest.raises(SourceError, match="a list holds no results"):
        plait.testing.actual([(1, 2)])


def test_all_public_names_are_there() -> None:
    assert [name for name in plait.testing.__all__ if not hasattr(plait.testing, name)] == []
