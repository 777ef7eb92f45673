"""The contract of a tactic is enough to run one: whoever calls it in that order gets the answer.

`test_checked.py` has, for each clause, a tactic that breaks it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.states import Tuples
from plait.engine.tactic import Tactic
from plait.engine.tactics.make import make_tactic
from plait.engine.tactics.parallel_track import ParallelTrack
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.plan.jtree import mjoin, parse_shape
from plait.plan.routed import Eddies, Plan, Teddies
from plait.testing.examples import clique
from plait.tuning import Tuning

pytestmark = pytest.mark.slow

QUERY = clique(3)
SECOND = 1_000_000
TREE, OTHER = (parse_shape(QUERY, shape) for shape in ("((a b) c)", "(a (b c))"))
PLANS: dict[str, Plan] = {
    "mjoin": mjoin(QUERY),
    "tree": TREE,
    "eddies": Eddies(intake=7),
    "patient teddies": Teddies(patience=3, counter_limit=1000),
}
TUNING = Tuning(slice_rows=4, slices_per_window=50)
Times = Counter[tuple[int, ...]]


def batch(number: int) -> pa.RecordBatch:
    """Rows with three keys, over two seconds of the ten that a window is."""
    times = np.arange(12) * SECOND // 6 + 2 * number * SECOND
    columns = [pa.array(times).cast(pa.timestamp("us")), pa.array(np.arange(12) % 3)]
    return pa.RecordBatch.from_arrays(columns, names=["ts", "k"])


class Caller:
    """What the contract says of a driver, and nothing else."""

    def __init__(self, tactic: Tactic, windows: Windows, found: Times | None = None) -> None:
        self.tactic, self.windows, self.found = tactic, windows, found or Times()

    def push(self, number: int) -> None:
        windows, rows = self.windows, batch(number)
        arrivals = {s: windows.admit(s, rows, BEFORE_ALL_TIMES).arrivals for s in range(3)}
        watermark = 2 * (number + 1) * SECOND
        for reached, part in self.tactic.cut(arrivals):
            for stream in sorted(part):
                positions = windows.bases[stream].append(arrivals[stream], *part[stream])
                self.note(self.tactic.probe(stream, positions))
            self.expire(min(watermark, reached))
        self.note(self.tactic.close_batch())
        self.expire(watermark)

    def expire(self, watermark: int) -> None:
        self.tactic.expire([watermark] * 3)
        dropped = 0
        for stream, cutoff in enumerate(self.tactic.cutoffs([watermark] * 3)):
            rows = self.windows.bases[stream].drop_before(cutoff)
            if rows:
                self.tactic.dropped(stream, rows)
                dropped += rows
        following = self.tactic.successor() if dropped else None
        if following is not None:
            self.note(self.tactic.finish())
            self.tactic = following

    def note(self, found: Iterable[Tuples]) -> None:
        for tuples in found:
            times = [self.windows.bases[s].window.latest[tuples[s]].tolist() for s in range(3)]
            self.found.update(zip(*times, strict=True))


def wanted(batches: int) -> Times:
    """The definition: rows of one key, no two of which are more than ten seconds apart."""
    rows = [(int(t), n % 3) for b in range(batches) for n, t in enumerate(_times(b))]
    return Times(
        (a, b, c)
        for a, k in rows
        for b, m in rows
        if k == m and abs(a - b) <= 10 * SECOND
        for c, n in rows
        if k == n and max(abs(a - c), abs(b - c)) <= 10 * SECOND
    )


def _times(number: int) -> Iterator[int]:
    return iter((np.arange(12) * SECOND // 6 + 2 * number * SECOND).tolist())


@pytest.mark.parametrize("which", PLANS)
def test_oracle_every_tactic_finds_the_answer_by_the_contract_alone(which: str) -> None:
    windows = Windows(QUERY, {}, tuning=TUNING)
    caller = Caller(make_tactic(windows, PLANS[which], None), windows)
    for number in range(9):
        caller.push(number)
    caller.note(caller.tactic.finish())
    assert not caller.tactic.waiting
    assert caller.found == wanted(9)


def test_oracle_a_track_gives_way_to_its_successor() -> None:
    windows = Windows(QUERY, {}, tuning=TUNING)
    tree = TreeTactic(windows, TREE)
    caller = Caller(tree, windows)
    for number in range(3):
        caller.push(number)
    track: Tactic = ParallelTrack(tree, OTHER)
    assert track.migration is not None
    caller = Caller(track, windows, caller.found)
    for number in range(3, 12):
        caller.push(number)
    assert isinstance(caller.tactic, TreeTactic) and caller.tactic.plan == OTHER
    assert caller.tactic.migration is None
    assert caller.found == wanted(12)


@pytest.mark.parametrize("which", PLANS)
def test_asking_for_cutoffs_changes_nothing(which: str) -> None:
    windows = Windows(QUERY, {}, tuning=TUNING)
    caller = Caller(make_tactic(windows, PLANS[which], None), windows)
    for number in range(9):
        caller.push(number)
        far = [10**12] * 3
        assert caller.tactic.cutoffs(far) == caller.tactic.cutoffs(far)
    caller.note(caller.tactic.finish())
    assert caller.found == wanted(9)
