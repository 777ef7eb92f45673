"""The loop as plain data: what it writes it reads, and also what earlier versions wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.adapt.conftest import POLICY, QUERY, batches

from plait.adapt.guard import Trial
from plait.adapt.knowledge import Leap, MatchRate
from plait.adapt.setting import Setting
from plait.adapt.state import Loop
from plait.node.adapting import Adapting
from plait.optimize.budget import Budget
from plait.optimize.costs import DEFAULT
from plait.plan.jtree import parse_shape
from plait_lab.laws.processors import Cluster

SETTING = Setting(QUERY, POLICY, Budget(), DEFAULT)
GOLDEN = Path(__file__).parents[1] / "golden" / "adapt" / "loop_version_1.json"
"""The flat mapping of version 1, written by it in the middle of a trial."""


def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text())
    return found


def test_what_version_1_wrote_is_read() -> None:
    flat, loop = golden(), Loop.from_dict(golden(), SETTING)
    course, spent, comparison, price = loop.course, loop.spent, loop.comparison, loop.price
    assert (course.batches, course.migrated, course.tracked) == (17, 14.999997, False)
    assert (course.began, course.following) == (flat["began"], "((s0 s1) s2)")
    assert (spent.joining, spent.comparing) == (flat["joining"], flat["comparing"])
    assert (spent.sampling, spent.last) == (flat["sampling"], flat["step"])
    assert comparison.estimates == flat["reference"] and comparison.batch == 17
    assert (comparison.usual, comparison.excess) == (flat["usual"], flat["excess"])
    assert (price.value, price.measured, price.overhead) == (20.0, True, flat["overhead"])
    assert loop.bans.until == flat["banned"] and loop.bans.failures == flat["failures"]
    assert loop.pursuit.learn == () and loop.look is None and loop.asked is None
    assert loop.trial is not None and loop.trial.batches == 2
    assert loop.trial.new == parse_shape(QUERY, "((s0 s1) s2)")
    known = loop.knowledge
    assert (known.time, known.rows) == (16_999_731, tuple(flat["knowledge"]["rows"]))
    pairs, matches, rows, time, leap, sampled = flat["knowledge"]["agreements"][2][2:]
    assert known.agreements[1, 2] == MatchRate(pairs, matches, rows, time, Leap(*leap), sampled)


def test_what_it_writes_it_reads() -> None:
    loop = Loop.from_dict(golden(), SETTING)
    written = json.loads(json.dumps(loop.to_dict()))
    assert written["version"] == 2
    assert Loop.from_dict(written, SETTING) == loop
    assert json.loads(json.dumps(Loop.from_dict(written, SETTING).to_dict())) == written


def test_what_came_before_version_1_is_read() -> None:
    state = golden()
    for name in ("began", "priced", "tracked", "compared", "usual", "excess", "step"):
        del state[name]
    for name in ("window", "waiting"):
        del state["knowledge"][name]
    state["knowledge"]["agreements"] = [a[:-1] for a in state["knowledge"]["agreements"]]
    old, new = (parse_shape(QUERY, s) for s in ("(s0 (s1 s2))", "((s0 s1) s2)"))
    trial = Trial(old, new, 0.0, 0.5, 1.0)
    written = trial.to_dict()
    del written["joint"]
    loop = Loop.from_dict(state | {"trial": written}, SETTING)
    assert loop.course.batches == 17 and loop.knowledge.window == 4.0
    assert loop.trial == trial and loop.knowledge.agreements[1, 2].sampled == -1
    assert (loop.comparison.batch, loop.price.measured) == (-1, False)


@pytest.mark.parametrize("version", [3, 99])
def test_what_a_later_version_wrote_is_forgotten(version: int) -> None:
    later = {"version": version, "thoughts": "deep"}
    assert Loop.from_dict(later, SETTING) == Loop.of(SETTING)


@pytest.mark.slow
def test_a_loop_goes_on_from_version_1() -> None:
    """The plan under trial is judged by what it took before and after the update."""
    adapting = Adapting(SETTING, cpu=float, state=golden())
    assert adapting.loop.trial is not None
    cluster = Cluster(QUERY, parse_shape(QUERY, "((s0 s1) s2)"), 1, adapt=POLICY)
    told = batches(24, lambda _: "k")
    for batch in told[:18]:
        cluster.run(batch)
    (store,) = cluster.stores
    assert store.header is not None
    header = json.loads(store.header)
    assert header["adapt"]["version"] == 2
    store.header = json.dumps(header | {"adapt": golden()})
    kinds = set()
    for batch in told[18:]:
        cluster.run(batch)
        kinds |= {event.kind for event in cluster.reports[0].events}
    assert "judged" in kinds and "started" not in kinds
