"""How rows are divided among processors, as a text for people."""

from __future__ import annotations

from plait.groups.routing.routing import Routing
from plait.plan.labels import class_labels
from plait.query.names import quoted
from plait.query.query import Query


def explain_routing(query: Query, routing: Routing) -> str:
    """Which processor gets which rows.

    >>> from plait.testing.examples import chain, clique
    >>> from plait.groups.routing.routing import route
    >>> print(explain_routing(clique(3), route(clique(3).graph, 2)))
    partitioning over 2 processors
      128 groups by hash of (k), 64 for each processor
      every row goes to one processor
    >>> print(explain_routing(chain(3), route(chain(3).graph, 4)))
    partitioning over 4 processors
      hypercube of 2 x 2 cells by hash of (a) x (b)
      a  by (a), each row goes to 2 processors
      b  by (a), (b), each row goes to 1 processor
      c  by (b), each row goes to 2 processors
    """
    graph, labels = query.graph, class_labels(query)
    split = [k for k, share in enumerate(routing.shares) if share > 1]
    head = f"partitioning over {_counted(routing.processors, 'processor')}"
    if not split:
        return f"{head}\n  every row goes to it"
    if len(split) == 1 and len(graph.classes[split[0]].streams) == graph.size:
        homes = routing.homes.tolist()
        groups = sorted({homes.count(p) for p in range(routing.processors)})
        each = " or ".join(map(str, groups))
        return (
            f"{head}\n  {len(homes)} groups by hash of ({labels[split[0]]}), "
            f"{each} for each processor\n  every row goes to one processor"
        )
    cells = " x ".join(str(routing.shares[k]) for k in split)
    lines = [f"hypercube of {cells} cells by hash of {' x '.join(f'({labels[k]})' for k in split)}"]
    names = [quoted(name) for name in query.names]
    widest = max(map(len, names))
    for s, name in enumerate(names):
        mine = graph.classes_of(s)
        keys = ", ".join(f"({labels[k]})" for k in split if k in mine) or "no key"
        copies = _counted(len(routing.replicas(mine)), "processor")
        lines.append(f"{name:<{widest}}  by {keys}, each row goes to {copies}")
    return "\n  ".join([head, *lines])


def _counted(n: int, thing: str) -> str:
    return f"{n} {thing}" + ("" if n == 1 else "s")
