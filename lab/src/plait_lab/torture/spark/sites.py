"""A campaign against joins over sites on Spark: their network is bad, and their processes die.

A *round* is a join of some streams at some sites, run as one application or as one per site, whose
mail goes through a network that loses, repeats, delays, reorders and damages it (`postman`), while
Python workers and drivers are killed at named points (`killpoints.SITE_POINTS`). In the end the
results are those of the definition. The same name repeats the same round.

    round.json        what `SiteRound` says
    feeds/ later/     a Parquet file of each stream for each step
    step              the number of the step that the round is in
    box/ relay/       mail as it was sent, and as it comes
    checkpoint-*/     of each application
    found-*/          the results of each application
    orders/ kills/    orders that wait, and orders that were obeyed
    done              when all has come to rest
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq

from plait.errors import PlaitError
from plait.tuning import Tuning
from plait_lab.laws.strategies.tunings import NAMES, drawn_tuning
from plait_lab.torture.campaign import Failure
from plait_lab.torture.spark.campaign import Driver, sink_files
from plait_lab.torture.spark.killpoints import LOCAL, SITE_POINTS, Order, Orders, Place, Target
from plait_lab.torture.spark.postman import FAULTS, Fault, Postman
from plait_lab.torture.tally import Tally

MODULE = "plait_lab.torture.spark.site_driver"

_SECOND = 1_000_000
_STEP = 10 * _SECOND
_WITHIN = 6 * _SECOND
_QUIET_STEPS = 6
"""Steps at the end whose rows find nobody: they give sites the occasion to send mail again."""
_TOURS = 2
"""Rounds at the beginning that visit all points."""

Rows = Mapping[str, list[list[tuple[int, int, int]]]]
"""By stream and step: key, number and event time of each row."""


@dataclass(frozen=True, slots=True)
class SiteRound:
    """A join over sites, how it runs, and where."""

    folder: Path
    at: Mapping[str, tuple[str, ...]]
    """The streams that arrive at each site."""
    divided: bool
    """Whether each site is an application of its own."""
    results: str | None
    steps: int
    tuning: Tuning

    @property
    def streams(self) -> list[str]:
        """All streams, in the order of the join."""
        return sorted(stream for streams in self.at.values() for stream in streams)

    def step(self) -> int:
        """The number of the step that it is in."""
        path = self.folder / "step"
        return int(path.read_text()) if path.exists() else 0

    def release(self, step: int) -> None:
        """Let the files of a step come, if they have not."""
        for path in sorted((self.folder / "later" / str(step)).glob("*.parquet")):
            path.rename(self.folder / "feeds" / path.stem / f"{step:04}.parquet")


@dataclass(frozen=True, slots=True)
class SiteStory:
    """A round, the rows that arrive in it, and what happens to it."""

    round: SiteRound
    rows: Rows
    orders: tuple[Order, ...]
    often: float
    """The share of mail to which something happens."""


def random_site_story(folder: Path, seed: str, *, tour: bool = False) -> SiteStory:
    """The round with this seed; a tour has an order for each point.

    >>> random_site_story(Path("x"), "1/0") == random_site_story(Path("x"), "1/0")
    True
    """
    chance = Random(seed)
    at = chance.choice(({"oslo": ("a",), "rome": ("b", "c")}, {"oslo": ("a", "c"), "rome": ("b",)}))
    steps = chance.randint(3, 5)
    tuning = drawn_tuning(chance)
    if "resend_steps" in NAMES:  # or the rounds would have to be much longer
        tuning = Tuning(**asdict(tuning) | {"resend_steps": chance.choice((1, 2))})
    rows = {
        name: [_rows(chance, step, steps) for step in range(steps + _QUIET_STEPS)] for name in "abc"
    }
    if tour:
        orders = [
            Order(point.name, _target(point.place), n % 3) for n, point in enumerate(SITE_POINTS)
        ]
    else:
        some = chance.choices(SITE_POINTS, k=chance.randint(2, 8))
        orders = [Order(p.name, _target(p.place), chance.randrange(2 * steps)) for p in some]
    round_ = SiteRound(
        folder,
        at,
        chance.random() < 0.5,
        chance.choice((None, "oslo", "rome")),
        steps + _QUIET_STEPS,
        tuning,
    )
    return SiteStory(round_, rows, tuple(orders), chance.choice((0.1, 0.3)))


def _target(place: Place) -> Target:
    return "worker" if place == "task" else "driver"


def _rows(chance: Random, step: int, steps: int) -> list[tuple[int, int, int]]:
    """Rows of ten seconds in any order; the last second is always there."""
    if step >= steps:
        return [(-1 - chance.randrange(1 << 40), 1000 * step, (step + 1) * _STEP - _SECOND)]
    seconds = [9, *(chance.randrange(10) for _ in range(chance.randint(0, 12)))]
    return [
        (chance.randrange(3), 1000 * step + n, step * _STEP + second * _SECOND)
        for n, second in enumerate(seconds)
    ]


def write_site_story(story: SiteStory) -> None:
    """Lay out a round in its folder, for a driver to run."""
    round_, folder = story.round, story.round.folder
    folder.mkdir(parents=True)
    given = {
        "at": round_.at,
        "divided": round_.divided,
        "results": round_.results,
        "steps": round_.steps,
        "tuning": asdict(round_.tuning),
    }
    (folder / "round.json").write_text(json.dumps(given))
    Orders(folder).give(story.orders)
    for name, steps in story.rows.items():
        (folder / "feeds" / name).mkdir(parents=True)
        for number, rows in enumerate(steps):
            place = folder / "later" / str(number)
            place.mkdir(parents=True, exist_ok=True)
            keys, ids, times = zip(*rows, strict=True)
            columns = {
                "k": pa.array(keys, pa.int64()),
                "id": pa.array(ids, pa.int64()),
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
            pq.write_table(pa.table(columns), place / f"{name}.parquet")


def read_site_round(folder: Path) -> SiteRound:
    """The round in a folder."""
    given = json.loads((folder / "round.json").read_text())
    at = {site: tuple(streams) for site, streams in given["at"].items()}
    tuning = Tuning(**given["tuning"])
    return SiteRound(folder, at, given["divided"], given["results"], given["steps"], tuning)


def definition(rows: Rows) -> Counter[tuple[int, ...]]:
    """The numbers of rows that have the same key and are close enough, one of each stream."""
    every = {name: [row for step in steps for row in step] for name, steps in rows.items()}
    return Counter(
        (a[1], b[1], c[1])
        for a in every["a"]
        for b in every["b"]
        if a[0] == b[0] and abs(a[2] - b[2]) <= _WITHIN
        for c in every["c"]
        if a[0] == c[0] and abs(a[2] - c[2]) <= _WITHIN and abs(b[2] - c[2]) <= _WITHIN
    )


def check(story: SiteStory) -> tuple[int, list[str]]:
    """How many results there are, and in what they differ from the definition."""
    found: Counter[tuple[int, ...]] = Counter()
    for out in sorted(story.round.folder.glob("found-*/out")):
        for path in sink_files(out):
            table = pq.read_table(path)
            found.update(zip(*(table.column(n).to_pylist() for n in "abc"), strict=True))
    wanted = definition(story.rows)
    missing, surplus = wanted - found, found - wanted
    if not missing and not surplus:
        return found.total(), []
    return found.total(), [
        f"{missing.total()} results lost: {missing.most_common(3)}; "
        f"{surplus.total()} repeated or wrong: {surplus.most_common(3)}"
    ]


def run_site_story(
    story: SiteStory, driver: Driver, faults: tuple[Fault, ...] = FAULTS
) -> tuple[Tally, list[str]]:
    """Run a round to its end and compare; a failure says why and names the folder."""
    folder = story.round.folder
    write_site_story(story)
    postman = Postman(folder, f"{folder.name} mail", story.often, faults)
    postman.start()
    try:
        trouble = driver.run(folder)
    finally:
        postman.stop()
    results, found = (0, [trouble]) if trouble else check(story)
    kills = Orders(folder).kills()
    tally = Tally(
        queries=1,
        rows=sum(len(rows) for steps in story.rows.values() for rows in steps),
        results=results,
        mail_faults=postman.faults.total(),
        starts=len((folder / "starts").read_text().split()) if (folder / "starts").exists() else 0,
        kills=dict(Counter(kill.point for kill in kills)),
        victims=dict(Counter(f"{kill.target} of sites" for kill in kills)),
    )
    return tally, [f"{what}; mail: {dict(postman.faults)} (see {folder})" for what in found]


def campaign(seconds: float, seed: int, say: Callable[[str], None]) -> tuple[Tally, list[Failure]]:
    """Run rounds for so long, those that have begun to their ends."""
    until, total, failures = time.monotonic() + seconds, Tally(), list[Failure]()
    missing = {point.name for point in SITE_POINTS}
    home = Path(tempfile.mkdtemp(prefix="plait-torture-sites-"))
    driver = Driver(LOCAL, home, MODULE)
    try:
        for number in count():
            if time.monotonic() > until and (not missing or number >= _TOURS):
                break
            name = f"{seed}/{number}"
            tally, found = _run(name, driver)
            total.add(tally)
            missing -= set(tally.kills)
            failures += [Failure(name, text) for text in found]
            for text in found:
                say(f"FAILED round {name}: {text}")
            say(f"round {name} at sites: {tally.text()}; in all {total.text()}")
    except KeyboardInterrupt:
        say(f"stopped after {total.text() or 'nothing'}")
        raise
    finally:
        driver.close()
        if not failures:
            shutil.rmtree(home, ignore_errors=True)
    if missing:
        failures.append(Failure(f"{seed}/0", f"never reached: {', '.join(sorted(missing))}"))
    total.kills = {point.name: total.kills.get(point.name, 0) for point in SITE_POINTS}
    return total, failures


def repeat(case: str, say: Callable[[str], None]) -> tuple[Tally, list[Failure]]:
    """Run one round again, by the name that a campaign printed: SEED/NUMBER."""
    parts = case.split("/")
    if len(parts) != 2 or not all(map(str.isdecimal, parts)):
        raise PlaitError(
            f"{case!r} names no round at sites", remedy="give SEED/NUMBER, as it was printed"
        )
    driver = Driver(LOCAL, Path(tempfile.mkdtemp(prefix="plait-torture-sites-")), MODULE)
    try:
        tally, found = _run(case, driver)
    finally:
        driver.close()
    say(f"round {case} at sites: {tally.text()}")
    return tally, [Failure(case, text) for text in found]


def _run(name: str, driver: Driver) -> tuple[Tally, list[str]]:
    number = int(name.rpartition("/")[2])
    folder = driver.home / f"round{number}"
    return run_site_story(random_site_story(folder, name, tour=number < _TOURS), driver)
