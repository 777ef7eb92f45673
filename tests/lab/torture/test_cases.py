"""Cases: drawn from a seed, named by a text, and smaller ones that are otherwise the same."""

from __future__ import annotations

from random import Random

import pytest

from plait.errors import PlaitError
from plait.testing.oracle.answer import split_late
from plait.tuning import USUAL
from plait_lab.torture.cases import ASPECTS, Case, drawn, smaller, split


def test_the_same_name_is_the_same_case() -> None:
    for seed in range(5):
        one, other = Case(seed, 200), Case.parse(f"{seed}:200")
        assert one.query == other.query
        assert one.tuning == other.tuning
        assert one.batches == other.batches


@pytest.mark.parametrize("text", ["", "7", "x:9", "7:0", "7:-1", "7:9:nonsense", "7:9:late,"])
def test_what_names_no_case_is_refused(text: str) -> None:
    with pytest.raises(PlaitError, match=r"names no case|leaves out"):
        Case.parse(text)


def test_a_case_with_everything_left_out_is_plain() -> None:
    case = Case(3, 500, frozenset(ASPECTS))
    assert case.tuning == USUAL
    assert not any(table.num_rows for table in split(case)[1].values()), "nothing is late"
    assert len(case.query.residuals) == 0


def test_leaving_something_out_changes_nothing_else() -> None:
    case, without = Case(11, 300), Case(11, 300, frozenset({"tuning", "crashes"}))
    assert without.query == case.query and without.batches == case.batches


def test_smaller_cases_end_somewhere() -> None:
    case, steps = drawn(Random(1), 1_000_000), 0
    while following := list(smaller(case)):
        case, steps = following[-1] if steps % 2 else following[0], steps + 1
        assert steps < 5000
        if case.rows > 50:
            case = Case(case.seed, 50, case.without)
    assert (case.rows, case.without) == (1, frozenset(ASPECTS))


@pytest.mark.parametrize("seed", range(12))
def test_oracle_what_is_late(seed: int) -> None:
    """Columns at a time, as for a million rows, and row by row, as the oracle does."""
    case = Case(seed, 400)
    kept, late = split(case)
    on_time, lates = split_late(case.query, case.batches)
    for name in case.query.names:
        assert kept[name].num_rows == len(on_time[name])
        assert late[name].num_rows == len(lates[name])
        assert late[name].column("n").to_pylist() == [row["n"] for row in lates[name]]


@pytest.mark.slow
def test_cases_have_something_of_everything() -> None:
    cases = [Case(seed, 2000) for seed in range(40)]
    assert {case.query.lateness for case in cases} == {"own", "least"}
    assert any(case.query.residuals for case in cases)
    assert sum(any(t.num_rows for t in split(case)[1].values()) for case in cases) > 5
    assert {len(case.query.streams) for case in cases} >= {2, 3, 4}
