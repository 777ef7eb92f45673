"""One case of a campaign, drawn from a seed: the question, the rows, and the order they arrive in.

A case is named by three things: its seed, how many rows it has, and what is left out of it. Each
aspect is drawn from a generator of its own, so a case with something left out, or with fewer rows,
is otherwise the same: that is how a failing case is made small.

>>> Case.parse("7:1000:late")
Case(seed=7, rows=1000, without=frozenset({'late'}))
>>> str(Case(7, 1000))
'7:1000'
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from random import Random

import numpy as np
import pyarrow as pa

from plait.errors import PlaitError, did_you_mean
from plait.query.bounds import Constraint, global_window
from plait.query.expr import Call, Column, Expr, Literal
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.testing.streams.generate import generate
from plait.testing.streams.specs import Burst, Key, Payload, StreamSpec
from plait.tuning import USUAL, Tuning
from plait_lab.laws.strategies.tunings import drawn_tuning
from plait_lab.workloads.feeds import batches

ASPECTS = (
    "tuning",
    "late",
    "disorder",
    "nulls",
    "conditions",
    "moves",
    "adapt",
    "groups",
    "full disks",
    "crashes",
)
"""What can be left out of a case, most revealing last."""

SECONDS = 60.0
"""Event time that a case spans."""

_MICROS = 1_000_000
_TEXTS = ("string", "string", "binary", "decimal")
_TYPES = (*_TEXTS, "int64", "int32", "date", "timestamp")
_MIXED = ("int64", "int32", "decimal")
"""Types that may meet in one key class."""


@dataclass(frozen=True)
class Case:
    """The name of a case."""

    seed: int
    rows: int
    without: frozenset[str] = frozenset()

    @classmethod
    def parse(cls, text: str) -> Case:
        """The case that was printed like this."""
        seed, _, rest = text.partition(":")
        rows, _, aspects = rest.partition(":")
        without = frozenset(aspects.split(",")) if aspects else frozenset()
        if not seed.isdecimal() or not rows.isdecimal() or not int(rows):
            raise PlaitError(
                f"{text!r} names no case", remedy="give SEED:ROWS or SEED:ROWS:ASPECT,ASPECT"
            )
        for aspect in sorted(without):
            if aspect not in ASPECTS:
                raise PlaitError(
                    f"{text!r} leaves out {aspect!r}", remedy=did_you_mean(aspect, ASPECTS)
                )
        return cls(int(seed), int(rows), without)

    def __str__(self) -> str:
        left_out = ",".join(sorted(self.without))
        return f"{self.seed}:{self.rows}" + (f":{left_out}" if left_out else "")

    def chance(self, aspect: str) -> Random:
        """What an aspect is drawn from."""
        return Random(f"{self.seed} {aspect}")

    def has(self, aspect: str) -> bool:
        """Whether an aspect is part of the case."""
        return aspect not in self.without

    @cached_property
    def tuning(self) -> Tuning:
        """The sizes it runs with."""
        return drawn_tuning(self.chance("tuning"), self.rows) if self.has("tuning") else USUAL

    @cached_property
    def question(self) -> tuple[Query, tuple[StreamSpec, ...]]:
        """The query, and what its streams are like."""
        return _question(self)

    @property
    def query(self) -> Query:
        """What is asked."""
        return self.question[0]

    @cached_property
    def batches(self) -> list[dict[str, pa.Table]]:
        """The rows as they arrive."""
        chance = self.chance("batches")
        tables = generate(self.question[1], SECONDS, self.seed)
        few = max(1, self.rows // 200)
        rows = int(few * (self.rows / few) ** chance.random()) + 1
        return list(batches(tables, rows=rows))


def drawn(random: Random, most_rows: int) -> Case:
    """A case; small ones are as likely as large ones."""
    return Case(random.randrange(2**32), int(most_rows ** random.random()))


def smaller(case: Case) -> Iterator[Case]:
    """Cases that are a little simpler: with an aspect left out, or with fewer rows."""
    for aspect in ASPECTS:
        if case.has(aspect):
            yield Case(case.seed, case.rows, case.without | {aspect})
    for rows in (case.rows // 8, case.rows // 2, case.rows - 1):
        if 0 < rows < case.rows:
            yield Case(case.seed, rows, case.without)


def split(case: Case) -> tuple[dict[str, pa.Table], dict[str, pa.Table]]:
    """By definition: the rows of every stream that are on time, and those that are late."""
    streams = case.query.streams
    kept = {s.name: [s.schema.empty_table()] for s in streams}
    late = {s.name: [s.schema.empty_table()] for s in streams}
    marks: dict[str, int | None] = {s.name: None for s in streams}
    for batch in case.batches:
        before = dict(marks)
        for stream in streams:
            table = batch[stream.name]
            times = table.column(stream.time)
            known = times.is_valid().to_numpy()
            micros = times.cast(pa.int64()).fill_null(0).to_numpy()
            deciding = [before[stream.name]] if case.query.lateness == "own" else before.values()
            if any(mark is None for mark in deciding):
                old = np.zeros(len(known), np.bool_)
            else:
                old = known & (micros < min(mark for mark in deciding if mark is not None))
            kept[stream.name].append(table.filter(pa.array(known & ~old)))
            late[stream.name].append(table.filter(pa.array(old)))
            if known.any():
                mark = int(micros[known].max()) - stream.delay
                marks[stream.name] = max(mark, before[stream.name] or mark)
    return (
        {name: pa.concat_tables(parts) for name, parts in kept.items()},
        {name: pa.concat_tables(parts) for name, parts in late.items()},
    )


def _question(case: Case) -> tuple[Query, tuple[StreamSpec, ...]]:
    chance = case.chance("question")
    size = chance.choice((2, 3, 3, 3, 4, 4, 5))
    names = "abcde"[:size]
    window = 10.0 ** chance.uniform(-1.3, 0.7)
    weights = [10.0 ** chance.uniform(-0.7, 0.7) for _ in names]
    rates = [case.rows * w / sum(weights) / SECONDS for w in weights]
    edges = _edges(chance, size)
    shared = chance.random() < 0.5
    classes = ["k"] * len(edges) if shared else [f"k{e}" for e in range(len(edges))]
    partners = (10.0 ** chance.uniform(-0.7, 1.3)) ** (1 / (size - 1))
    usual = math.prod(rates) ** (1 / size)
    keys = {name: _key(chance, name, usual, window, partners) for name in sorted({*classes})}
    columns: list[dict[str, Key]] = [{} for _ in names]
    for (left, right), name in zip(edges, classes, strict=True):
        for stream in (left, right):
            columns[stream].setdefault(name, _typed(chance, keys[name]))
    specs = tuple(
        _spec(case, names[s], rates[s], window, tuple(columns[s].values())) for s in range(size)
    )
    equal = [
        Call("eq", (Column(names[a], name), Column(names[b], name)))
        for (a, b), name in zip(edges, classes, strict=True)
    ]
    outputs = [Output(f"{name}_n", Column(name, "n")) for name in names]
    outputs.append(Output("s", Column(names[-1], "s")))
    query = make_query(
        [_stream(case, spec) for spec in specs],
        [*equal, *_conditions(case, names)],
        _bounds(chance, size, window),
        outputs,
        "least" if chance.random() < 0.3 else "own",
    )
    return query, specs


def _edges(chance: Random, size: int) -> list[tuple[int, int]]:
    shape = chance.choice(("chain", "star", "tree", "cycle"))
    if shape == "star":
        return [(0, s) for s in range(1, size)]
    if shape == "tree":
        return [(chance.randrange(s), s) for s in range(1, size)]
    chain = list(pairwise(range(size)))
    return [*chain, (0, size - 1)] if shape == "cycle" and size > 2 else chain


def _key(chance: Random, name: str, rate: float, window: float, partners: float) -> Key:
    """A key of which a row finds about so many partners in another window."""
    hot = chance.choice((0.0, 0.0, 0.4, 0.9))
    alive = max(1, math.ceil(2 * rate * window / partners)) * (4 if hot else 1)
    churn = chance.choice((0.0, 1.0, 1.0, 10.0)) * alive / (4 * window)
    return Key(name, alive, hot, chance.choice(_TYPES), churn=churn)


def _typed(chance: Random, key: Key) -> Key:
    type_ = chance.choice(_MIXED) if key.type in _MIXED else key.type
    return Key(key.name, key.domain, key.zipf, type_, churn=key.churn)


def _spec(case: Case, name: str, rate: float, window: float, keys: tuple[Key, ...]) -> StreamSpec:
    chance = case.chance(f"stream {name}")
    disorder = window * chance.choice((0.0, 0.0, 0.1, 1.0, 3.0)) if case.has("disorder") else 0.0
    nulls = chance.choice((0.0, 0.0, 0.01, 0.3)) if case.has("nulls") else 0.0
    begin = chance.uniform(0, SECONDS)
    return StreamSpec(
        name,
        tuple(Key(k.name, k.domain, k.zipf, k.type, nulls, churn=k.churn) for k in keys),
        (
            Payload("n", "sequence"),
            Payload("v", high=chance.choice((2, 9, 1000)), nulls=nulls),
            Payload("s", "string", nulls=nulls),
        ),
        rate,
        disorder=disorder,
        out_of_order=chance.choice((0.02, 0.5, 1.0)),
        bursts=(Burst(10, 0.2, 8),) if chance.random() < 0.3 else (),
        silences=((begin, begin + 20 * chance.random()),) if chance.random() < 0.3 else (),
        grain=chance.choice((0.0, 0.0, window / 4, 1.0)),
        null_times=nulls / 4,
    )


def _stream(case: Case, spec: StreamSpec) -> Stream:
    delay = spec.disorder
    if case.has("late"):
        delay *= case.chance(f"late {spec.name}").choice((1.0, 1.0, 0.5, 0.0))
    fields = tuple(Field(f.name, f.type) for f in spec.schema)
    return Stream(spec.name, fields, spec.time, round(delay * _MICROS))


def _conditions(case: Case, names: str) -> list[Expr]:
    chance = case.chance("conditions")
    if not case.has("conditions") or chance.random() < 0.5:
        return []
    left, right = chance.sample(names, 2)
    one = Call("gt", (Column(left, "v"), Literal(0, pa.int64())))
    two = Call(chance.choice(("ne", "le", "lt")), (Column(left, "v"), Column(right, "v")))
    several: list[list[Expr]] = [[one], [two], [one, two]]
    return chance.choice(several)


def _bounds(chance: Random, size: int, window: float) -> list[Constraint]:
    width = max(1, round(window * _MICROS))
    if chance.random() < 0.5:
        return list(global_window(size, width))
    bounds = []
    for i, j in pairwise(range(size)):
        ahead = chance.choice((width, width, width // 2, 0))
        back = chance.choice((width, 0, -ahead // 3))
        bounds += [Constraint(i, j, ahead), Constraint(j, i, back)]
    return bounds
