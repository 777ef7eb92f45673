"""Hypothesis strategies for queries: small, and as mean as the definition allows.

A query is drawn from choices that shrink to the plainest one: two streams, one integer key, one
global window, no condition beyond the equality, and the rows' numbers selected.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.expr import Call, Cast, Column, Expr, Literal
from plait.query.query import NEVER_LATE, Field, Lateness, Output, Query, Stream, make_query
from plait_lab.laws.strategies.key_types import FAMILIES, Family

NAMES = "abcdefg"
SHAPES = ("clique", "chain", "star", "cycle", "random")
RULES: tuple[Lateness, ...] = ("own", "least")
TICKS = {"us": 1, "ms": 1_000, "s": 1_000_000}
PAYLOAD = (Field("id", pa.int64()), Field("v", pa.int64()), Field("x", pa.float64()))
"""Every stream numbers its rows and has an integer and a float that nothing joins on."""


@dataclass
class _Draft:
    """Key columns of each stream, and the equalities between them, while they are drawn."""

    streams: int
    edges: list[tuple[Column, Column]] = field(default_factory=list)

    def columns(self, stream: int) -> list[Column]:
        """The key columns that a stream has so far."""
        name = NAMES[stream]
        found = (c for edge in self.edges for c in edge if c.stream == name)
        return sorted(set(found), key=str)

    def column(self, stream: int, number: int) -> Column:
        """Key column `number` of a stream; one more than there are is a new one."""
        return Column(NAMES[stream], f"k{min(number, len(self.columns(stream)))}")

    def tie(self, left: int, right: int, *, at: tuple[int, int] = (9, 9)) -> None:
        """An equality between two streams, by new columns unless numbers are given."""
        pair = (self.column(left, at[0]), self.column(right, at[1]))
        if pair not in self.edges and pair[::-1] not in self.edges:
            self.edges.append(pair)

    def classes(self) -> list[set[Column]]:
        """The columns that the equalities tie together."""
        groups: list[set[Column]] = []
        for edge in self.edges:
            touching = [g for g in groups if g & set(edge)]
            groups = [g for g in groups if g not in touching]
            groups.append(set(edge).union(*touching))
        return sorted(groups, key=lambda g: sorted(map(str, g)))


@st.composite
def queries(
    draw: DrawFn,
    *,
    streams: st.SearchStrategy[int] | None = None,
    families: Sequence[Family] = FAMILIES,
    conditions: bool = True,
    one_key: bool = False,
) -> Query:
    """A query; `families` limits the key types, `conditions=False` leaves out residuals.

    With `one_key`, all streams share a key, among others.
    """
    size = draw(streams if streams is not None else st.integers(2, 6))
    draft = draw(_graphs(size, ("clique",) if one_key else SHAPES, extra=2))
    types = {
        column: type_
        for group in draft.classes()
        for column, type_ in draw(_typed_class(sorted(group, key=str), families)).items()
    }
    unit = draw(st.sampled_from(("us", "ms", "s")))
    tick = TICKS[unit]
    zone = draw(st.sampled_from([None, None, None, "UTC"]))
    made = [draw(_stream(i, draft.columns(i), types, unit, zone)) for i in range(size)]
    equal: list[Expr] = [Call("eq", edge) for edge in draft.edges]
    most = draw(st.sampled_from((0, 0, 1, 2))) if conditions else 0
    extra = draw(st.lists(_residuals(made, types), max_size=most))
    return make_query(
        made,
        [*equal, *extra],
        draw(_constraints(size, tick, 6)),
        draw(_select(made, types)),
        draw(st.sampled_from(RULES)),
    )


@st.composite
def plain_queries(draw: DrawFn, *, streams: st.SearchStrategy[int]) -> Query:
    """A query with integer keys and nothing else to it, but bounds of all kinds, also wide ones."""
    size = draw(streams)
    draft = draw(_graphs(size, ("clique", "clique", "chain", "star"), extra=0))
    delays = [draw(st.integers(0, 4)) for _ in range(size)]
    fields = [
        (Field("ts", pa.timestamp("us")), *(Field(k.name, pa.int64()) for k in keys), *PAYLOAD)
        for keys in map(draft.columns, range(size))
    ]
    return make_query(
        [Stream(NAMES[i], fields[i], "ts", delays[i]) for i in range(size)],
        [Call("eq", edge) for edge in draft.edges],
        draw(_constraints(size, 1, 12)),
        [Output(f"{name}_id", Column(name, "id")) for name in NAMES[:size]],
        draw(st.sampled_from(RULES)),
    )


@st.composite
def _graphs(draw: DrawFn, size: int, shapes: Sequence[str], extra: int) -> _Draft:
    draft = _Draft(size)
    shape = draw(st.sampled_from(shapes))
    if shape == "clique":
        for left, right in pairwise(range(size)):
            draft.tie(left, right, at=(0, 0))
    elif shape == "star":
        for right in range(1, size):
            draft.tie(0, right)
    elif shape == "random":
        for right in range(1, size):
            left = draw(st.integers(0, right - 1))
            draft.tie(left, right, at=(draw(st.integers(0, 2)), draw(st.integers(0, 1))))
    else:
        for left, right in pairwise(range(size)):
            draft.tie(left, right)
        if shape == "cycle" and size > 2:
            draft.tie(0, size - 1)
    pairs = list(combinations(range(size), 2))
    for left, right in draw(st.lists(st.sampled_from(pairs), max_size=extra)):
        draft.tie(left, right, at=(draw(st.integers(0, 2)), draw(st.integers(0, 2))))
    return draft


@st.composite
def _typed_class(
    draw: DrawFn, columns: Sequence[Column], families: Sequence[Family]
) -> dict[Column, pa.DataType]:
    """One family for the class; mostly one type too, sometimes one for each column."""
    family = draw(st.sampled_from(families))
    common = draw(st.sampled_from(family.types))
    if not draw(st.booleans()):
        return dict.fromkeys(columns, common)
    return {column: draw(st.sampled_from(family.types)) for column in columns}


@st.composite
def _stream(
    draw: DrawFn,
    index: int,
    keys: Sequence[Column],
    types: dict[Column, pa.DataType],
    unit: str,
    zone: str | None,
) -> Stream:
    # Stream 0 keeps the query's unit, which so remains the coarsest of all.
    stamp = draw(st.sampled_from([unit, unit, "us", "ns"])) if index else unit
    steps = draw(st.integers(0, 5))
    delay = NEVER_LATE if steps > 4 else steps * TICKS[unit]
    fields = [Field("ts", pa.timestamp(stamp, zone)), *PAYLOAD]
    fields[1:1] = [Field(k.name, types[k]) for k in keys]
    return Stream(NAMES[index], tuple(fields), "ts", delay)


@st.composite
def _constraints(draw: DrawFn, size: int, tick: int, widest: int) -> tuple[Constraint, ...]:
    widths = st.integers(0, widest).map(lambda n: n * tick)
    kind = draw(st.sampled_from(("global", "streams", "intervals", "both")))
    if kind == "global":
        return global_window(size, draw(widths))
    if kind == "streams":
        return stream_windows([draw(widths) for _ in range(size)])
    # Instants that satisfy every interval, so that the intervals cannot contradict each other.
    meeting = [0] * size
    if kind == "intervals":
        meeting = [draw(st.integers(-4, 4)) * tick for _ in range(size)]
    pairs = [(draw(st.integers(0, j - 1)), j) for j in range(1, size)]
    pairs += draw(st.lists(st.sampled_from(list(combinations(range(size), 2))), max_size=2))
    found = [] if kind == "intervals" else list(global_window(size, draw(widths)))
    for i, j in pairs:
        apart = meeting[j] - meeting[i]
        found += [Constraint(i, j, apart + draw(widths)), Constraint(j, i, draw(widths) - apart)]
    return tuple(found)


def _number(value: int) -> Literal:
    return Literal(value, pa.int64())


@st.composite
def _residuals(draw: DrawFn, streams: Sequence[Stream], types: dict[Column, pa.DataType]) -> Expr:
    """A condition over one, two or three streams."""
    a, b, c = (draw(st.sampled_from([s.name for s in streams])) for _ in range(3))
    compare = draw(st.sampled_from(("le", "lt", "ne", "gt", "ge", "nseq", "eq")))
    n = _number(draw(st.integers(-1, 3)))
    va, vb, vc, xa, xb = (Column(s, name) for s, name in zip((a, b, c, a, b), "vvvxx", strict=True))
    micros = [Call("unix_micros", (Column(s, "ts"),)) for s in (a, b)]
    forms: list[Expr] = [
        Call(compare, (va, n)),
        Call(compare, (Call("add", (va, n)), vb)),
        Call(compare, (Call("add", (va, vb)), vc)),
        Call("or", (Call(compare, (va, vb)), Call("lt", (vb, vc)))),
        Call("not", (Call("and", (Call(compare, (va, vb)), Call("is_null", (xa,)))),)),
        Call(compare, (xa, xb)),
        Call(compare, (Call("div", (va, vb)), xa)),
        Call(compare, (Call("mul", (va, Call("mod", (vb, n)))), vc)),
        Call("in", (va, vb, n, Literal(None, pa.null()))),
        Call(compare, (Call("sub", (micros[0], micros[1])), n)),
        Call(compare, (Call("coalesce", (xa, vb)), Call("greatest", (va, xb)))),
    ]
    keys = [c for c in sorted(types, key=str) if str(types[c]) in ("string", "large_string")]
    if keys:
        pattern = Literal(draw(st.sampled_from(("a%", "_", "%b"))), pa.string())
        forms.append(Call("like", (draw(st.sampled_from(keys)), pattern)))
    return draw(st.sampled_from(forms))


@st.composite
def _select(
    draw: DrawFn, streams: Sequence[Stream], types: dict[Column, pa.DataType]
) -> tuple[Output, ...]:
    """Which rows met, and a few expressions; now and then every column, or just one."""
    everything = draw(st.sampled_from(("rows", "rows", "rows", "all", "one")))
    if everything == "all":
        return ()
    rows = [Output(f"{s.name}_id", Column(s.name, "id")) for s in streams]
    if everything == "one":
        return tuple(rows[:1])
    extra = draw(st.lists(_outputs(streams, types), max_size=2))
    return (*rows, *(Output(f"e{i}", expr) for i, expr in enumerate(extra)))


@st.composite
def _outputs(draw: DrawFn, streams: Sequence[Stream], types: dict[Column, pa.DataType]) -> Expr:
    a, b = (draw(st.sampled_from(streams)) for _ in range(2))
    va, vb, xa = Column(a.name, "v"), Column(b.name, "v"), Column(a.name, "x")
    columns = [Column(s.name, f.name) for s in (a, b) for f in s.fields]
    forms: list[Expr] = [
        draw(st.sampled_from(columns)),
        Call("add", (va, vb)),
        Call("div", (va, vb)),
        Call("mul", (va, _number(2**62))),
        Call("case", (Call("gt", (va, vb)), xa, va)),
        Call("least", (xa, vb)),
        Call("is_null", (xa,)),
        Cast(xa, pa.int32()),
        Call("concat", (Cast(va, pa.string()), Literal("-", pa.string()), Cast(vb, pa.string()))),
        Call("floor", (Call("mul", (xa, vb)),)),
        Literal(dt.date(2024, 2, 29), pa.date32()),
    ]
    return draw(st.sampled_from(forms))
