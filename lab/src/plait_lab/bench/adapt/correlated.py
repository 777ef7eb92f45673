"""Conditions that are not independent: what a planner believes that multiplies selectivities.

*Two keys that are one.* s0 and s1 agree in k and in m, and m is a function of k. Each of the two
conditions looks selective; together they are no more selective than k alone. A planner that
multiplies believes that s0⋈s1 is small, and builds on it.

*Rows that match all or nothing.* In a star, few rows of s0 match s1, each of them many times, and
the same rows match s2. Every pair looks harmless, and s1 and s2 together find a thousand times what
two independent conditions would. s3, which matches a little more often than either, should come
before the second of them.

The adaptive run begins with the plan that the optimiser chooses when it knows the truth about all
streams and pairs. It takes some batches to find out that this is not the whole truth; those are a
phase of their own.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial

from plait_lab.bench.adapt.flips import STAR
from plait_lab.bench.adapt.harness import Effort, Played, describe, play, same_results
from plait_lab.bench.adapt.static import name_of, planned, static_plans
from plait_lab.bench.contest import Course
from plait_lab.reporting.report import Claim, Note, Report, at_least, at_most
from plait_lab.workloads.changing import Key, Regime, make_batches
from plait_lab.workloads.keyed import keyed_query

TWO_KEYS = (("k", "m"), ("k", "m", "j"), ("j",))
_SECOND = 1_000_000
_NEAR = 1.15
_MISLED = 1.5


@dataclass(frozen=True, slots=True)
class Options(Effort):
    """What can be varied."""

    batches: int = 120
    found_out: float = 0.25
    """The share of them after which the plan should be right: the first phase of the table."""
    window_seconds: int = 4
    scale: float = 1.0
    """Factor to all rates and numbers of keys."""


def two_keys(scale: float = 1.0) -> Regime:
    """A row of s1 has 40 partners in s0, where a product of selectivities says 0.4."""
    rate = 4_000.0 * scale
    return Regime(
        (rate, rate, rate),
        {
            "k": Key(max(100, round(800 * scale))),
            "m": Key(100, of="k"),
            "j": Key(max(1, round(54_000 * scale))),
        },
    )


def all_or_nothing(scale: float = 1.0) -> Regime:
    """One row of s0 in 1,000 has 200 partners in s1, and 200 in s2; the others have none."""
    rate, share = 4_000.0 * scale, 1 / 1_000
    hot = max(1, round(160 * scale))
    return Regime(
        (2 * rate, rate, rate, rate),
        {
            "k1": Key(hot),
            "k2": Key(hot),
            "k3": Key(max(1, round(107_000 * scale))),
            "s0.k1": Key(hot, share=share),
            "s0.k2": Key(hot, share=share),
        },
        together=True,
    )


def correlated(options: Options, note: Note) -> Report:
    """Predicates that are not independent: a planner is misled, and what is counted says so."""
    report = Report("adapt-correlated", asdict(options))
    found = []
    for title, keys, regime in (
        ("two keys that are one", TWO_KEYS, two_keys(options.scale)),
        ("all or nothing", STAR, all_or_nothing(options.scale)),
    ):
        query = keyed_query(keys, options.window_seconds * _SECOND)
        batches = make_batches(query, [regime] * options.batches, 1.0, options.seed)
        phases = tuple(int(b >= options.found_out * len(batches)) for b in range(len(batches)))
        course = Course(query, batches, phases)
        known = regime.statistics(query, course.seconds)
        static = static_plans(query, {"pairs": known})
        initial = name_of(planned(query, known), static)
        played = play(course, static, options, partial(_noted, note, title), initial)
        describe(report, played, f"{title}: ")
        report.claims += _claims(title, played)
        found.append(played)
    report.claims.append(same_results(found))
    return report


def _noted(note: Note, title: str, text: str) -> None:
    note(f"{title}: {text}")


def _claims(title: str, played: Played) -> list[Claim]:
    contest, name = played.contest, title.replace(" ", "-")
    misled = contest.total(played.initial) / contest.total(played.always)
    return [
        at_least(f"{name}-misled", f"{title}: the plan chosen from pairs, {played.initial}, takes "
                 f"longer than {played.always} by the factor", misled, _MISLED),
        at_most(f"{name}-faster", f"{title}: faster than with that plan",
                played.over(played.initial)["median"], 1.0),
        at_most(f"{name}-near", f"{title}: once that is known, within {_NEAR} times of the best "
                f"static plan, {played.best[1]}", played.over_phase(played.best[1], 1)["median"],
                _NEAR),
    ]  # fmt: skip
