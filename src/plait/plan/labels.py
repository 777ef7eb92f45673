"""Short names for key classes and states, the same in every text about a plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from plait.plan.jtree import Node, joins
from plait.query.expr import Column
from plait.query.graph import KeyClass
from plait.query.names import quoted
from plait.query.query import Query


def class_texts(query: Query) -> tuple[str, ...]:
    """Each key class as the equality it stands for.

    >>> from plait.testing.examples import trades_quotes_news
    >>> class_texts(trades_quotes_news)
    ('trades.sym = quotes.sym = news.sym',)
    """
    return tuple(" = ".join(_attributes(query, c)) for c in query.graph.classes)


def class_labels(query: Query) -> tuple[str, ...]:
    """Each key class by the column names in it, or by its whole text where those are not unique.

    >>> from plait.testing.examples import chain, trades_quotes_news
    >>> class_labels(trades_quotes_news), class_labels(chain(3))
    (('sym',), ('a', 'b'))
    """
    classes = query.graph.classes
    short = [
        "=".join(dict.fromkeys(quoted(n) for names in c.columns for n in names)) for c in classes
    ]
    times = Counter(short)
    return tuple(
        label if times[label] == 1 else "=".join(_attributes(query, c))
        for label, c in zip(short, classes, strict=True)
    )


def state_label(query: Query, streams: Iterable[int]) -> str:
    """A state by its streams, in the order of their indexes.

    >>> from plait.testing.examples import trades_quotes_news
    >>> state_label(trades_quotes_news, {1, 0})
    'trades⋈quotes'
    """
    return "⋈".join(quoted(query.names[i]) for i in sorted(streams))


def key_label(labels: tuple[str, ...], classes: Iterable[int]) -> str:
    """The key that a probe looks up, from the `labels` of the classes.

    >>> key_label(("sym", "day"), (0, 1))
    '(sym, day)'
    """
    return f"({', '.join(labels[k] for k in classes)})"


def _attributes(query: Query, key: KeyClass) -> list[str]:
    pairs = zip(query.names, key.columns, strict=True)
    return [str(Column(stream, name)) for stream, names in pairs for name in names]


def change_label(old: Node, new: Node) -> str:
    """Name a plan by what it replaces: by both shapes, or by the probe orders that change.

    >>> from dataclasses import replace
    >>> from plait.plan.jtree import mjoin, parse_shape
    >>> from plait.testing.examples import clique
    >>> old, pairs = mjoin(clique(3)), parse_shape(clique(3), "((a b) c)")
    >>> change_label(old, pairs)
    '((a b) c) instead of (a b c)'
    >>> change_label(old, replace(old, orders=((2, 1), *old.orders[1:])))
    '(a b c) with probe a: b then c → c then b'
    """
    if str(old) != str(new):
        return f"{new} instead of {old}"
    parts = []
    for was, now in zip(joins(old), joins(new), strict=True):
        names = [str(child) for child in now.children]
        for child, before, after in zip(names, was.orders, now.orders, strict=True):
            if before != after:
                ways = (" then ".join(names[k] for k in order) for order in (before, after))
                parts.append(f"{child}: {' → '.join(ways)}")
    return f"{new} with probe {', '.join(parts)}" if parts else str(new)


def plan_label(plan: Node) -> str:
    """Name a plan by its shape and, where a tuple has a choice of ways, by the way it takes.

    The label is written to logs and checkpoints, where it identifies the plan.

    >>> from plait.plan.jtree import parse_shape
    >>> from plait.testing.examples import chain
    >>> plan_label(parse_shape(chain(3), "((a b) c)")), plan_label(parse_shape(chain(3), "(a b c)"))
    ('((a b) c)', '(a b c) by a-b-c, b-a-c, c-b-a')
    """
    ways = []
    for join in joins(plan):
        if len(join.children) > 2:
            names = [str(child) for child in join.children]
            ways += [
                "-".join([names[c], *(names[k] for k in order)])
                for c, order in enumerate(join.orders)
            ]
    return f"{plan} by {', '.join(ways)}" if ways else str(plan)
