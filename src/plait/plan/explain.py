"""Write a query and its plan for people.

The upper half says what is asked, the lower half how it is answered. Each operator of the tree
has one line per input, which says what a new tuple of that input does:

    trades → quotes (sym) [1] → news (sym)

It probes the window of quotes by the key sym, checks condition [1] on what it finds, and probes
news with what is left. `trades⋈quotes` is the state that keeps the joined tuples of the two.

A router has no tree: the lower half says who decides, and for how many tuples at a time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from plait.plan.jtree import Join, Leaf, Node, check_plan
from plait.plan.labels import class_labels, class_texts, key_label, state_label
from plait.plan.routed import Eddies, Plan, Teddies
from plait.plan.steps import indexes, on_arrival, steps, stream_set
from plait.query.bounds import show
from plait.query.durations import show_micros
from plait.query.names import quoted
from plait.query.query import Query

WIDTH = 100
"""Lists in the header are broken into lines of at most this many characters."""

Notes = Mapping[frozenset[str], str]


def explain(query: Query, plan: Plan, notes: Notes | None = None) -> str:
    """Write the query, and the plan as a tree of joins and windows, or the router.

    `notes` adds a remark (say, an estimated cost) to the operators and windows with these stream
    sets; one for a stream set that the plan does not have is left out.

    >>> from plait.testing.examples import clique
    >>> from plait.plan.jtree import mjoin
    >>> print(explain(clique(2), mjoin(clique(2)), {frozenset("ab"): "3 rows/s"}))
    query
      stream  a  event time ts, watermark delay 0 s
              b  event time ts, watermark delay 0 s
      on      a.k = b.k
      time    all within 10 s
      select  a.ts AS a_ts, a.k AS a_k, b.ts AS b_ts, b.k AS b_k
    <BLANKLINE>
    plan (a b)
      binary join → results · 3 rows/s
      │ a → b (k)
      │ b → a (k)
      ├─ a: window of 10 s, indexed by (k)
      └─ b: window of 10 s, indexed by (k)
    """
    asked = ["query", *_header(query), ""]
    if isinstance(plan, Eddies | Teddies):
        each = "packet" if isinstance(plan, Teddies) else "tuple"
        return "\n".join([*asked, f"plan {plan}: decided for each {each} at run time"])
    check_plan(query, plan)
    tree = _Tree(query, plan, notes or {}, class_labels(query), indexes(query, plan))
    body = [f"  {line}" for line in tree.lines(plan)]
    return "\n".join([*asked, f"plan {plan}", *body])


def _header(query: Query) -> Iterator[str]:
    widest = max(len(quoted(name)) for name in query.names)
    streams = [
        f"{quoted(s.name):<{widest}}  event time {quoted(s.time)}, "
        + (
            "no watermark: no row is late, state grows"
            if s.unlimited
            else f"watermark delay {show_micros(s.delay)}"
        )
        + ("" if s.idle is None else f", idle after {show_micros(s.idle)}")
        + ("" if s.ahead is None else f", at most {show_micros(s.ahead)} ahead of the clock")
        for s in query.streams
    ]
    conditions = [f"[{r}] {expr}" for r, expr in enumerate(query.residuals, 1)]
    sections = {
        "stream": streams,
        "late": [] if query.lateness == "own" else ["by the least watermark of all streams"],
        "on": class_texts(query),
        "where": conditions,
        "time": _wrapped(show(query.names, query.bounds).split(", ")),
        "select": _wrapped([str(output) for output in query.select]),
    }
    for title, entries in sections.items():
        for n, entry in enumerate(entries):
            yield f"  {'' if n else title:<8}{entry}"


def _wrapped(items: Sequence[str]) -> list[str]:
    room = WIDTH - len("  select  ") - len(", ") - len(",")
    lines = [items[0]]
    for item in items[1:]:
        if len(lines[-1]) + len(item) > room:
            lines[-1] += ","
            lines.append(item)
        else:
            lines[-1] += f", {item}"
    return lines


@dataclass(frozen=True, slots=True)
class _Tree:
    """The context of all lines of one tree."""

    query: Query
    plan: Node
    notes: Notes
    labels: tuple[str, ...]
    indexes: Mapping[frozenset[int], tuple[tuple[int, ...], ...]]

    def lines(self, node: Node) -> Iterator[str]:
        """The node's own line, then its probe orders and its children, indented."""
        note = self.notes.get(frozenset(node.streams), "")
        yield self._title(node) + (f" · {note}" if note else "")
        if isinstance(node, Leaf):
            return
        for c in range(len(node.children)):
            yield f"│ {self._path(node, c)}"
        for child in node.children:
            last = child is node.children[-1]
            head, *rest = self.lines(child)
            yield ("└─ " if last else "├─ ") + head
            for line in rest:
                yield ("   " if last else "│  ") + line

    def _title(self, node: Node) -> str:
        state = stream_set(self.query, node)
        by = " and ".join(key_label(self.labels, k) for k in self.indexes.get(state, ()))
        if isinstance(node, Leaf):
            (stream,) = state
            reach = max(self.query.bounds.matrix[stream])
            checks = "".join(f" [{r + 1}]" for r in on_arrival(self.query, stream))
            return f"{node}: window of {show_micros(reach)}, indexed by {by}" + (
                f", only rows with{checks}" if checks else ""
            )
        kind = "binary join" if len(node.children) == 2 else "mjoin"
        if node is self.plan:
            return f"{kind} → results"
        return f"{kind} → state {state_label(self.query, state)}, indexed by {by}"

    def _path(self, join: Join, child: int) -> str:
        def name(c: int) -> str:
            return state_label(self.query, stream_set(self.query, join.children[c]))

        path = name(child)
        for step in steps(self.query, join, child):
            path += f" → {name(step.target)} {key_label(self.labels, step.classes)}"
            path += "".join(f" [{r + 1}]" for r in step.residuals)
        return path
