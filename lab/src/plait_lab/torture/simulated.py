"""Torture on simulated processors: tasks die, caches are lost, disks fill up, plans change.

The processors are those that run on Spark, with the packets that Spark would shuffle. What Spark
does around them (commit together, repeat what failed) is `plait_lab.laws.processors.Cluster`.
"""

from __future__ import annotations

import resource
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random

from plait.node.durable.store import Engines, OwnEngines
from plait.node.epochs import Epoch
from plait.spark.arena.engines import Arena, Places
from plait_lab.exhaustive.plans import sample_plan
from plait_lab.laws.hosts import with_pauses
from plait_lab.laws.processors import Cluster
from plait_lab.laws.strategies.moves import Restless
from plait_lab.torture.cases import Case
from plait_lab.torture.local import REQUESTS, check, plan_for, policy_for
from plait_lab.torture.tally import Tally


def play(case: Case) -> Tally:
    """Run a case and check its answer; what happened."""
    with tempfile.TemporaryDirectory(prefix="plait-torture-") as folder:
        return _play(case, Path(folder))


def _play(case: Case, folder: Path) -> Tally:
    chance = case.chance("simulated")
    cluster = Cluster(
        case.query,
        plan_for(case, chance),
        chance.choice((1, 2, 3, 5)),
        _workers(case, chance, folder),
        adapt=policy_for(case, chance),
        tuning=case.tuning,
        seed=chance.choice((None, chance.randrange(1 << 63))),
    )
    dangers = _Dangers(case, chance, folder)
    tally, found, late = Tally(queries=1), [], dict.fromkeys(case.query.names, 0)
    epoch: Epoch | None = None
    manager = Restless(case.chance("groups"), busy=0.7 if case.has("groups") else 0.0)
    for number, batch in enumerate(with_pauses(case.batches, case.chance("pauses"))):
        epoch = _decided(case, chance, epoch)
        manager.manage(cluster)
        dangers.strike()
        with dangers.full_disk():
            results = cluster.run(
                batch,
                tasks=chance.choice((1, 1, 2, 3)),
                clock=1_000_000 + 1_000 * number,
                worker_of=lambda _: chance.randrange(2),
                die=dangers.die,
                epoch=epoch,
            )
        found.append(results)
        for report in cluster.reports:
            tally.rebuilds += report.rebuilt
            tally.migrations += sum(1 for m in report.migrations if not m.get("refused"))
            for name, n in report.late.items():
                late[name] += n
    tally.unchecked = 0 if check(case, found, late) else 1
    tally.moves = manager.ended + manager.given_up
    tally.rows = sum(table.num_rows for batch in case.batches for table in batch.values())
    tally.results = sum(table.num_rows for table in found)
    tally.late, tally.crashes = sum(late.values()), dangers.deaths
    tally.full_disks = dangers.full_disks
    return tally


def _workers(case: Case, chance: Random, folder: Path) -> Sequence[Engines]:
    """Two Python workers; on most hosts they share their engines through an arena."""
    if chance.random() < 0.3:
        return OwnEngines(), OwnEngines()
    limit = chance.choice((0, 1 << 15, 1 << 40))
    places = Places(folder / "memory", folder / "disk", limit=limit, smallest=1)
    return Arena("run", places), Arena("run", places)


def _decided(case: Case, chance: Random, epoch: Epoch | None) -> Epoch | None:
    """What the driver says: now and then another plan, or that processors choose for themselves."""
    if not case.has("moves") or chance.random() < 0.85:
        return epoch
    number = 1 if epoch is None else epoch.number + 1
    plan = sample_plan(case.query, chance) if chance.random() < 0.7 else None
    return Epoch(number, plan, chance.choice(REQUESTS))


class _Dangers:
    """What goes wrong from outside."""

    def __init__(self, case: Case, chance: Random, folder: Path) -> None:
        self._chance = chance
        self._folder = folder
        self._often = chance.choice((0.0, 0.02, 0.2)) if case.has("crashes") else 0.0
        self._lost = 0.1 if case.has("crashes") else 0.0
        self._full = chance.choice((0.0, 0.2)) if case.has("full disks") else 0.0
        self.deaths = 0
        self.full_disks = 0

    def die(self, processor: int, step: int) -> bool:
        """Whether a task is killed here."""
        del processor, step
        died = self._chance.random() < self._often
        self.deaths += died
        return died

    def strike(self) -> None:
        """Before a batch: now and then somebody empties the folders that the workers share."""
        if self._chance.random() < self._lost:
            for place in ("memory", "disk"):
                for found in (self._folder / place).glob("*"):
                    shutil.rmtree(found, ignore_errors=True)

    @contextmanager
    def full_disk(self) -> Iterator[None]:
        """Now and then, a batch during which files cannot grow beyond a few bytes.

        The limit on the size of files stands for the end of the disk: writing and reserving fail
        at that byte, wherever it is, as they would there.
        """
        if self._chance.random() >= self._full:
            yield
            return
        self.full_disks += 1
        usual = resource.getrlimit(resource.RLIMIT_FSIZE)
        bytes_left = self._chance.choice((0, 1, 100, 1 << 12, 1 << 16))
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, usual[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, usual)
