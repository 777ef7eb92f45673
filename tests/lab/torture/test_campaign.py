"""Campaigns: they run, they notice what is wrong, they make it small, and they can be repeated."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from random import Random

import pyarrow as pa
import pytest

from plait.errors import PlaitError
from plait.local.host import LocalRun
from plait.testing.oracle.answer import Result, multiset
from plait_lab.laws import site_world
from plait_lab.laws.strategies import questions as drawn_questions
from plait_lab.torture import local, simulated, small
from plait_lab.torture.campaign import campaign, repeat, shrunk
from plait_lab.torture.cases import ASPECTS, Case
from plait_lab.torture.local import Wrong
from plait_lab.torture.tally import Tally

pytestmark = pytest.mark.slow


def ticking(step: float) -> Callable[[], float]:
    """A clock that goes on by a step each time somebody looks."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock


def silent(_: str) -> None:
    pass


@pytest.mark.parametrize("play", [local.play, simulated.play], ids=["local", "simulated"])
def test_cases_that_are_right_are_counted(play: Callable[[Case], Tally]) -> None:
    tally = play(Case(4, 300))
    assert tally.queries == 1
    assert tally.rows == sum(t.num_rows for b in Case(4, 300).batches for t in b.values())


@pytest.mark.slow
@pytest.mark.parametrize("host", ["local", "simulated"])
def test_a_short_campaign(host: str) -> None:
    said: list[str] = []
    tally, failure = campaign(host, 60.0, 20260101, said.append, 3000, ticking(4.0))
    assert failure is None
    assert tally.queries > 5 and tally.rows > 50
    assert said and "queries" in said[-1]


@pytest.fixture
def forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that loses the last result of each batch that has several."""
    push = LocalRun.push

    def lossy(self: LocalRun, batch: dict[str, pa.Table]) -> pa.Table:
        found = push(self, batch)
        return found.slice(0, found.num_rows - 1) if found.num_rows > 1 else found

    monkeypatch.setattr(LocalRun, "push", lossy)


def failing() -> Case:
    """A case with results, which a loss of one shows."""
    return next(case for s in range(100) if local.play(case := Case(s, 400)).results > 20)


def test_a_lost_result_is_noticed_and_made_small(request: pytest.FixtureRequest) -> None:
    case = failing()
    request.getfixturevalue("forgetful")
    with pytest.raises(Wrong, match="results are not") as wrong:
        local.play(case)
    failure = shrunk(local.play, case, wrong.value)
    found = Case.parse(failure.case)
    assert found.rows < case.rows and len(found.without) > len(ASPECTS) // 2
    assert "Wrong" in failure.text
    tally, again = repeat("local", failure.case)
    assert again is not None and "Wrong" in again.text and tally.queries == 0


def test_a_campaign_ends_with_its_first_failure(request: pytest.FixtureRequest) -> None:
    request.getfixturevalue("forgetful")
    _, failure = campaign("local", 1000.0, 3, silent, 2000, ticking(1.0))
    assert failure is not None


@pytest.mark.parametrize("kind", ["simulated-upgrades", "simulated-sites"])
def test_kinds_without_large_cases(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small, "EXAMPLES", 6)
    tally, failure = repeat(kind, "small:1")
    assert failure is None and tally.queries == 6
    assert tally.upgrades if kind == "simulated-upgrades" else tally.mail_faults
    with pytest.raises(PlaitError, match="names no case of"):
        repeat(kind, "7:100")


@pytest.mark.parametrize("kind", ["simulated-upgrades", "simulated-sites"])
def test_a_lost_result_is_noticed_there_too(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each multiset of results that has several, one is lost before it is compared."""

    def lossy(table: pa.Table) -> Counter[Result]:
        return multiset(table.slice(0, table.num_rows - 1) if table.num_rows > 1 else table)

    module = {"simulated-upgrades": drawn_questions, "simulated-sites": site_world}[kind]
    small.CHECKS[kind](site_world.tied(Random(1)), Random(2))
    monkeypatch.setattr(module, "multiset", lossy)
    with pytest.raises(AssertionError, match="results missing"):
        small.CHECKS[kind](site_world.tied(Random(1)), Random(2))


def test_sums_over_rounds() -> None:
    total = Tally(kills={"a": 1})
    total.add(Tally(queries=1, kills={"a": 2, "b": 1}))
    assert total.kills == {"a": 3, "b": 1}
    assert total.text() == "1 queries, 4 kills"
