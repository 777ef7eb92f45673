"""One flip in the middle: which stream is fast, or which pair matches often.

*Rate flip.* A star: each row of s0 names a row of s1, of s2 and of s3 (as an order names a
customer, a product and a shop). s1 is fast and s3 slow, until they exchange their roles. Whoever
joins s0 with the fast stream first keeps many combinations that the slow one would have spared.

*Selectivity flip.* A chain of four streams of one speed. At first s0 and s1 share few keys, so
they match often, and s2 and s3 share many; then the other way round.

In both, the streams run on across the flip, so for the length of a window the old rows and the new
ones are joined with each other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace

from plait.plan.jtree import mjoin
from plait.query.query import Query
from plait_lab.bench.adapt.harness import (
    HINDSIGHT,
    OURS,
    Effort,
    Played,
    describe,
    play,
    reaction,
    same_results,
)
from plait_lab.bench.adapt.spark_flips import FlipOnSpark, flip_on_spark, spark_batches
from plait_lab.bench.adapt.static import name_of, planned, static_plans
from plait_lab.bench.contest import Course
from plait_lab.reporting.report import Claim, Note, Report, at_least, at_most
from plait_lab.workloads.changing import Key, Regime, make_batches
from plait_lab.workloads.keyed import keyed_query

STAR = (("k1", "k2", "k3"), ("k1",), ("k2",), ("k3",))
CHAIN = (("k1",), ("k1", "k2"), ("k2", "k3"), ("k3",))
_SECOND = 1_000_000
_HINDSIGHT, _STAY = 1.15, 3.0
_FEWER, _WARM_WITH_ALL_ROWS = 20, 3


@dataclass(frozen=True, slots=True)
class Options(Effort):
    """What can be varied."""

    before: int = 30
    """Batches before the flip, of one second each."""
    after: int = 80
    window_seconds: int = 4
    scale: float = 1.0
    """Factor to all rates and numbers of keys: rows grow, the partners of a row stay."""
    runtimes: str = "local"
    """Where it is measured: here, or also on Spark (local,spark)."""
    spark_plans: str = "few"
    """Static plans on Spark: the best ones before and after the flip and the mjoin, or all."""
    spark_warm: int = 30
    """Batches on Spark that do not count, most of them of few rows: what runs in the Java virtual
    machine becomes faster for a minute, whatever the plan."""
    spark_rounds: int = 2
    """Runs on Spark of the adaptive system and of the plan that is best after the flip; the others
    run once."""
    spark_before: int = 6
    """Batches before the flip on Spark."""
    spark_after: int = 40
    spark_seconds: float = 20.0
    """Event time of a batch on Spark, where a batch has a price of its own."""
    spark_scale: float = 0.5
    spark_crowd: float = 3.0
    """How many times as many partners as here a row has on Spark, where it has many."""


@dataclass(frozen=True, slots=True)
class Flip:
    """A query, and what is true before and after."""

    keys: tuple[tuple[str, ...], ...]
    regimes: tuple[Regime, Regime]

    def query(self, options: Options) -> Query:
        """All streams within one window."""
        return keyed_query(self.keys, options.window_seconds * _SECOND)

    def course(self, options: Options) -> Course:
        """The batches of both phases."""
        lengths = (options.before, options.after)
        regimes = [r for r, n in zip(self.regimes, lengths, strict=True) for _ in range(n)]
        phases = tuple(p for p, n in enumerate(lengths) for _ in range(n))
        query = self.query(options)
        return Course(query, make_batches(query, regimes, 1.0, options.seed), phases)


def rates_flip(scale: float = 1.0, crowd: float = 1.0) -> Flip:
    """The star whose fast and slow satellites exchange their roles.

    `crowd` is a factor to the partners of a row in the fast stream; those in the slow one stay.
    """
    fast, middle, slow = 6_000 * scale, 800 * scale, 30 * scale / crowd
    few, many = (Key(max(1, round(n * scale))) for n in (4_000 / crowd, 4_000))
    keys = {"k1": few, "k2": many, "k3": few}
    centre = 10_000 * scale
    return Flip(
        STAR,
        (
            Regime((centre, fast, middle, slow), keys),
            Regime((centre, slow, middle, fast), keys),
        ),
    )


def selectivities_flip(scale: float = 1.0, crowd: float = 1.0) -> Flip:
    """The chain whose pairs that match often and seldom exchange their roles.

    `crowd` is a factor to the partners of a row in the pair that matches often, and a divisor to
    those in the pair that matches seldom: the number of results stays.
    """
    often, middle, seldom = (
        Key(max(1, round(n * scale))) for n in (4_000 / crowd, 30_000, 1_200_000 * crowd)
    )
    rates = (8_000 * scale,) * 4
    return Flip(
        CHAIN,
        (
            Regime(rates, {"k1": often, "k2": middle, "k3": seldom}),
            Regime(rates, {"k1": seldom, "k2": middle, "k3": often}),
        ),
    )


def rate_flip(options: Options, note: Note) -> Report:
    """A run that re-plans itself and all static plans when another stream becomes the fast one."""
    return _flip("adapt-rate-flip", rates_flip, options, note)


def selectivity_flip(options: Options, note: Note) -> Report:
    """A run that re-plans itself and all static plans when another pair matches often."""
    return _flip("adapt-selectivity-flip", selectivities_flip, options, note)


def _flip(name: str, make: Callable[..., Flip], options: Options, note: Note) -> Report:
    report = Report(name, asdict(options))
    flip = make(options.scale)
    course = flip.course(options)
    query = course.query
    truths = {
        f"phase {p + 1}": regime.statistics(query, course.seconds)
        for p, regime in enumerate(flip.regimes)
    }
    played = play(course, static_plans(query, truths), options, note)
    describe(report, played)
    fill_reaction(report, played, options.before)
    report.claims = [*flip_claims(played), same_results([played])]
    if "spark" in options.runtimes.split(","):
        _on_spark(report, make(options.spark_scale, options.spark_crowd), options, note)
    return report


def _on_spark(report: Report, flip: Flip, options: Options, note: Note) -> None:
    """The plans that the truth makes best before and after the flip, and others, on Spark."""
    query = flip.query(options)
    truths = {
        f"phase {p + 1}": regime.statistics(query, options.spark_seconds)
        for p, regime in enumerate(flip.regimes)
    }
    every = static_plans(query, truths)
    first, second = (name_of(planned(query, truth), every) for truth in truths.values())
    few = [first, second, str(mjoin(query))]
    names = every if options.spark_plans == "all" else few
    before, after = flip.regimes
    few_rows = replace(before, rates=tuple(rate / _FEWER for rate in before.rates))
    warm = max(0, options.spark_warm - _WARM_WITH_ALL_ROWS)
    full = options.spark_warm - warm + options.spark_before
    regimes = [few_rows] * warm + [before] * full + [after] * options.spark_after
    flip_on_spark(
        report,
        FlipOnSpark(
            flip.keys,
            query,
            spark_batches(query, regimes, options.spark_seconds, options.seed),
            options.spark_warm,
            options.spark_warm + options.spark_before,
            {name: every[name] for name in dict.fromkeys([first, *names])},
            first,
            second,
            options.spark_rounds,
            options.stop,
        ),
        note,
    )


def fill_reaction(report: Report, played: Played, flip: int) -> None:
    """Add when the new plan came after the flip; the median of all finals."""
    course = played.contest.course
    found = [reaction(o, flip, len(course.batches)) for o in played.ours]
    shown = sorted(found, key=lambda r: len(course.batches) if r.first is None else r.first)
    report.systems[OURS] |= shown[len(shown) // 2].figures(course.seconds)


def flip_claims(played: Played) -> list[Claim]:
    """What must hold when the streams flip once."""
    stay = played.over(played.initial)["median"]
    before, after = played.best[0], played.best[1]
    contest = played.contest
    worse = contest.by_phase(played.initial)[1] / contest.by_phase(after)[1]
    return [
        at_least("flip", f"the plan changes with the phase: after the flip {played.initial}, best "
                 f"before, takes longer than {after} by the factor", float(worse), _STAY),
        at_most("hindsight", f"within {_HINDSIGHT} times of the best plan of each phase, known "
                f"afterwards ({before}, {after})", played.over(HINDSIGHT)["median"], _HINDSIGHT),
        at_least("stay", f"at least {_STAY:g} times faster than staying with the initial plan, "
                 f"{played.initial}", 1 / stay, _STAY),
    ]  # fmt: skip
