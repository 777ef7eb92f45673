"""Changes that are too slow to be seen from one batch to the next, or too fast to be followed.

*Slow drift.* An hour of a chain of four streams in which the pair that matches often becomes, by a
constant factor from batch to batch, the one that matches seldom, and the other way round. Nothing
happens at any instant; the best plan changes about in the middle. The phases of the hindsight are
six times ten minutes.

*Oscillation.* The fast and the slow satellite of a star exchange their roles every other batch,
several times within a window. Following them costs more than it can bring.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from plait.query.query import Query
from plait_lab.bench.adapt.flips import CHAIN, rates_flip
from plait_lab.bench.adapt.harness import HINDSIGHT, Effort, describe, play, same_results
from plait_lab.bench.adapt.static import name_of, planned, static_plans
from plait_lab.bench.contest import Course
from plait_lab.reporting.report import Note, Report, at_least, at_most
from plait_lab.workloads.changing import Key, Regime, between, make_batches, mean
from plait_lab.workloads.keyed import keyed_query

_SECOND = 1_000_000
_NEAR, _AT_THE_END, _OSCILLATION = 1.15, 1.15, 1.1
_PHASES = 6


@dataclass(frozen=True, slots=True)
class DriftOptions(Effort):
    """What can be varied."""

    minutes: float = 60.0
    batch_seconds: float = 10.0
    window_seconds: float = 40.0
    rate: float = 500.0
    """Rows per second of each stream."""
    often: float = 20.0
    """Partners of a row in the pair that matches often."""
    middle: float = 2.0
    seldom: float = 0.05


@dataclass(frozen=True, slots=True)
class OscillationOptions(Effort):
    """What can be varied."""

    batches: int = 120
    every: int = 2
    """Batches from one exchange to the next."""
    window_seconds: int = 4
    scale: float = 1.0
    """Factor to all rates and numbers of keys."""


def drift_regimes(options: DriftOptions) -> list[Regime]:
    """One regime per batch, from one end of the drift to the other."""

    def key(partners: float) -> Key:
        """So many partners: rows that arrive in a window before and in one after."""
        return Key(max(1, round(2 * options.window_seconds * options.rate / partners)))

    often, middle, seldom = key(options.often), key(options.middle), key(options.seldom)
    rates = (options.rate,) * len(CHAIN)
    first = Regime(rates, {"k1": often, "k2": middle, "k3": seldom})
    last = Regime(rates, {"k1": seldom, "k2": middle, "k3": often})
    batches = round(60 * options.minutes / options.batch_seconds)
    return [between(first, last, b / max(1, batches - 1)) for b in range(batches)]


def slow_drift(options: DriftOptions, note: Note) -> Report:
    """A drift over an hour of event time that is never a step: whether it is followed."""
    report = Report("adapt-slow-drift", asdict(options))
    query = keyed_query(CHAIN, round(options.window_seconds * _SECOND))
    regimes = drift_regimes(options)
    batches = make_batches(query, regimes, options.batch_seconds, options.seed)
    phases = tuple(b * _PHASES // len(batches) for b in range(len(batches)))
    course = Course(query, batches, phases, options.batch_seconds)
    ends = {"the beginning": regimes[0], "the end": regimes[-1]}
    truths = {n: r.statistics(query, options.batch_seconds) for n, r in ends.items()}
    played = play(course, static_plans(query, truths), options, note)
    describe(report, played)
    contest, final = played.contest, _PHASES - 1
    stay = contest.by_phase(played.initial)[final] / contest.by_phase(played.best[final])[final]
    report.claims = [
        at_least("drift", f"the drift matters: at the end {played.initial}, best at the beginning, "
                 f"takes longer than {played.best[final]} by the factor", float(stay), 2.0),
        at_most("end", f"in the last ten minutes within {_AT_THE_END} times of the plan that is "
                "best then", played.over_phase(played.best[final], final)["median"], _AT_THE_END),
        at_most("hindsight", f"in all within {_NEAR} times of the best plan of each ten minutes",
                played.over(HINDSIGHT)["median"], _NEAR),
        at_most("fast", "faster than the best static plan",
                played.over(played.always)["median"], 1.0),
        same_results([played]),
    ]  # fmt: skip
    return report


def oscillation_course(options: OscillationOptions) -> tuple[Course, list[Regime]]:
    """A star whose fast and slow satellites exchange their roles every few batches."""
    flip = rates_flip(options.scale)
    query: Query = keyed_query(flip.keys, options.window_seconds * _SECOND)
    regimes = [flip.regimes[b // options.every % 2] for b in range(options.batches)]
    batches = make_batches(query, regimes, 1.0, options.seed)
    return Course(query, batches, (0,) * len(batches)), regimes


def oscillation(options: OscillationOptions, note: Note) -> Report:
    """Roles that change faster than a migration pays: what it costs not to be sure."""
    report = Report("adapt-oscillation", asdict(options))
    course, regimes = oscillation_course(options)
    query = course.query
    known = mean(regimes, query, course.seconds)
    truths = {
        "the mean": known,
        "one half": regimes[0].statistics(query, course.seconds),
        "the other half": regimes[-1].statistics(query, course.seconds),
    }
    static = static_plans(query, truths)
    played = play(course, static, options, note, name_of(planned(query, known), static))
    describe(report, played)
    report.claims = [
        at_most("oscillation", f"at most {_OSCILLATION} times the time of the best static plan, "
                f"{played.always}", played.over(played.always)["median"], _OSCILLATION),
        same_results([played]),
    ]  # fmt: skip
    return report
