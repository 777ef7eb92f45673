"""Single tuples on compiled ways: the same answers as packets of one, at every size."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plait.engine.tactics.eddy import EddyTactic
from plait.engine.tactics.policies import Lottery, Random
from plait.local.host import LocalRun
from plait.plan.routed import POLICIES, Eddies
from plait.query.expr import Call, Column
from plait.query.query import make_query
from plait.tuning import Tuning
from plait_lab.bench import registry
from plait_lab.experiments.teddies.figures import three_way
from plait_lab.workloads.keyed import keyed_query, keyed_tables

ROWS, KEYS = 60, 7
CLIQUE = [["k", "x"]] * 3
"""All three streams share two keys, so that composite indexes are looked up and verified."""


def answers(
    shape: list[list[str]], plan: Eddies, *, compiled: bool, tuning: Tuning, batches: int = 3
) -> tuple[Counter[str], EddyTactic]:
    query = keyed_query(shape, 20_000_000)
    tables = keyed_tables(query, ROWS, KEYS, seed=3)
    run = LocalRun(query, plan, tuning=tuning)
    router = run.engine.tactic
    assert isinstance(router, EddyTactic)
    router.compiled = compiled
    found: Counter[str] = Counter()
    for b in range(batches):
        start, stop = (ROWS * x // batches for x in (b, b + 1))
        part = {name: table.slice(start, stop - start) for name, table in tables.items()}
        found.update(map(str, run.push(part).to_pylist()))
    return found, router


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(([["a"], ["a", "b"], ["b"]], CLIQUE, [["k"]] * 2)),
    st.sampled_from(POLICIES),
    st.sampled_from((1, 2, 64)),
    st.sampled_from((1, 2, 5, 1024)),
    st.sampled_from((1, 3, 64)),
)
def test_differential_packets_of_one(
    shape: list[list[str]], policy: str, intake: int, queue: int, portion: int
) -> None:
    tuning = Tuning(eddy_queue=queue, portion_rows=portion, ring_rows=1, buckets=2)
    plan = Eddies(policy=policy, intake=intake)
    fast, router = answers(shape, plan, compiled=True, tuning=tuning)
    slow, other = answers(shape, plan, compiled=False, tuning=tuning)
    assert fast == slow and fast
    (counted,), (expected,) = router.counters, other.counters
    assert counted.outputs == expected.outputs == fast.total()
    assert sum(v.counters.probes for v in router.visits()) == router.decisions
    if len(shape) == 2:  # one way only: whatever is drawn, all counters are the same
        assert counted.to_state() == expected.to_state()
        assert router.decisions == other.decisions
        assert router.longest_queue == other.longest_queue
    assert not router.waiting


def test_a_lottery_learns_on_compiled_ways() -> None:
    _, router = answers([["k"]] * 2, Eddies(policy="lottery"), compiled=True, tuning=Tuning())
    _, other = answers([["k"]] * 2, Eddies(policy="lottery"), compiled=False, tuning=Tuning())
    assert isinstance(router.policy, Lottery) and isinstance(other.policy, Lottery)
    for target in (0, 1):
        assert router.policy.tickets(target) == pytest.approx(other.policy.tickets(target))
    saved = router.to_state()["policy"]
    assert dict(saved["balance"]).keys() == {0, 1}


@pytest.mark.slow
def test_draws_follow_from_the_seed() -> None:
    def decisions(seed: int) -> list[int]:
        plan = Eddies(policy="random", seed=seed)
        _, router = answers([["a"], ["a", "b"], ["b"]], plan, compiled=True, tuning=Tuning())
        assert isinstance(router.policy, Random)
        return [v.counters.probes for v in router.visits()]

    assert decisions(1) == decisions(1)
    assert len({tuple(decisions(seed)) for seed in range(6)}) > 1


def test_both_ready_streams_are_drawn() -> None:
    plan = Eddies(policy="random")
    _, router = answers([["a"], ["a", "b"], ["b"]], plan, compiled=True, tuning=Tuning())
    middle = {
        v.target: v.counters.probes for v in router.visits() if v.after.done in (0b011, 0b110)
    }
    assert min(middle.values()) > 0


def test_conditions_over_two_streams_are_left_to_packets() -> None:
    plain = three_way(1_000)
    less = Call("lt", (Column("R", "a"), Column("T", "b")))
    own = Call("lt", (Column("R", "a"), Column("R", "a")))
    keys = [Call("eq", (Column("R", "a"), Column("S", "a"))),
            Call("eq", (Column("S", "b"), Column("T", "b")))]  # fmt: skip
    from plait.query.bounds import global_window

    for condition, compiled in ((less, False), (own, True)):
        query = make_query(plain.streams, [*keys, condition], global_window(3, 9), plain.select)
        router = LocalRun(query, Eddies()).engine.tactic
        assert isinstance(router, EddyTactic)
        assert router.compiled is compiled


@pytest.mark.slow
def test_the_benchmark_compares_the_same_tuples() -> None:
    report = registry.run("eddies-decision", {"rows": "300", "keys": "100", "repeats": "2"})
    claims = {c.id: c.holds for c in report.claims}
    assert all(claims[f"{policy}-results"] for policy in POLICIES)
    for policy in ("lottery", "random"):
        assert report.ratios[f"{policy}: packets of one / compiled"]["median"] > 5
