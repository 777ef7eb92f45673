"""What a running plan's work costs: by its own hash joins, or as if it joined by nested loops.

*Hash*: the operations that the engine counted, at the prices of the cost model. The prices of a
batch (`call`, `upkeep`) are left out: how virtual time is cut is not the engine's doing.

*Nested loops*, the joins of the CAPE paper: every probe is compared with every row of the state
that it probes, at `match` (T_j) a pair; each tuple that enters a state or leaves it costs `insert`
or `delete` (T_s). The pairs are the probes of a slice times the rows of the state, averaged over
the beginning and the end of the slice; nothing is looped over. Results are the same: only the
price changes. It is exact up to the order within a slice, so slices should be short beside the
window.

*Parallel track* has two boxes; both are charged. The old one's base windows are shared in memory,
but by nested loops each box is charged for its own, as in the paper, and the new box's states hold
only what is new.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

from plait.engine.engines import Engine
from plait.engine.migrate.parallel_track import ParallelTrack
from plait.engine.tree import TreeEngine
from plait.errors import PlaitError, did_you_mean
from plait.optimize.costs import Costs
from plait.optimize.model import Operations
from plait.plan.diff import diff
from plait.plan.jtree import Node, joins
from plait.plan.migration import Migration
from plait.query.query import Query
from plait.runtime.observe import Layout, counted, layout

Account = Literal["hash", "nested-loop"]


def boxes(engine: Engine) -> list[TreeEngine]:
    """The trees that an engine runs: one, or two during a parallel track."""
    if isinstance(engine, TreeEngine):
        return [engine]
    if isinstance(engine, ParallelTrack):
        return [engine.new] if engine.old is None else [engine.new, engine.old]
    raise PlaitError(
        f"the work of {type(engine).__name__} is not accounted for",
        remedy="give a tree of joins as the plan",
    )


@dataclass(frozen=True, slots=True)
class Reading:
    """The meter before a slice: the boxes, their cost so far, and the rows in their states."""

    boxes: list[TreeEngine]
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
        self._layouts: dict[Node, Layout] = {}

    def _layout(self, plan: Node) -> Layout:
        if plan not in self._layouts:
            self._layouts[plan] = layout(self.query, plan)
        return self._layouts[plan]

    def read(self, engine: Engine) -> Reading:
        """Look at an engine between two slices."""
        return self._reading(boxes(engine))

    def since(self, before: Reading, results: int) -> float:
        """The seconds of work that were done since a reading, with so many results."""
        after = self._reading(before.boxes)
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

    def _reading(self, running: list[TreeEngine]) -> Reading:
        work = 0.0
        probes: list[int] = []
        rows: list[int] = []
        for tree in running:
            shape, counters = self._layout(tree.plan), tree.counters
            if self.account == "hash":
                work += counted(shape, counters).seconds(self.costs)
                continue
            sizes = tree.state_rows()
            for inputs, operator, held in zip(shape, counters, sizes, strict=True):
                for own, given in zip(inputs, operator.inputs, strict=True):
                    work += given.arrivals * self.costs.insert + given.deletes * self.costs.delete
                    probes += [step.probes for step in given.steps]
                    rows += [held[target] for target, _ in own.steps]
        return Reading(running, work, probes, rows)

    def moved(self, before: Reading, new: Engine, record: Migration) -> float:
        """The seconds of work of a moving state, from a reading of the old engine.

        Matching, at four comparisons for a pair of joins, and moving, at two cursors for a join
        (equation 3), are charged like insertions.
        """
        (old,) = before.boxes
        (tree,) = boxes(new)
        n, m = len(list(joins(old.plan))), len(list(joins(tree.plan)))
        work = (4 * n * m + 2 * min(n, m)) * self.costs.insert
        sizes = {state.streams: len(state) for state in tree.states()}
        sizes |= _live_rows(tree)
        recomputed = diff(self.query, old.plan, tree.plan).recomputed
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


def _live_rows(tree: TreeEngine) -> dict[frozenset[int], int]:
    """The rows of each stream's window that something to come can join: what is recomputed from."""
    marks = tree.windows.watermarks
    return {b.streams: len(b) - b.older_than(b.cutoff(marks)) for b in tree.bases}
