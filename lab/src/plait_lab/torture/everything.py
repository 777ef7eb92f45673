"""Every kind of campaign, one after the other, within a given time.

A *kind* is a way to run queries, with what can go wrong there. Each has a share of the time; those
on Spark have more, because a round there takes minutes. Each kind has a line with its counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from plait_lab.torture import campaign
from plait_lab.torture.campaign import MOST_ROWS, Failure
from plait_lab.torture.spark import campaign as spark
from plait_lab.torture.spark import sites as spark_sites
from plait_lab.torture.spark.killpoints import CLUSTER, LOCAL, MASTERS
from plait_lab.torture.tally import Tally

Say = Callable[[str], None]
Run = Callable[[float, int, Say], tuple[Tally, list[Failure]]]
Repeat = Callable[[str, Say], tuple[Tally, list[Failure]]]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of campaign."""

    name: str
    share: float
    """Of the time for all of them, in proportion."""
    run: Run
    repeat: Repeat


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a campaign of one kind did."""

    kind: str
    tally: Tally
    failures: Sequence[Failure]

    def text(self) -> str:
        """One line."""
        wrong = f", {len(self.failures)} FAILURES" if self.failures else ", no answer was wrong"
        return f"{self.kind}: {self.tally.text() or 'nothing was done'}{wrong}"


def without_spark(name: str, most_rows: int = MOST_ROWS) -> Kind:
    """A kind that runs in this process."""

    def run(seconds: float, seed: int, say: Say) -> tuple[Tally, list[Failure]]:
        tally, failure = campaign.campaign(name, seconds, seed, say, most_rows)
        return tally, [failure] if failure else []

    def repeat(case: str, say: Say) -> tuple[Tally, list[Failure]]:
        del say
        tally, failure = campaign.repeat(name, case)
        return tally, [failure] if failure else []

    return Kind(name, 1.0, run, repeat)


def kinds(most_rows: int = MOST_ROWS) -> list[Kind]:
    """All kinds, in the order in which they run: what takes least to show a fault comes first."""
    on_spark = {"spark-local": (LOCAL,), "spark-cluster": (CLUSTER,), "spark": MASTERS}
    return [
        *(without_spark(name, most_rows) for name in campaign.KINDS),
        *(
            Kind(name, 3.0, partial(spark.campaign, masters=masters), spark.repeat)
            for name, masters in on_spark.items()
        ),
        Kind("spark-sites", 2.0, spark_sites.campaign, spark_sites.repeat),
    ]


def run_all(
    seconds: float,
    seed: int,
    say: Say,
    told: Callable[[Outcome], None],
    chosen: Sequence[Kind] | None = None,
) -> None:
    """Run each kind for its share of the time, and tell what it did as soon as that is known.

    A failure does not keep the others from running. `spark` is left out: its two halves run, one
    after the other.
    """
    todo = [k for k in kinds() if k.name != "spark"] if chosen is None else chosen
    total = sum(kind.share for kind in todo)
    for kind in todo:
        share = seconds * kind.share / total
        say(f"{kind.name}: {share:.0f} s")
        tally, failures = kind.run(share, seed, say)
        told(Outcome(kind.name, tally, failures))
