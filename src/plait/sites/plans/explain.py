"""A plan over sites as a text for people.

Three parts: the sites with their streams and links, the way of each head stream, and what every
site has to do. In the way of a head stream, `@ n2` is where a join runs, and the arrow before it
says what is sent there:

    a @ n1  ─a→  ⋈ b @ n2  ←c─  ⋈ c @ n2  ─→ results

The tuples of a are sent to n2 and joined with b there; then c is sent to n2 and joined there, and
the results leave from n2. Without a text, an arrow sends nothing over the network.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from plait.query.names import quoted
from plait.sites.plans.plan import (
    Jep,
    OneWayJoin,
    Operator,
    Sep,
    Ship,
    SiteLink,
    Sites,
    Update,
    check_jep,
)
from plait.sites.plans.plan import operator_sets as all_operators
from plait.sites.plans.plan import steps as steps_of


def explain(sites: Sites, jep: Jep, notes: Mapping[str, str] | None = None) -> str:
    """Sites, the way of each head stream, and the operator set of each site.

    `notes` adds a remark (say, an estimated cost) to the sequence of a head stream.

    >>> from plait.sites.plans.plan import fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n2"}, 0.005, 128_000)
    >>> jep = Jep((Sep("a", ("b",), (1,)), Sep("b", ("a",), (0,))))
    >>> print(explain(sites, jep, {"a": "2 ms/s"}))
    sites
      n1  a
      n2  b
    links
      all  5 ms, 128 kB/s
    <BLANKLINE>
    plan
      a @ n1  ─a→  ⋈ b @ n2  → results · 2 ms/s
      b @ n2  ←a─  ⋈ a @ n2  → results
    <BLANKLINE>
    node operator sets
      n1  ship(a, n2)
      n2  join(a, b)
          join(b, a)
          update(a)
          update(b)
          ship(a→b, results)
          ship(b→a, results)
    """
    check_jep(sites, jep)
    remarks = notes or {}
    width = max(len(quoted(site)) for site in sites.names)
    lines = ["sites"]
    for site in sites.names:
        streams = ", ".join(quoted(s) for s in sites.streams if sites.home(s) == site)
        lines.append(f"  {quoted(site):<{width}}  {streams}")
    lines += ["links", *(f"  {line}" for line in _links(sites.links)), "", "plan"]
    for sep in jep.seps:
        remark = remarks.get(sep.head, "")
        lines.append(f"  {way(sites, sep)}" + (f" · {remark}" if remark else ""))
    lines += ["", "node operator sets"]
    for site, operators in all_operators(sites, jep).items():
        for n, operator in enumerate(in_order(operators) or ["(nothing to do)"]):
            lines.append(f"  {'' if n else quoted(site):<{width}}  {operator}")
    return "\n".join(lines)


def way(sites: Sites, sep: Sep) -> str:
    """The way of one head stream in a line.

    >>> from plait.sites.plans.plan import fully_connected
    >>> sites = fully_connected({"a": "n1", "b": "n1", "c": "n2"}, 0.005, 128_000)
    >>> way(sites, Sep("a", ("b", "c"), (0, 1)))
    'a @ n1  →  ⋈ b @ n1  ─a→b→  ⋈ c @ n2  → results'
    """
    text = f"{quoted(sep.head)} @ {quoted(sites.home(sep.head))}"
    for step in steps_of(sites, sep):
        shipped = step.shipped()
        if shipped is None:
            arrow = "→"
        else:
            flow, _, target = shipped
            arrow = f"─{flow}→" if target == step.home else f"←{flow}─"
        text += f"  {arrow}  ⋈ {quoted(step.stream)} @ {quoted(step.site)}"
    return f"{text}  → {quoted(sites.results)}"


def in_order(operators: frozenset[Operator]) -> list[Operator]:
    """Joins, updates, then shipments, each by name.

    >>> from plait.sites.plans.plan import Flow
    >>> [str(x) for x in in_order(frozenset({Ship(Flow("a"), "n2"), Update("b")}))]
    ['update(b)', 'ship(a, n2)']
    """
    kinds = (OneWayJoin, Update, Ship)
    return sorted(operators, key=lambda x: (kinds.index(type(x)), str(x)))


def _links(links: Sequence[SiteLink]) -> Iterator[str]:
    """Links of equal latency and rate in one line; what most links have comes last, unnamed."""
    kinds: dict[tuple[float, float], list[SiteLink]] = {}
    for link in links:
        kinds.setdefault((link.latency, link.rate), []).append(link)
    for (latency, rate), same in sorted(kinds.items(), key=lambda kind: len(kind[1])):
        who = ", ".join(f"{quoted(link.origin)} → {quoted(link.target)}" for link in same)
        if len(same) > len(links) / 2:
            who = "all" if len(kinds) == 1 else "all others"
        yield f"{who}  {_seconds(latency)}, {_rate(rate)}"
    if not links:
        yield "none"


def _seconds(value: float) -> str:
    return f"{1000 * value:.4g} ms" if value < 1 else f"{value:.4g} s"


def _rate(value: float) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.4g} {unit}/s"
    return f"{value:.4g} B/s"
