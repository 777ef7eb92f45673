"""Compare two plans of a query, state by state.

*Matching.* A state is identified by its stream set (CAPE's moving state): whatever the tree, it
holds exactly the combinations of live tuples of these streams that satisfy all conditions among
them. So a state that both plans have can be shared, and only its indexes may differ; a state that
only the new plan has is recomputed from its children, bottom-up; a state that only the old plan
has can go, because the base windows remain. The root has no state: its output is the result.

*Fates.*

- kept: in both plans, below the same operator, looked up by the same keys: nothing to do.
- moved: in both plans, but feeding another operator or looked up by other keys: the tuples are
  shared, missing indexes are built, needless ones dropped.
- recomputed: only in the new plan.
- dropped: only in the old plan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from plait.plan.jtree import Join, Node, check_plan, joins
from plait.plan.labels import class_labels, key_label, state_label
from plait.plan.steps import StreamSet, indexes, stream_set
from plait.query.query import Query

Fate = Literal["kept", "moved", "recomputed", "dropped"]


@dataclass(frozen=True, slots=True)
class State:
    """A state as one plan has it: the operator it feeds, what fills it, its indexes.

    `parent` is the stream set of the join that probes it, `sources` are those of the children
    that it is joined from (none for a base window), `indexes` tuples of key classes.
    """

    parent: StreamSet
    sources: tuple[StreamSet, ...]
    indexes: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class StateDiff:
    """The change of one state; `old` or `new` is None where a plan does not have it."""

    streams: StreamSet
    old: State | None
    new: State | None

    @property
    def fate(self) -> Fate:
        """One of kept, moved, recomputed and dropped."""
        if self.old is None:
            return "recomputed"
        if self.new is None:
            return "dropped"
        same = self.old.parent == self.new.parent and self.old.indexes == self.new.indexes
        return "kept" if same else "moved"

    @property
    def built(self) -> tuple[tuple[int, ...], ...]:
        """The indexes that the new plan needs and the old state does not have."""
        return _missing(self.new, self.old)

    @property
    def freed(self) -> tuple[tuple[int, ...], ...]:
        """The indexes that the old state has and the new plan does not need."""
        return _missing(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Reorder:
    """An input of a join with the same children in both plans, whose probe order changes."""

    join: StreamSet
    child: StreamSet
    old: tuple[StreamSet, ...]
    new: tuple[StreamSet, ...]


@dataclass(frozen=True, slots=True)
class PlanDiff:
    """The difference between two plans.

    `states` are in an order in which they can be recomputed: small stream sets first.
    """

    query: Query
    old: Node
    new: Node
    states: tuple[StateDiff, ...]
    reordered: tuple[Reorder, ...]

    @property
    def kept(self) -> tuple[StateDiff, ...]:
        """The states that stay as they are."""
        return self._with("kept")

    @property
    def moved(self) -> tuple[StateDiff, ...]:
        """The states whose tuples are shared, but whose place or indexes change."""
        return self._with("moved")

    @property
    def recomputed(self) -> tuple[StateDiff, ...]:
        """The states that only the new plan has, children before parents."""
        return self._with("recomputed")

    @property
    def dropped(self) -> tuple[StateDiff, ...]:
        """The states that only the old plan has."""
        return self._with("dropped")

    @property
    def same(self) -> bool:
        """Whether both plans do the same, even if their children are written in another order."""
        return len(self.kept) == len(self.states) and not self.reordered

    def _with(self, fate: Fate) -> tuple[StateDiff, ...]:
        return tuple(s for s in self.states if s.fate == fate)

    def __str__(self) -> str:
        return show(self)


def diff(query: Query, old: Node, new: Node) -> PlanDiff:
    """Compare two plans: the fate of each state, and the probe orders that change.

    >>> from plait.testing.examples import clique
    >>> from plait.plan.jtree import parse_shape
    >>> query = clique(3)
    >>> print(diff(query, parse_shape(query, "((a b) c)"), parse_shape(query, "(a (b c))")))
    ((a b) c) → (a (b c))
      moved       a: feeds a⋈b⋈c, was a⋈b
      moved       b: feeds b⋈c, was a⋈b
      moved       c: feeds b⋈c, was a⋈b⋈c
      recomputed  b⋈c: from b, c; build index (k)
      dropped     a⋈b
    """
    check_plan(query, old)
    check_plan(query, new)
    before, after = _states(query, old), _states(query, new)
    matched = [
        StateDiff(streams, before.get(streams), after.get(streams))
        for streams in sorted(before.keys() | after.keys(), key=lambda s: (len(s), sorted(s)))
    ]
    return PlanDiff(query, old, new, tuple(matched), tuple(_reordered(query, old, new)))


def show(difference: PlanDiff) -> str:
    """Write the difference for people, one line per state and probe order."""
    query = difference.query
    lines = [f"{difference.old} → {difference.new}"]
    fates: tuple[Fate, ...] = ("kept", "moved", "recomputed", "dropped")
    for fate in fates:
        for state in difference.states:
            if state.fate == fate:
                lines.append(f"  {fate:<11} {_line(query, state)}")
    for r in difference.reordered:
        old, new = (
            " → ".join(state_label(query, s) for s in (r.child, *path)) for path in (r.old, r.new)
        )
        lines.append(f"  {'reordered':<11} {new}, was {old}")
    if difference.same:
        lines.append("  nothing changes")
    return "\n".join(lines)


def _line(query: Query, state: StateDiff) -> str:
    labels = class_labels(query)
    parts = []
    if state.old is None and state.new is not None:
        parts.append(f"from {', '.join(state_label(query, s) for s in state.new.sources)}")
    if state.old and state.new and state.old.parent != state.new.parent:
        there, here = (state_label(query, s.parent) for s in (state.new, state.old))
        parts.append(f"feeds {there}, was {here}")
    if state.new is not None:
        parts += [f"build index {key_label(labels, k)}" for k in state.built]
    if state.old is not None and state.new is not None:
        parts += [f"drop index {key_label(labels, k)}" for k in state.freed]
    name = state_label(query, state.streams)
    return f"{name}: {'; '.join(parts)}" if parts else name


def _missing(wanted: State | None, there: State | None) -> tuple[tuple[int, ...], ...]:
    have = there.indexes if there else ()
    return tuple(k for k in (wanted.indexes if wanted else ()) if k not in have)


def _states(query: Query, plan: Node) -> dict[StreamSet, State]:
    needed = indexes(query, plan)
    return {
        stream_set(query, child): State(
            stream_set(query, join),
            tuple(stream_set(query, c) for c in child.children) if isinstance(child, Join) else (),
            needed[stream_set(query, child)],
        )
        for join in joins(plan)
        for child in join.children
    }


def _reordered(query: Query, old: Node, new: Node) -> Iterator[Reorder]:
    paths = {(join, child): path for join, child, path in _paths(query, old)}
    for join, child, path in _paths(query, new):
        was = paths.get((join, child))
        # Another set of children is another operator, whose orders cannot be compared.
        if was is not None and was != path and set(was) == set(path):
            yield Reorder(join, child, was, path)


def _paths(
    query: Query, plan: Node
) -> Iterator[tuple[StreamSet, StreamSet, tuple[StreamSet, ...]]]:
    for join in joins(plan):
        sets = [stream_set(query, child) for child in join.children]
        for child, order in zip(sets, join.orders, strict=True):
            yield stream_set(query, join), child, tuple(sets[k] for k in order)
