"""The contract of tactics: for each clause, a tactic that breaks it and is caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pytest

from plait.engine.driver import Engine
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.intake.times import BEFORE_ALL_TIMES
from plait.engine.states import Tuples
from plait.engine.tactics.tree import TreeTactic
from plait.engine.windows import Windows
from plait.kernels.jit import Positions
from plait.plan.jtree import parse_shape
from plait.testing.examples import clique
from plait.tuning import Tuning
from plait_lab.engine.checked import Checked, ContractBroken

QUERY = clique(3)
SHAPE = "((a b) c)"
SECOND = 1_000_000


class Loses(TreeTactic):
    """Clause 1: the last row of a batch."""

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        (reached, part), *rest = super().cut(arrivals)
        stream, (start, stop) = part.popitem()
        return [(reached, part | {stream: (start, stop - 1)}), *rest]


class Repeats(TreeTactic):
    """Clause 1: rows that were in an earlier slice."""

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        slices = super().cut(arrivals)
        return [*slices, *slices]


class Promises(TreeTactic):
    """Clause 1: a time that later rows are before."""

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        slices = super().cut(arrivals)
        assert len(slices) > 1
        return [(10**12, part) for _, part in slices]


class Incomplete(TreeTactic):
    """Clause 2: a combination without one of the streams."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        for found in super().probe(stream, positions):
            yield {s: p for s, p in found.items() if s}


class Uneven(TreeTactic):
    """Clause 2: columns of different lengths."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        for found in super().probe(stream, positions):
            yield found | {0: found[0][:-1]}


class Empty(TreeTactic):
    """Clause 2: no combination at all."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        list(super().probe(stream, positions))
        yield {s: np.empty(0, np.int32) for s in range(3)}


class Invents(TreeTactic):
    """Clause 2: a position at which there is no row."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        for found in super().probe(stream, positions):
            yield found | {0: np.full_like(found[0], len(self.windows.bases[0]))}


class Twice(TreeTactic):
    """Clause 3: everything again."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        for found in super().probe(stream, positions):
            yield found
            yield found


class Secretive(TreeTactic):
    """Clause 4: results are held back, and nobody is told."""

    def __init__(self, windows: Windows) -> None:
        super().__init__(windows, parse_shape(QUERY, SHAPE))
        self.held: list[Tuples] = []

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        self.held += super().probe(stream, positions)
        yield from ()

    def close_batch(self) -> Iterator[Tuples]:
        yield from self.held


class Stale(Secretive):
    """Clause 4: what was found before comes out in a later probe."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        yield from self.held
        self.held = list(super(Secretive, self).probe(stream, positions))


class Endless(TreeTactic):
    """Clause 4: something waits after the end."""

    waiting = True


class Thief(TreeTactic):
    """Clause 5: rows are dropped from a base window."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        yield from super().probe(stream, positions)
        self.windows.bases[stream].drop_before(SECOND // 2)


class Builder(TreeTactic):
    """Clause 5: an index goes while the tactic is at work."""

    def expire(self, watermarks: Sequence[int]) -> None:
        super().expire(watermarks)
        self.windows.index_only_by({0: ()})


class Hasty(TreeTactic):
    """Clause 6: rows are given up that something to come can join."""

    def cutoffs(self, watermarks: Sequence[int]) -> list[int]:
        return [cutoff + 1 for cutoff in super().cutoffs(watermarks)]


class Hoarder(TreeTactic):
    """Clause 7: combinations stay for ever."""

    def expire(self, watermarks: Sequence[int]) -> None:
        pass


def tree(kind: type[TreeTactic]) -> Callable[[Windows], TreeTactic]:
    return lambda windows: kind(windows, parse_shape(QUERY, SHAPE))


BROKEN = {
    "slices: (rows are missing|row 3)": tree(Loses),
    "slices: row 0": tree(Repeats),
    "slices: a row of .* is late": tree(Promises),
    "complete: streams": tree(Incomplete),
    "complete: uneven": tree(Uneven),
    "complete: nothing": tree(Empty),
    "complete: a tuple that is not there": tree(Invents),
    "once: .* combinations of a batch were found before": tree(Twice),
    "waiting: results, though nothing waits": Secretive,
    "waiting: a result without a new tuple": Stale,
    "waiting: tuples wait after the end": tree(Endless),
    "windows: a base window has changed": tree(Thief),
    "windows: a base window has .*changed": tree(Builder),
    "cutoffs: ": tree(Hasty),
    "expiry: .* combinations of": tree(Hoarder),
}


def batch(number: int) -> pa.RecordBatch:
    """Rows with two keys, over two seconds of the ten that a window is."""
    times = np.arange(20) * SECOND // 10 + 2 * number * SECOND
    columns = [pa.array(times).cast(pa.timestamp("us")), pa.array(np.arange(20) % 2)]
    return pa.RecordBatch.from_arrays(columns, names=["ts", "k"])


def drive(tactic: Callable[[Windows], TreeTactic], *, checked: bool) -> int:
    """Run some windows' worth of rows; how many results there were."""

    class Driver(Engine):
        supervise = Checked if checked else None

    engine = Driver(
        QUERY,
        parse_shape(QUERY, SHAPE),
        tuning=Tuning(slice_rows=1, slices_per_window=50),
    )
    engine.adopt(tactic(engine.windows))
    found = 0
    for number in range(15):
        rows = batch(number)
        arrivals = {s: engine.admit(s, rows, BEFORE_ALL_TIMES).arrivals for s in range(3)}
        reached = [2 * number * SECOND] * 3
        found += sum(len(results) for results in engine.push(arrivals, reached))
    return found + sum(len(results) for results in engine.finish())


@pytest.mark.slow
@pytest.mark.parametrize("clause", BROKEN)
def test_what_breaks_a_clause_is_caught(clause: str) -> None:
    with pytest.raises(ContractBroken, match=clause):
        drive(BROKEN[clause], checked=True)


@pytest.mark.slow
def test_what_keeps_the_contract_runs_as_without_checks() -> None:
    assert drive(tree(TreeTactic), checked=True) == drive(tree(TreeTactic), checked=False) > 0


@pytest.mark.slow
def test_unchecked_the_driver_calls_the_tactic_itself() -> None:
    """So checking costs nothing where it is not asked for: what is broken goes unnoticed."""
    assert drive(tree(Twice), checked=False) == 2 * drive(tree(TreeTactic), checked=False)


def test_tests_are_checked_unless_they_say_otherwise() -> None:
    engine = Engine(QUERY, parse_shape(QUERY, SHAPE))
    engine.adopt(tree(Loses)(engine.windows))
    arrivals = {0: engine.admit(0, batch(0), BEFORE_ALL_TIMES).arrivals}
    with pytest.raises(ContractBroken, match="slices"):
        list(engine.push(arrivals, [0] * 3))
