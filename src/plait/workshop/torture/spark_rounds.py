"""Rounds of a campaign on Spark: random queries, data, plans and orders, and their files.

A round follows from a seed: the same seed is the same query, data, plan, changes of plan and
orders to kill. It is laid out in a folder, and read again by the process that runs it:

    round.json      query, plan, policy and the rest of `Round`
    in/STREAM/      a Parquet file per batch
    changes/        changes of plan that are still to be decided
    orders/ kills/  orders that wait, and orders that were obeyed
    starts          a line for each start of the query
    checkpoint/     of the query, with its control directory
    out/            what the sink wrote
    done            when all input is used up
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from plait.adapt.policy import Policy
from plait.plan.enumerate import sample_plan
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.migration import Strategy
from plait.plan.routed import Plan, routed
from plait.plan.serde import from_dict, to_dict
from plait.plan.text import read_plan
from plait.query.bounds import Constraint, global_window, stream_windows
from plait.query.expr import Call, Column, Expr
from plait.query.query import Field, Output, Query, Stream, make_query
from plait.query.serde import query_from_dict, query_to_dict
from plait.tuning import USUAL, Tuning
from plait.workshop.laws import golden
from plait.workshop.laws.policies import eager
from plait.workshop.laws.tunings import drawn_tuning
from plait.workshop.torture.killpoints import (
    BY_NAME,
    MASTERS,
    POINTS,
    SINKS,
    Order,
    Orders,
    Point,
    Target,
    targets,
)

Row = dict[str, object]
Batch = Mapping[str, Sequence[Row]]

_SECOND = 1_000_000
_STEP = 10 * _SECOND
"""How far event time gets in a batch."""

_ROWS = {2: 120, 3: 60, 4: 24}
"""The most rows of a stream in a batch, by the number of streams: results multiply."""

_KEY_TYPES: tuple[pa.DataType, ...] = (
    *[pa.string()] * 6,
    *[pa.int64()] * 2,
    pa.int32(),
    pa.float64(),
    pa.decimal128(12, 2),
    pa.date32(),
    pa.binary(),
    pa.timestamp("us"),
)
"""What keys are; mostly strings, which are encoded and forgotten again."""

_SHORT = 6
"""Batches of a round that visits the points of a Delta table."""
_DELTA = 0.25
"""The share of rounds whose results go to a Delta table."""

_UPGRADES = 0.15
"""The share of rounds that go on from a golden checkpoint."""

# --- rounds ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Change:
    """A decision of the driver's, once so many batches are committed."""

    batch: int
    plan: Node | None
    strategy: Strategy | Literal["auto"] = "auto"

    def to_dict(self) -> dict[str, object]:
        """For a file."""
        plan = None if self.plan is None else to_dict(self.plan)
        return {"batch": self.batch, "plan": plan, "strategy": self.strategy}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any], query: Query) -> Change:
        """The inverse of `to_dict`."""
        plan = None if value["plan"] is None else from_dict(value["plan"], query)
        return cls(value["batch"], plan, value["strategy"])


@dataclass(frozen=True, slots=True)
class Round:
    """A query, how it runs, and where."""

    folder: Path
    master: str
    query: Query
    plan: Plan
    processors: int
    policy: Policy | None = None
    lies: int | None = None
    """The seed of false statistics for the adaptive loop, if it is to be lied to."""
    shared: bool = True
    """Whether the control directory is in the checkpoint."""
    staged: bool = False
    """Whether there is a stage between operator and sink in which something can die."""
    tuning: Tuning = USUAL
    upgrade: str | None = None
    """The golden checkpoint that it goes on from, if any."""
    moves: bool = False
    """Whether partition groups move."""
    delta: bool = False
    """Whether results go to a Delta table."""

    def changes(self) -> list[tuple[Path, Change]]:
        """The changes of plan that have not been decided yet."""
        found = sorted((self.folder / "changes").glob("*.json"))
        return [(p, Change.from_dict(json.loads(p.read_text()), self.query)) for p in found]


@dataclass(frozen=True, slots=True)
class Story:
    """A round, what arrives in it, and what happens to it."""

    round: Round
    batches: tuple[Batch, ...]
    changes: tuple[Change, ...]
    orders: tuple[Order, ...]

    @property
    def seen(self) -> int:
        """How many of the batches were joined before the round."""
        return 0 if self.round.upgrade is None else golden.WRITTEN


def random_story(folder: Path, master: str, seed: str, *, tour: Sequence[str] = ()) -> Story:
    """The round with this seed; with a `tour` the orders are to visit these points.

    >>> a, b = (random_story(Path("x"), MASTERS[0], "1/0") for _ in range(2))
    >>> a == b, len(a.orders) > 5
    (True, True)
    """
    chance = Random(seed)
    if not tour and chance.random() < _UPGRADES:
        return _upgrade(folder, master, chance)
    delta = _to_delta(seed, tour)
    size = 3 if tour else chance.choice((2, 3, 3, 3, 4))
    query = _query(chance, size)
    modes = ("all", "all", "changes", "adaptive", "routed")
    mode = "all" if tour else chance.choice(modes)
    moves = bool(tour) or chance.random() < 0.4
    count_ = (
        _SHORT
        if tour and delta
        else 16
        if tour
        else chance.randint(10, 16)
        if moves
        else chance.randint(4, 9)
    )
    batches = tuple(_batches(chance, query, count_))
    plan: Plan = sample_plan(query, chance)
    if mode == "routed":
        plan = routed(
            chance.choice(("teddies", "eddies")), policy=chance.choice(("lottery", "ordered"))
        )
    policy = lies = None
    if mode in ("all", "adaptive"):
        policy = eager(chance.choice((0.001, 1.0, 100.0)), chance.choice((None, 0.0)))
        lies = chance.randrange(1 << 32)
    changes: list[Change] = []
    if tour:
        changes = _tour_changes(chance, query)
    elif mode in ("all", "changes") and size > 2:
        changes = _changes(chance, query, count_, release=mode == "all")
    if tour:
        orders = _tour(master, tour, delta=delta)
    else:
        orders = _orders(chance, master, count_, mode, moves=moves, delta=delta)
    round_ = Round(
        folder,
        master,
        query,
        plan,
        2 if tour else chance.choice((2, 2, 3) if moves else (1, 2, 2, 2, 3, 4)),
        policy,
        lies,
        shared=moves or chance.random() < 0.85,
        staged=any(order.point.startswith("sink-") for order in orders),
        tuning=USUAL if tour else drawn_tuning(Random(f"{seed} tuning")),
        moves=moves,
        delta=delta,
    )
    return Story(round_, batches, tuple(changes), tuple(orders))


def _to_delta(seed: str, tour: Sequence[str]) -> bool:
    """Whether results go to a Delta table: in some rounds, and where only its points are left."""
    if tour:
        return all(BY_NAME[point].group == "delta" for point in tour)
    return Random(f"{seed} delta").random() < _DELTA


def _upgrade(folder: Path, master: str, chance: Random) -> Story:
    """A query that goes on from a checkpoint of an earlier version."""
    query = golden.golden_query()
    more = chance.randint(2, 5)  # the sink's log is compacted later, and needs the first batches
    batches: list[Batch] = [
        {name: golden.golden_rows(s, b) for s, name in enumerate(query.names)}
        for b in range(golden.WRITTEN)
    ]
    for b in range(golden.WRITTEN, golden.WRITTEN + more):
        batches.append(
            {
                name: [
                    {
                        "ts": b * _STEP + chance.randint(-_STEP, _STEP),
                        "sym": chance.choice("ABCDE") if chance.random() < 0.95 else None,
                        "price": 1000.0 * b + n,
                    }
                    for n in range(chance.randint(0, 60))
                ]
                for name in query.names
            }
        )
    orders = _orders(chance, master, len(batches), "routed", moves=False, delta=False)
    round_ = Round(
        folder,
        master,
        query,
        sample_plan(query, chance),
        golden.PROCESSORS,
        staged=any(order.point.startswith("sink-") for order in orders),
        tuning=drawn_tuning(chance),
        upgrade=chance.choice(tuple(golden.CHECKPOINTS)),
    )
    return Story(round_, tuple(batches), (), tuple(orders))


def _query(chance: Random, size: int) -> Query:
    """Streams that share one key, or a chain of them, or a star, within windows of any kind."""
    names = "abcd"[:size]
    shape = chance.choice(("one", "one", "chain", "star"))
    keys: dict[str, dict[str, pa.DataType]] = {name: {} for name in names}
    equal: list[Expr] = []
    type_ = chance.choice(_KEY_TYPES)
    for i, right in enumerate(names[1:], 1):
        left = names[0] if shape in ("one", "star") else names[i - 1]
        column = "k" if shape == "one" else f"k{i}"
        if shape != "one":
            type_ = chance.choice(_KEY_TYPES)
        keys[left][column] = keys[right][column] = type_
        equal.append(Call("eq", (Column(left, column), Column(right, column))))
    zone = chance.choice((None, None, "UTC"))
    streams = []
    for name in names:
        fields = [Field("ts", pa.timestamp("us", zone)), Field("id", pa.int64())]
        fields += [Field(k, t) for k, t in keys[name].items()] + [Field("v", pa.int64())]
        streams.append(Stream(name, tuple(fields), "ts", chance.choice((0, 2, 5, 12)) * _SECOND))
    if chance.random() < 0.4:
        compare = chance.choice(("le", "ne", "gt"))
        equal.append(Call(compare, (Column(names[0], "v"), Column(names[-1], "v"))))
    select = [Output(f"{name}_id", Column(name, "id")) for name in names]
    select += [Output("ts", Column(names[0], "ts"))]
    select += [Output(f"key_{k}", Column(names[0], k)) for k in keys[names[0]]]
    return make_query(streams, equal, _bounds(chance, size), select)


def _bounds(chance: Random, size: int) -> tuple[Constraint, ...]:
    def width() -> int:
        return chance.choice((2, 5, 8, 15)) * _SECOND

    kind = chance.choice(("global", "global", "streams", "intervals"))
    if kind == "global":
        return global_window(size, width())
    if kind == "streams":
        return stream_windows([width() for _ in range(size)])
    pairs = [(chance.randrange(j), j) for j in range(1, size)]
    return tuple(
        c for i, j in pairs for c in (Constraint(i, j, width()), Constraint(j, i, width()))
    )


def _batches(chance: Random, query: Query, count_: int) -> list[Batch]:
    """Rows out of order, some too late, with keys that come and go, ties, nulls and silence."""
    tick = chance.choice((1, _SECOND // 10, _SECOND))
    domain, drift = chance.choice((1, 3, 8, 20)), chance.choice((0, 1, 5, 20))
    most = _ROWS[len(query.streams)] if domain > 1 else 12
    hot, nulls = chance.choice((0.0, 0.3)), chance.choice((0.0, 0.04))
    disorder = chance.choice((0, 3, 8, 25)) * _SECOND
    ids = dict.fromkeys(query.names, 0)
    found: list[Batch] = []
    for b in range(count_):
        batch: dict[str, list[Row]] = {}
        for stream in query.streams:
            silent = chance.random() < 0.08
            rows = batch[stream.name] = []
            for _ in range(0 if silent else chance.randint(0, most)):
                moment = b * _STEP + chance.randint(-disorder, _STEP)
                row: Row = {"ts": moment // tick * tick, "id": ids[stream.name]}
                ids[stream.name] += 1
                for f in stream.fields[2:]:
                    number = b * drift + (0 if chance.random() < hot else chance.randrange(domain))
                    row[f.name] = _value(chance, f.type, number) if f.name != "v" else number % 5
                for name in row:
                    if name != "id" and chance.random() < nulls:
                        row[name] = None
                rows.append(row)
        found.append(batch)
    return found


def _value(chance: Random, type_: pa.DataType, number: int) -> object:
    """The key with this number."""
    if type_ == pa.string():
        return f"kéy-{number}" if number % 3 else "" if number == 0 else f"k{number}"
    if type_ == pa.binary():
        return number.to_bytes(3, "big")
    if type_ == pa.float64():
        return {0: chance.choice((0.0, -0.0)), 1: float("nan")}.get(number, number / 4)
    if pa.types.is_decimal(type_):
        return Decimal(number) / 4
    return number * _SECOND if pa.types.is_timestamp(type_) else number


def _changes(chance: Random, query: Query, count_: int, *, release: bool) -> list[Change]:
    found = []
    for batch in sorted(chance.sample(range(count_ - 1), min(count_ - 1, chance.randint(2, 4)))):
        strategy: Strategy = chance.choice(("parallel-track", "moving-state", "moving-state"))
        if release and chance.random() < 0.3:
            found.append(Change(batch, None))
        else:
            found.append(Change(batch, sample_plan(query, chance), strategy))
    return found


def _tour_changes(chance: Random, query: Query) -> list[Change]:
    """Both strategies while parts die, then a parallel track that lives to its end, then none."""
    found: list[Change] = []
    while len(found) < 4:
        plan = sample_plan(query, chance)
        if not found or plan != found[-1].plan:
            batch, strategy = _TOUR[len(found)]
            found.append(Change(batch, plan, strategy))
    return [*found, Change(13, None)]


_TOUR: tuple[tuple[int, Strategy], ...] = (
    (2, "parallel-track"),
    (4, "moving-state"),
    (6, "parallel-track"),
    (8, "parallel-track"),
)


def _orders(
    chance: Random, master: str, count_: int, mode: str, *, moves: bool, delta: bool
) -> list[Order]:
    """Many deaths of workers, some of executors, few of drivers: in the order of what they cost."""
    groups = {"changes": "adaptive", "adaptive": "migration", "routed": "adaptive migration"}
    unlikely = [*groups.get(mode, "").split(), *([] if moves else ["moves"]), _other_sink(delta)]
    points = [p for p in POINTS if p.group not in unlikely]
    if chance.random() < 0.5:  # a further stage costs time, so only some rounds have it
        points = [p for p in points if p.place != "sink"]
    executors = 0 if master == MASTERS[0] else chance.randint(1, 4)
    numbers: dict[Target, int] = {
        "worker": chance.randint(30, 90),
        "executor": executors,
        "driver": int(chance.random() < 0.3),
        "query": int(chance.random() < 0.5),
        "disk": int(chance.random() < 0.5),
    }
    found = []
    for target, number in numbers.items():
        fit = [p for p in points if target in targets(p, master)]
        for point in chance.choices(fit, k=number):
            some = point.name in ("any-time", "checkpoint-begun")
            delay = chance.uniform(0.0, 0.8) if some else 0.0
            batch = 0 if _is_early(point) else chance.randrange(count_)
            found.append(Order(point.name, target, batch, delay))
    return found


def _is_early(point: Point) -> bool:
    """Whether a point is reached before the first batch, or apart from batches."""
    apart = point.place == "driver" and point.group != "delta"
    return apart or point.name == "checkpoint-begun"


def _other_sink(delta: bool) -> str:
    """The points that a round does not reach."""
    return SINKS[0] if delta else SINKS[1]


def _tour(master: str, points: Sequence[str], *, delta: bool) -> list[Order]:
    """Each of these points once, by whatever is cheapest, and on a cluster by executors too."""
    found = []
    reached = [p for p in POINTS if p.name in points and p.group != _other_sink(delta)]
    for number, point in enumerate(reached):
        able = targets(point, master)
        second = master != MASTERS[0] and number % 3 == 0 and "executor" in able
        batch = 0 if _is_early(point) or point.group == "migration" else number % 6
        found.append(Order(point.name, "executor" if second else able[0], batch))
    return found


# --- files ----------------------------------------------------------------------------------------


def write_story(story: Story) -> None:
    """Lay out a round in its folder, for a driver to run."""
    round_, folder = story.round, story.round.folder
    plan = round_.plan
    given = {
        "master": round_.master,
        "query": query_to_dict(round_.query),
        "plan": to_dict(plan) if isinstance(plan, Join | Leaf) else str(plan),
        "processors": round_.processors,
        "policy": None if round_.policy is None else round_.policy.to_dict(),
        "lies": round_.lies,
        "shared": round_.shared,
        "staged": round_.staged,
        "tuning": asdict(round_.tuning),
        "upgrade": round_.upgrade,
        "moves": round_.moves,
        "delta": round_.delta,
    }
    (folder / "changes").mkdir(parents=True)
    (folder / "round.json").write_text(json.dumps(given))
    for number, change in enumerate(story.changes):
        path = folder / "changes" / f"{number:03}.json"
        path.write_text(json.dumps(change.to_dict()))
    Orders(folder).give(story.orders)
    for stream in round_.query.streams:
        (folder / "in" / stream.name).mkdir(parents=True)
        for number, batch in enumerate(story.batches):
            # In one step and with its final time: Spark reads files in the order of their times.
            new, when = folder / "new", 1_700_000_000 + number
            pq.write_table(stream_table(stream, batch.get(stream.name, ())), new)
            os.utime(new, (when, when))
            new.rename(folder / "in" / stream.name / f"{number}.parquet")
    if round_.upgrade is not None:
        origin = golden.CHECKPOINTS[round_.upgrade]
        golden.unpack(origin, folder / "checkpoint", folder / "in")


def read_round(folder: Path) -> Round:
    """The round in a folder."""
    given = json.loads((folder / "round.json").read_text())
    query = query_from_dict(given["query"])
    return Round(
        folder,
        given["master"],
        query,
        read_plan(query, given["plan"]),
        given["processors"],
        None if given["policy"] is None else Policy.from_dict(given["policy"]),
        given["lies"],
        given["shared"],
        given["staged"],
        Tuning(**given["tuning"]),
        given["upgrade"],
        given["moves"],
        given["delta"],
    )


def stream_table(stream: Stream, rows: Sequence[Row]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), schema=stream.schema)


def warm() -> None:
    """Run small queries in this process, so that what kernels they need is compiled and loaded."""
    from plait.workshop.laws.processors import Cluster

    for number in range(6):
        story = random_story(Path(), MASTERS[0], f"warm/{number}")
        round_ = story.round
        cluster = Cluster(round_.query, round_.plan, 2, aside=True, adapt=round_.policy)
        for batch in story.batches[:3]:
            cluster.run({s.name: stream_table(s, batch[s.name]) for s in round_.query.streams})
