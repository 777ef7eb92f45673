"""Bounds on the event times of a result: a difference-bound matrix.

*Meaning.* `D[i][j]` is the largest allowed `ts_j - ts_i`, in microseconds, inclusive; `None`
leaves the pair unbounded in that direction. Every window of the papers and of SQL is such a
matrix: a global window W is W everywhere, a window per stream is a row each, an interval
condition is two entries.

*Closure.* Shortest paths make every implied bound explicit, once: if b is within 5 s after a and
c within 5 s after b, then c is within 10 s after a. A closed matrix with a negative cycle has no
solution at all and is refused; a closed matrix with a `None` left would need infinite state and
is refused too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from plait.errors import UnboundedPair, WindowError
from plait.query.durations import show_micros
from plait.query.names import quoted

Matrix = tuple[tuple[int | None, ...], ...]


@dataclass(frozen=True, slots=True)
class Constraint:
    """`ts[later] - ts[earlier] <= micros`, by stream index; `micros` may be negative.

    A `strict` one says less than `micros`, between times that are finer than microseconds. The
    bounds are the same, but it may contradict others where they do not.
    """

    earlier: int
    later: int
    micros: int
    strict: bool = False


def global_window(streams: int, width: int) -> tuple[Constraint, ...]:
    """Bound all tuples of a result to lie within `width` of each other.

    >>> len(global_window(3, 5))
    6
    """
    return tuple(Constraint(i, j, width) for i in range(streams) for j in range(streams) if i != j)


def stream_windows(widths: Sequence[int]) -> tuple[Constraint, ...]:
    """Bound the partners of a tuple of stream i to at most `widths[i]` later."""
    return tuple(
        Constraint(i, j, width)
        for i, width in enumerate(widths)
        for j in range(len(widths))
        if i != j
    )


@dataclass(frozen=True, slots=True)
class Bounds:
    """A closed, fully bounded difference-bound matrix.

    >>> b = close(("a", "b", "c"), (Constraint(0, 1, 5), Constraint(1, 0, 0), *
    ...                             (Constraint(1, 2, 7), Constraint(2, 1, 3))))
    >>> b.matrix
    ((0, 5, 12), (0, 0, 7), (3, 3, 0))
    """

    matrix: tuple[tuple[int, ...], ...]

    @property
    def uniform(self) -> int | None:
        """The width of the global window, if the bounds are one."""
        entries = {d for i, row in enumerate(self.matrix) for j, d in enumerate(row) if i != j}
        return entries.pop() if len(entries) == 1 else None

    @property
    def widest(self) -> int:
        """The longest time that a tuple can wait for a partner."""
        return max(max(row) for row in self.matrix)


def close(names: Sequence[str], constraints: Sequence[Constraint]) -> Bounds:
    """Compute the tightest equivalent matrix, or raise the error that names the culprits."""
    if any(c.strict for c in constraints):
        finer = [(c.earlier, c.later, c.micros * 1_000 - c.strict) for c in constraints]
        _refuse_contradiction(names, _shortest(len(names), finer))
    d = _shortest(len(names), [(c.earlier, c.later, c.micros) for c in constraints])
    _refuse_contradiction(names, d)
    _refuse_unbounded(names, d)
    return Bounds(tuple(tuple(entry for entry in row if entry is not None) for row in d))


def _shortest(m: int, edges: Sequence[tuple[int, int, int]]) -> list[list[int | None]]:
    """Compute the shortest paths between m streams, None where no path exists."""
    d: list[list[int | None]] = [[0 if i == j else None for j in range(m)] for i in range(m)]
    for earlier, later, length in edges:
        old = d[earlier][later]
        d[earlier][later] = length if old is None else min(old, length)
    for k in range(m):
        for i in range(m):
            first = d[i][k]
            if first is None:
                continue
            for j in range(m):
                second, direct = d[k][j], d[i][j]
                if second is not None and (direct is None or first + second < direct):
                    d[i][j] = first + second
    return d


def _refuse_contradiction(names: Sequence[str], d: list[list[int | None]]) -> None:
    for i, name in enumerate(names):
        own = d[i][i]
        if own is not None and own < 0:
            involved = [
                other
                for j, other in enumerate(names)
                if j != i
                and (there := d[i][j]) is not None
                and (back := d[j][i]) is not None
                and there + back < 0
            ]
            raise WindowError(
                f"the time conditions on {name} and {' and '.join(involved) or name} "
                "contradict each other: no result can satisfy them",
                remedy="check the signs of the intervals",
            )


def _refuse_unbounded(names: Sequence[str], d: list[list[int | None]]) -> None:
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            if d[i][j] is None:
                raise UnboundedPair(
                    f"{second}.time may be arbitrarily long after {first}.time: "
                    "their state would grow for ever",
                    remedy=f"bound the pair ({first}, {second}), for example with "
                    "within('10 seconds') or an interval condition",
                )


def show(names: Sequence[str], bounds: Bounds) -> str:
    """Write the bounds in one line for people.

    >>> show(("a", "b"), Bounds(((0, 5_000_000), (2_000_000, 0))))
    'a - 2 s <= b <= a + 5 s'
    """
    if (width := bounds.uniform) is not None:
        return f"all within {show_micros(width)}"
    d, shown = bounds.matrix, [quoted(name) for name in names]
    parts = [
        f"{a} {_signed(-d[j][i])} <= {b} <= {a} {_signed(d[i][j])}"
        for i, a in enumerate(shown)
        for j, b in enumerate(shown)
        if i < j
    ]
    return ", ".join(parts)


def _signed(micros: int) -> str:
    return f"- {show_micros(-micros)}" if micros < 0 else f"+ {show_micros(micros)}"
