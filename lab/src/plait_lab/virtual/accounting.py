"""What a running plan's work costs: by its own hash joins, or as if it joined by nested loops.

*Hash*: the operations that the engine counted, at the prices of the cost model. The prices of a
batch (`call`, `upkeep`) are left out: how virtual time is cut is not the engine's doing.

*Nested loops*, the joins of the CAPE paper: every probe is compared with every row of the state
that it probes, at `match` (T_j) a pair; each tuple that enters a state or leaves it costs `insert`
or `delete` (T_s). The pairs are the probes of a slice times the rows of the state, averaged over
the beginning and the end of the slice; nothing is looped over. Results are the same: only the
price changes. It is exact up to the order within a slice, so slices should be short beside the
window.

*Parallel track*: old and new boxes are charged. They share the states below them in memory, but by
nested loops each box is charged for its own, as in the paper, and the new box's hold only what is
new.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, get_args

from plait.engine.driver import Engine
from plait.engine.tactics.operators import Operator
from plait.errors import PlaitError, did_you_mean
from plait.node.operation_counts import Inputs, counted, inputs_of
from plait.optimize.costs import Costs
from plait.optimize.model import Operations
from plait.plan.diff import diff
from plait.plan.jtree import Join, Leaf, joins
from plait.plan.migration import Migration
from plait.query.query import Query

Account = Literal["hash", "nested-loop"]


@dataclass(frozen=True, slots=True)
class Reading:
    """The meter before a slice: the joins at work, their cost so far, the rows they can find."""

    joins: Sequence[Operator]
    work: float
    probes: list[int]
    rows: list[int]


class Meter:
    """Prices what engines do for one query."""

    def __init__(self, query: Query, account: Account, costs: Costs) -> None:
        if account not in get_args(Account):
            raise PlaitError(
                f"there is no accounting by {account!r}",
                remedy=did_you_mean(account, get_args(Account)),
            )
        self.query = query
        self.account = account
        self.costs = replace(costs, call=0.0, upkeep=0.0)
        self._layouts: dict[Join, Inputs] = {}

    def _inputs(self, join: Join) -> Inputs:
        if join not in self._layouts:
            self._layouts[join] = inputs_of(self.query, join)
        return self._layouts[join]

    def read(self, engine: Engine) -> Reading:
        """Look at an engine between two slices."""
        if not engine.operators:
            raise PlaitError(
                f"the work of {engine.plan} is not accounted for",
                remedy="give a tree of joins as the plan",
            )
        return self._reading(engine.operators)

    def since(self, before: Reading, results: int) -> float:
        """The seconds of work that were done since a reading, with so many results."""
        after = self._reading(before.joins)
        work = after.work - before.work
        if self.account == "hash":
            return work + results * len(self.query.select) * self.costs.result
        pairs = sum(
            (then - now) * (rows + rows_before) / 2
            for now, then, rows_before, rows in zip(
                before.probes, after.probes, before.rows, after.rows, strict=True
            )
        )
        return work + pairs * self.costs.match

    def _reading(self, running: Sequence[Operator]) -> Reading:
        work = 0.0
        probes: list[int] = []
        rows: list[int] = []
        for operator in running:
            inputs, counters = self._inputs(operator.join), operator.counters
            if self.account == "hash":
                work += counted([inputs], [counters]).seconds(self.costs)
                continue
            held = [operator.rows(c) for c in range(len(inputs))]
            for own, given in zip(inputs, counters.inputs, strict=True):
                work += given.arrivals * self.costs.insert + given.deletes * self.costs.delete
                probes += [step.probes for step in given.steps]
                rows += [held[target] for target, _ in own.steps]
        return Reading(running, work, probes, rows)

    def moved(self, new: Engine, record: Migration) -> float:
        """The seconds of work of a moving state that an engine has made.

        Matching, at four comparisons for a pair of joins, and moving, at two cursors for a join
        (equation 3), are charged like insertions.
        """
        assert isinstance(record.old, Join | Leaf) and isinstance(record.new, Join | Leaf)
        n, m = len(list(joins(record.old))), len(list(joins(record.new)))
        work = (4 * n * m + 2 * min(n, m)) * self.costs.insert
        sizes = {state.streams: len(state) for state in new.states()}
        sizes |= _live_rows(new)
        recomputed = diff(self.query, record.old, record.new).recomputed
        if self.account == "hash":
            found = sum(sizes[state.streams] for state in recomputed)
            carried = sum(3 * sizes[s.streams] * len(s.streams) for s in recomputed)
            done = Operations(
                inserts=found,
                probes=record.probes,
                visits=record.visited,
                matches=found,
                carried=carried,
                combined=found,
            )
            return work + done.seconds(self.costs)
        for state in recomputed:
            assert state.new is not None
            first, second, *others = (sizes[source] for source in state.new.sources)
            kept = sizes[state.streams]
            pairs = first * second + kept * sum(others)
            work += pairs * self.costs.match + kept * self.costs.insert
        return work


def _live_rows(engine: Engine) -> dict[frozenset[int], int]:
    """The rows of each stream's window that something to come can join: what is recomputed from."""
    marks = engine.windows.watermarks
    return {b.streams: len(b) - b.older_than(b.cutoff(marks)) for b in engine.bases}
