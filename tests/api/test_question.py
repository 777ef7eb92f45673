"""What users touch: budgets that are planned for, and held to at run time."""

from __future__ import annotations

import pyarrow as pa
import pytest

import plait
from plait.api.join import Join
from plait.errors import BudgetError, MemoryExceeded, NoQualifiedPlan, PlanError, PolicyError

ROWS = 3_000
KNOWN = {
    "rates": {"a": 10, "b": 10, "c": 10},
    "selectivities": {"a.k = b.k": 0.01, "b.j = c.j": 0.01},
}
"""Wrong by a factor of 100: the rows come at 1,000 per second."""


def _table(*keys: str) -> pa.Table:
    stamps = pa.array([i * 1_000 for i in range(ROWS)]).cast(pa.timestamp("us"))
    return pa.table({"ts": stamps} | {k: [i % 50 for i in range(ROWS)] for k in keys})


@pytest.fixture
def question() -> Join:
    return (
        plait.join(a=_table("k"), b=_table("k", "j"), c=_table("j"))
        .on("a.k = b.k")
        .on("b.j = c.j")
        .within("300 milliseconds")
        .select("a.k", "c.j")
        .statistics(KNOWN)
    )


def test_a_plan_that_outgrows_its_memory_ends_cleanly(question: Join) -> None:
    with pytest.raises(MemoryExceeded, match=r"more than its memory limit of 20000"):
        question.budget(memory="20 kB").adapt(False).run(batch_seconds=0.05)


def test_a_query_that_adapts_may_exceed_its_memory_for_a_moment(question: Join) -> None:
    with pytest.raises(MemoryExceeded, match=r"more than its memory limit of 21000"):
        question.budget(memory="20 kB").run(batch_seconds=0.05)


def test_a_budget_may_be_for_planning_only(question: Join) -> None:
    free = question.run()
    planned = question.budget(memory="20 kB", enforce=False).run()
    assert planned.table.num_rows == free.table.num_rows > 0


def test_enough_memory_changes_nothing(question: Join) -> None:
    found = question.budget(memory="20 MB").run()
    assert found.table.num_rows == question.run().table.num_rows
    assert found.peak_state_bytes <= 20_000_000


def test_a_limit_of_the_run_goes_before_the_budget(question: Join) -> None:
    assert question.budget(memory="20 kB").run(memory_limit=10**8).table.num_rows


def test_cpu_alone_is_not_enforced(question: Join) -> None:
    assert question.budget(cpu=0.9).run().table.num_rows


def test_routers_have_no_memory_limit(question: Join) -> None:
    routed = question.engine("teddies")
    with pytest.raises(PlanError, match=r"teddies .* cannot run within a memory limit"):
        routed.budget(memory="20 MB").run()
    assert routed.budget(memory="20 MB", enforce=False).run().table.num_rows


def test_an_impossible_budget_names_the_limit_the_excess_and_the_nearest_plan(
    question: Join,
) -> None:
    with pytest.raises(
        NoQualifiedPlan,
        match=r"no plan fits any CPU, 100 B: the nearest, \(a b c\), needs .* of memory, "
        r".* times the limit of 100 B",
    ):
        question.budget(memory=100).run()


@pytest.mark.parametrize("amount", ["two GB", "-1 MB", 0, float("nan"), True])
def test_what_is_no_amount_of_memory_is_refused(question: Join, amount: str | float) -> None:
    with pytest.raises(BudgetError, match="memory"):
        question.budget(memory=amount)


def test_what_is_no_policy_is_refused(question: Join) -> None:
    with pytest.raises(
        PolicyError, match=r"a str is no policy; give True, False or a plait\.PlanPolicy"
    ):
        question.adapt("always")  # type: ignore[arg-type]  # the mistake that is tested
