"""Join trees (jtrees): what an engine runs.

*Meaning.* A `Leaf` is the window of a stream; a `Join` combines two or more children. A new tuple
of a child probes the states of the other children one after the other, in the probe order of that
child. A tree whose only join has all streams as leaves is an mjoin (no intermediate state); a tree
whose joins all have two children is a binary tree; everything between is a mixture.

*Legality.* A plan runs a query when each stream is exactly one leaf, and no probe is a cross
product: the streams below every join hang together, and so do those gathered at each step of every
probe order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from plait.errors import PlanError, did_you_mean
from plait.query.names import quoted, unquoted
from plait.query.names import tokens as tokens_of
from plait.query.query import Query

_LONGEST_SHOWN = 200
"""Characters of a text that an error repeats."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """The window of one stream.

    >>> Leaf("trades")
    Leaf(stream='trades')
    """

    stream: str

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams below this node, left to right."""
        return (self.stream,)

    def __str__(self) -> str:
        return quoted(self.stream)


@dataclass(frozen=True, slots=True)
class Join:
    """A join of two or more children.

    `orders[c]` lists the other children in the order in which a new tuple of child c probes them.

    >>> join = Join((Leaf("a"), Leaf("b"), Leaf("c")), ((1, 2), (0, 2), (1, 0)))
    >>> str(join), join.streams
    ('(a b c)', ('a', 'b', 'c'))
    """

    children: tuple[Node, ...]
    orders: tuple[tuple[int, ...], ...]

    def __post_init__(self) -> None:
        if len(self.children) < 2:
            raise PlanError(f"the join {self} has fewer than two children")
        if len(self.orders) != len(self.children):
            raise PlanError(
                f"the join {self} has {len(self.children)} children but {len(self.orders)} "
                "probe orders",
                remedy="give one order for each child",
            )
        for c, order in enumerate(self.orders):
            if sorted(order) != [k for k in range(len(self.children)) if k != c]:
                raise PlanError(
                    f"the probe order {list(order)} of child {c} ({self.children[c]}) in {self} "
                    "does not name every other child once"
                )

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams below this node, left to right."""
        return tuple(s for child in self.children for s in child.streams)

    def __str__(self) -> str:
        return f"({' '.join(str(c) for c in self.children)})"

    def _repr_html_(self) -> str:
        """What notebooks show: the tree as a picture."""
        from plait.plan.picture import plan_svg

        return plan_svg(self)


Node = Leaf | Join


def joins(node: Node) -> Iterator[Join]:
    """Every join of the tree, children before parents, left to right.

    >>> from plait.testing.examples import chain
    >>> [str(join) for join in joins(parse_shape(chain(4), "((a b) (c d))"))]
    ['(a b)', '(c d)', '((a b) (c d))']
    """
    if isinstance(node, Join):
        for child in node.children:
            yield from joins(child)
        yield node


def preorder(node: Node) -> Iterator[Join]:
    """Every join of the tree, parents before children, left to right.

    >>> from plait.testing.examples import chain
    >>> [str(join) for join in preorder(parse_shape(chain(4), "((a b) (c d))"))]
    ['((a b) (c d))', '(a b)', '(c d)']
    """
    if isinstance(node, Join):
        yield node
        for child in node.children:
            yield from preorder(child)


def joined(query: Query, children: Sequence[Node]) -> Join:
    """Make a join whose probe orders take the nearest connected child first.

    Among the children that share a key with what is gathered so far, the one with the tightest
    time bounds is probed first, then the leftmost.

    >>> from plait.testing.examples import chain
    >>> joined(chain(3), [Leaf("a"), Leaf("b"), Leaf("c")]).orders
    ((1, 2), (0, 2), (1, 0))
    """
    graph = query.graph
    sets = [frozenset(query.index(s) for s in child.streams) for child in children]
    orders = []
    for c in range(len(children)):
        gathered, left, order = set(sets[c]), [k for k in range(len(children)) if k != c], []
        while left:
            linked = [k for k in left if graph.shared(gathered, sets[k])]
            if not linked:
                raise PlanError(
                    f"{children[left[0]]} shares no key with what is gathered before it in "
                    f"({' '.join(map(str, children))})",
                    remedy="join it elsewhere in the tree",
                )
            best = min(linked, key=lambda k: (_looseness(query, gathered, sets[k]), k))
            order.append(best)
            left.remove(best)
            gathered |= sets[best]
        orders.append(tuple(order))
    return Join(tuple(children), tuple(orders))


def _looseness(query: Query, left: set[int], right: frozenset[int]) -> int:
    d = query.bounds.matrix
    return min(d[i][j] + d[j][i] for i in left for j in right)


def mjoin(query: Query) -> Join:
    """The plan without intermediate states: one join of all streams.

    >>> from plait.testing.examples import chain
    >>> str(mjoin(chain(3)))
    '(a b c)'
    """
    return joined(query, [Leaf(name) for name in query.names])


def parse_shape(query: Query, text: str) -> Node:
    """Read a plan from its shape, as `str` prints it, with default probe orders.

    `((a b) c)` joins a with b and the result with c; `(a b c)` is an mjoin. A stream
    name that is not a plain word is written in backquotes.

    >>> from plait.testing.examples import chain
    >>> parse_shape(chain(3), "((a b) c)").streams
    ('a', 'b', 'c')
    """
    short = text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
    unfinished: list[list[Node]] = []  # the children so far of each join that is open
    tree: Node | None = None
    names: list[str] = []
    try:
        for token in tokens_of(text):
            if tree is not None:
                raise PlanError(f"the shape {short!r} goes on after its end: {token}")
            if token == "(":
                if len(unfinished) == len(query.names):
                    raise PlanError(
                        f"the shape is nested deeper than {len(query.names)} levels",
                        remedy=f"a plan of {len(query.names)} streams has at most one join less",
                    )
                unfinished.append([])
                continue
            if token == ")":
                if not unfinished:
                    raise PlanError(f"there is a ')' too many in the shape {short!r}")
                # Before `joined`: the probe orders of a million children take for ever.
                if len(set(names)) < len(names):
                    twice = next(name for name in names if names.count(name) > 1)
                    raise PlanError(f"the plan {short} has the stream {twice!r} twice")
                node: Node = joined(query, unfinished.pop())
            else:
                names.append(unquoted(token))
                query.index(names[-1])
                node = Leaf(names[-1])
            if unfinished:
                unfinished[-1].append(node)
            else:
                tree = node
        if tree is None:
            raise PlanError(f"the shape {short!r} ends too early", remedy="close every '('")
        check_plan(query, tree)
    except RecursionError:
        raise PlanError(
            "the shape is nested too deeply", remedy="join more streams at a time"
        ) from None
    return tree


def check_plan(query: Query, plan: Node) -> None:
    """Refuse a plan that cannot run this query, naming the difference.

    >>> from plait.testing.examples import chain
    >>> check_plan(chain(3), Join((Leaf("a"), Leaf("b")), ((1,), (0,))))
    Traceback (most recent call last):
    plait.errors.PlanError: the plan (a b) lacks the stream 'c'
    """
    have = plan.streams
    for name in have:
        if name not in query.names:
            raise PlanError(
                f"the plan {plan} has a stream {name!r} that the query does not have",
                remedy=did_you_mean(name, query.names),
            )
        if have.count(name) > 1:
            raise PlanError(f"the plan {plan} has the stream {name!r} twice")
    if missing := [n for n in query.names if n not in have]:
        raise PlanError(f"the plan {plan} lacks the stream {missing[0]!r}")
    graph = query.graph
    for join in joins(plan):
        sets = [frozenset(query.index(s) for s in child.streams) for child in join.children]
        for c, order in enumerate(join.orders):
            gathered = set(sets[c])
            for k in order:
                if not graph.shared(gathered, sets[k]):
                    raise PlanError(
                        f"in {join}, a tuple of {join.children[c]} probes {join.children[k]} "
                        "before anything shares a key with it: a cross product",
                        remedy="change the probe order",
                    )
                gathered |= sets[k]
