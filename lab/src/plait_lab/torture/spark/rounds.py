"""Rounds of a campaign on Spark: random queries, data, plans and orders, and their files.

A round follows from a seed: the same seed is the same query, data, plan, changes of plan and
orders to kill. It is laid out in a folder, and read again by the process that runs it:

    round.json      query, plan, policy and the rest of `Round`
    in/ later/      Parquet files of each stream: see `spark_inputs`
    phase           the number of the phase that the round is in
    changes/        changes of plan that are still to be decided
    orders/ kills/  orders that wait, and orders that were obeyed
    starts          a line for each start of the query
    checkpoint/     of the query, with its control directory
    out/            what the sink wrote
    done            when all input is used up
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Literal

from plait.adapt.policy import PlanPolicy
from plait.groups.routing.routing import route
from plait.plan.jtree import Join, Leaf, Node
from plait.plan.migration import Strategy
from plait.plan.routed import Plan, routed
from plait.plan.serde import from_dict, to_dict
from plait.plan.text import read_plan
from plait.query.query import Query
from plait.query.serde import query_from_dict, query_to_dict
from plait.tuning import USUAL, Tuning
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws import golden
from plait_lab.laws.strategies.policies import eager
from plait_lab.laws.strategies.questions import drawn_questions
from plait_lab.laws.strategies.tunings import drawn_tuning
from plait_lab.torture.spark.data import (
    STEP,
    Batch,
    drawn_batches,
    drawn_query,
    with_empty_batches,
)
from plait_lab.torture.spark.inputs import stream_table, write_inputs
from plait_lab.torture.spark.killpoints import (
    APART,
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

_SHORT = 6
"""Batches of a round that visits the points of a group apart."""
_DELTA = 0.25
"""The share of rounds whose results go to a Delta table."""

_UPGRADES = 0.15
"""The share of rounds that go on from a golden checkpoint."""

_BALANCE = 0.3
"""The share of rounds whose partition groups move by themselves."""

_PHASES = 0.6
"""The share of the others in which the question or the number of processors changes."""

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
class Phase:
    """What a query is started again with, once the batches before are done."""

    since: int
    """The first batch."""
    query: Query
    processors: int

    def to_dict(self) -> dict[str, object]:
        """For a file."""
        return {
            "since": self.since,
            "query": query_to_dict(self.query),
            "processors": self.processors,
        }

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Phase:
        """The inverse of `to_dict`."""
        return cls(value["since"], query_from_dict(value["query"]), value["processors"])


@dataclass(frozen=True, slots=True)
class Round:
    """A query, how it runs, and where."""

    folder: Path
    master: str
    query: Query
    plan: Plan
    processors: int
    policy: PlanPolicy | None = None
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
    files: int = 0
    """How many files of a stream a batch takes, of which Spark prunes some; 0: one, and none."""
    later: tuple[Phase, ...] = ()
    """What follows: other questions, other numbers of processors."""
    balance: bool = False
    """Whether partition groups move by themselves."""
    neighbours: bool = False
    """Whether somebody else wrote to the Delta table before, and goes on to."""

    @property
    def phases(self) -> tuple[Phase, ...]:
        """All phases, the first one included."""
        return (Phase(0, self.query, self.processors), *self.later)

    @property
    def labelled(self) -> bool:
        """Whether each row of the sink says in which phase it was written."""
        return bool(self.later) and not self.delta

    def phase(self) -> int:
        """The number of the phase that it is in."""
        path = self.folder / "phase"
        return int(path.read_text()) if path.exists() else 0

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

    @property
    def upgrades(self) -> int:
        """How often the query goes on from a checkpoint that was written for something else."""
        questions = [phase.query for phase in self.round.phases]
        changes = sum(a != b for a, b in pairwise(questions))
        return changes + (self.round.upgrade is not None)


def random_story(folder: Path, master: str, seed: str, *, tour: Sequence[str] = ()) -> Story:
    """The round with this seed; with a `tour` the orders are to visit these points.

    >>> a, b = (random_story(Path("x"), MASTERS[0], "1/0") for _ in range(2))
    >>> a == b, len(a.orders) > 5
    (True, True)
    """
    chance, more = Random(seed), Random(f"{seed} more")
    if not tour and chance.random() < _UPGRADES:
        return _upgrade(folder, master, chance)
    group = tour_group(tour) if tour else ""
    delta = group == "delta" or (not tour and more.random() < _DELTA)
    size = 3 if tour else chance.choice((2, 3, 3, 3, 4))
    query = drawn_query(chance, size)
    while tour and not _movable(query):
        query = drawn_query(chance, size)
    modes = ("all", "all", "changes", "adaptive", "routed")
    mode = "all" if tour else chance.choice(modes)
    moves = bool(tour) or chance.random() < 0.4
    count_ = (
        _SHORT
        if group
        else 16
        if tour
        else chance.randint(10, 16)
        if moves
        else chance.randint(4, 9)
    )
    batches = drawn_batches(chance, query, count_)
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
    if tour and group != "rebalance":
        changes = _tour_changes(chance, query)
    elif mode in ("all", "changes") and size > 2:
        changes = _changes(chance, query, count_, release=mode == "all")
    if tour:
        orders = _tour(master, tour, group)
    else:
        batches = with_empty_batches(batches, more)
        orders = _orders(chance, master, count_, mode, moves=moves, delta=delta)
    processors = 2 if tour else chance.choice((2, 2, 3) if moves else (1, 2, 2, 2, 3, 4))
    shared = moves or chance.random() < 0.85
    later: tuple[Phase, ...] = ()
    if group == "rebalance":
        later = (Phase(_SHORT // 2, query, 3),)
    elif not tour and more.random() < _PHASES:
        query, later = _phases(more, query, len(batches), processors, delta=delta)
        orders += _between(more, later)
    balance = not tour and more.random() < _BALANCE
    round_ = Round(
        folder,
        master,
        query,
        plan,
        processors,
        policy,
        lies,
        shared=shared or balance or bool(later),
        staged=any(order.point.startswith("sink-") for order in orders),
        tuning=USUAL if tour else drawn_tuning(Random(f"{seed} tuning")),
        moves=moves and group != "rebalance" and not balance,
        delta=delta,
        files=0 if tour else more.choice((1, 1, 2, 3)),
        later=later,
        balance=balance,
        neighbours=delta and not tour and more.random() < 0.7,
    )
    return Story(round_, tuple(batches), tuple(changes), tuple(orders))


def tour_group(tour: Sequence[str]) -> str:
    """The group of points that a tour is about, if it is one that takes a round of its own."""
    groups = {BY_NAME[point].group for point in tour}
    return next((group for group in APART if groups == {group}), "")


def _phases(
    chance: Random, query: Query, batches: int, processors: int, *, delta: bool
) -> tuple[Query, tuple[Phase, ...]]:
    """The first question, and what follows: other questions, other numbers of processors.

    The columns of a Delta table stay, and groups move only where all streams share a key.
    """
    asked = drawn_questions(query, batches, chance, keep=query.select)
    if delta:
        asked = [one._replace(query=query) for one in asked]
    later = []
    for since, question in asked[1:]:
        if _movable(query) and (delta or chance.random() < 0.5):
            processors = chance.choice([n for n in (1, 2, 3, 4) if n != processors])
        later.append(Phase(since, question, processors))
    return asked[0].query, tuple(later)


def _movable(query: Query) -> bool:
    """Whether partition groups can move: all streams share a key."""
    return route(query.graph, 2).by is not None


def _between(chance: Random, later: Sequence[Phase]) -> list[Order]:
    """Deaths of the driver in the middle of a change of the number of processors."""
    points = [p.name for p in POINTS if p.group == "rebalance"]
    number = chance.randint(0, 2) if len({phase.processors for phase in later}) > 1 else 0
    return [Order(point, "driver") for point in chance.sample(points, number)]


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
                        "ts": b * STEP + chance.randint(-STEP, STEP),
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
    unlikely = [*groups.get(mode, "").split(), *([] if moves else ["moves"])]
    unlikely += [_other_sink(delta), "rebalance"]
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


def _tour(master: str, points: Sequence[str], group: str) -> list[Order]:
    """Each of these points once, by whatever is cheapest, and on a cluster by executors too."""
    found = []
    apart = [other for other in APART if other != group]
    reached = [p for p in POINTS if p.name in points and p.group not in apart]
    for number, point in enumerate(reached):
        able = targets(point, master)
        second = master != MASTERS[0] and number % 3 == 0 and "executor" in able
        batch = 0 if _is_early(point) or point.group == "migration" else number % 6
        found.append(Order(point.name, "executor" if second else able[0], batch))
    return found


# --- files ----------------------------------------------------------------------------------------


def write_story(story: Story) -> int:
    """Lay out a round in its folder, for a driver to run; how many batches have no partition."""
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
        "files": round_.files,
        "later": [phase.to_dict() for phase in round_.later],
        "balance": round_.balance,
        "neighbours": round_.neighbours,
    }
    (folder / "changes").mkdir(parents=True)
    (folder / "round.json").write_text(json.dumps(given))
    for number, change in enumerate(story.changes):
        path = folder / "changes" / f"{number:03}.json"
        path.write_text(json.dumps(change.to_dict()))
    Orders(folder).give(story.orders)
    begins = {phase.since for phase in round_.later}
    empty = write_inputs(folder, round_.query.streams, story.batches, round_.files, begins)
    if round_.upgrade is not None:
        origin = golden.CHECKPOINTS[round_.upgrade]
        golden.unpack(origin, folder / "checkpoint", folder / "in")
    return empty


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
        None if given["policy"] is None else PlanPolicy.from_dict(given["policy"]),
        given["lies"],
        given["shared"],
        given["staged"],
        Tuning(**given["tuning"]),
        given["upgrade"],
        given["moves"],
        given["delta"],
        given["files"],
        tuple(map(Phase.from_dict, given["later"])),
        given["balance"],
        given["neighbours"],
    )


def warm() -> None:
    """Run small queries in this process, so that what kernels they need is compiled and loaded."""
    from plait_lab.laws.processors import Cluster

    for number in range(6):
        story = random_story(Path(), MASTERS[0], f"warm/{number}")
        round_ = story.round
        cluster = Cluster(round_.query, round_.plan, 2, aside=True, adapt=round_.policy)
        for batch in story.batches[:3]:
            cluster.run({s.name: stream_table(s, batch[s.name]) for s in round_.query.streams})
