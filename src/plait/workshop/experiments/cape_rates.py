"""Seed 000, figures 13 to 16: intermediate tuples and output rates while a plan is migrated.

Four cases, as in the paper: the old plan, the new plan, and from the one to the other by moving
state (MS) and by parallel track (PT), beginning after 10 seconds. The new plan pushes the join with
the small reduction factor down. With the low configuration the machine is hardly busy; with the
high one the old plan is more than it can do, so tuples wait when the migration begins. A fifth
case is moving state whose new plan takes the queues over instead of working them off first.

Results come out at once. If the parallel track holds the new plan's results back to keep the
timestamp order, as the paper does, it is silent while the old plan has nothing left to say; how
long is among the figures of `systems`.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from plait.hosts.virtual.trace import Stage, Trace
from plait.workshop.bench.report import Claim, Mark, Note, Report, Series, at_most, equal
from plait.workshop.experiments.cape_settings import (
    BUSY_SPEED,
    HIGH,
    LOW,
    NEW,
    OLD,
    START,
    Setting,
    run_through,
)

SEED = "000"
MOVING, TAKING, PARALLEL = "moving state", "moving state, queues taken over", "parallel track"
FRESH, STALE = "new plan", "old plan"
_CLOCK = "virtual time (s)"
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    seconds: float = 50.0
    """How long the streams last."""
    start: float = START
    """When the migration begins."""
    bin: float = 1.0
    """Seconds between two points of a figure."""
    slices: int = 25
    """Slices of virtual time per window."""
    speed: float = BUSY_SPEED
    seed: int = 1


@dataclass(frozen=True, slots=True)
class _Cases:
    """The runs of one configuration."""

    traces: dict[str, Trace]
    held: Trace
    """The parallel track that keeps the timestamp order."""
    hashed: dict[str, Trace]
    """Both strategies with hash joins."""

    def stage(self, case: str) -> Stage:
        """The migration of a case."""
        stage = self.traces[case].migration
        assert stage is not None, f"{case} migrates"
        return stage

    @property
    def span(self) -> tuple[float, float]:
        """From the start of the migrations to the end of the longer one of the paper's two."""
        return self.stage(MOVING).start, max(self.stage(MOVING).end, self.stage(PARALLEL).end)

    def mean(self, case: str, what: str) -> float:
        """An average over that time."""
        times = np.linspace(*self.span, 400)
        if what == "rate":
            return float(self.traces[case].rate(self.span)[0])
        return float(np.mean(getattr(self.traces[case], what)(times)))


def fig13(options: Options, note: Note) -> Report:
    """Intermediate tuples with enough of everything: moving state is down to the new plan first."""
    cases = _run(LOW, options, note)
    report = _report("cape/fig13", options, cases)
    times = _times(options, cases)
    _draw(report, cases, times, "intermediate", "intermediate tuples")
    before, after = cases.stage(MOVING).start, options.seconds
    steady = np.linspace(before, after, 400)
    ratio = _over(cases, STALE, FRESH, steady)
    settled = {case: _settled(cases, case, options) for case in (MOVING, PARALLEL)}
    report.claims = [
        Claim("new-smaller", "the new plan has far fewer intermediate tuples than the old one",
              f"{ratio:.1f} times fewer", ratio, "at least 2 times", ratio >= 2),
        Claim("same-before", "before the migration all but the new plan are the same",
              "up to the start", before, "equal", _same_until(cases, before, times)),
        Claim("moving-first", "moving state has the new plan's count earlier than parallel track",
              f"after {settled[MOVING] - before:.2f} s and {settled[PARALLEL] - before:.2f} s",
              settled[PARALLEL] - settled[MOVING], "earlier",
              settled[MOVING] < settled[PARALLEL]),
        Claim("both-settle", "in the end both have the new plan's count",
              f"by {max(settled.values()):.2f} s", max(settled.values()),
              "before the streams end", max(settled.values()) < options.seconds),
        _keeps_up(cases, options),
    ]  # fmt: skip
    return report


def fig14(options: Options, note: Note) -> Report:
    """Output rates with enough of everything: neither strategy has an advantage."""
    cases = _run(LOW, options, note)
    report = _report("cape/fig14", options, cases)
    _draw_rates(report, cases, options)
    moving, parallel = cases.stage(MOVING), cases.stage(PARALLEL)
    end = max(moving.end, parallel.end)
    found = {c: cases.traces[c].results_by([moving.start, end]) for c in (MOVING, PARALLEL)}
    got = {c: float(f[1] - f[0]) for c, f in found.items()}
    apart = abs(got[MOVING] - got[PARALLEL]) / max(1.0, *got.values())
    gap = options.seconds / max(1, cases.traces[STALE].results)
    report.claims = [
        at_most("alike", "during the migration both give as many results: difference / number",
                apart, 0.1),
        Claim("silence", "the silence of moving state is short enough to be neglected",
              f"{moving.length * 1000:.1f} ms, where results are {gap:.2f} s apart on average",
              moving.length / gap, "a tenth of that at most", moving.length <= 0.1 * gap),
        equal("results", "all find as many results", [t.results for t in cases.traces.values()]),
        _keeps_up(cases, options),
    ]  # fmt: skip
    return report


def fig15(options: Options, note: Note) -> Report:
    """Intermediate tuples under overload: the parallel track has fewer during the migration."""
    cases = _run(HIGH, options, note)
    report = _report("cape/fig15", options, cases)
    times = _times(options, cases)
    _draw(report, cases, times, "intermediate", "intermediate tuples")
    _draw(report, cases, times, "queued", "tuples in input queues")
    moving, parallel = (cases.mean(case, "intermediate") for case in (MOVING, PARALLEL))
    steady = np.linspace(cases.span[1], options.seconds, 400)
    ratio = _over(cases, STALE, FRESH, steady)
    report.claims = [
        Claim("parallel-fewer", "until both have migrated the parallel track has fewer "
              "intermediate tuples", f"{parallel:.0f} against {moving:.0f} on average",
              parallel / moving, "fewer", parallel < moving),
        Claim("new-smaller", "the new plan and both migrated ones have far fewer than the old one",
              f"{ratio:.1f} times", ratio, "at least 2 times", ratio >= 2 and all(
                  _over(cases, STALE, case, steady) >= 2 for case in (MOVING, PARALLEL))),
        _overloaded(cases, options),
    ]  # fmt: skip
    return report


def fig16(options: Options, note: Note) -> Report:
    """Output rates under overload: moving state is silent, the parallel track goes on."""
    cases = _run(HIGH, options, note)
    report = _report("cape/fig16", options, cases)
    _draw_rates(report, cases, options)
    start, end = cases.span
    rates = {case: cases.mean(case, "rate") for case in (MOVING, PARALLEL, STALE)}
    move = cases.traces[MOVING].stage("move")
    assert move is not None
    quiet = _quiet_share(cases, PARALLEL, move.length)
    silent = float(np.diff(cases.traces[MOVING].results_by([move.start, move.end]))[0])
    during = float(cases.traces[PARALLEL].rate([start, cases.stage(PARALLEL).end])[0])
    taking = cases.stage(TAKING)
    by_end = {case: float(t.results_by([options.seconds])[0]) for case, t in cases.traces.items()}
    least = min(by_end[case] for case in (MOVING, PARALLEL, FRESH))
    report.claims = [
        Claim("parallel-rate", "until both have migrated the parallel track has the better output "
              "rate", f"{rates[PARALLEL]:.0f} against {rates[MOVING]:.0f} results per second from "
              f"{start:.1f} to {end:.1f} s", rates[PARALLEL] / rates[MOVING], "more than 1",
              rates[PARALLEL] > rates[MOVING]),
        Claim("silence", "moving state has an output silence while it recomputes states",
              f"{silent:.0f} results in {move.length * 1000:.0f} ms; of stretches of that length "
              f"during the parallel track, {1 - quiet:.0%} have results", move.length,
              "none, and results in 90 % of the others",
              silent == 0 < move.length and quiet <= 0.1),
        Claim("goes-on", "the parallel track gives results while it migrates",
              f"{during:.0f} per second", during, "more than 0", during > 0),
        Claim("old-worse", "the new plan and both migrated ones give far more than the old plan",
              f"{least:.0f} against {by_end[STALE]:.0f} results by {options.seconds:g} s",
              least / max(1.0, by_end[STALE]), "at least 1.3 times",
              least >= 1.3 * by_end[STALE]),
        Claim("taken-over", "with the queues taken over, moving state is over before the parallel "
              "track", f"{taking.length:.2f} s against {cases.stage(PARALLEL).length:.2f} s",
              taking.length / cases.stage(PARALLEL).length, "less than 1",
              taking.length < cases.stage(PARALLEL).length),
        _overloaded(cases, options),
        equal("results", "all find as many results", [t.results for t in cases.traces.values()]),
    ]  # fmt: skip
    return report


# -- runs


def _run(setting: Setting, options: Options, note: Note) -> _Cases:
    def through(label: str, shape: str, account: str = "nested-loop", **how: str) -> Trace:
        note(f"{label} ({'hash joins' if account == 'hash' else 'nested loops'})")
        return run_through(
            setting,
            shape,
            account,  # type: ignore[arg-type]
            options.seconds,
            options.seed,
            start=options.start,
            slices=options.slices,
            speed=options.speed,
            **how,  # type: ignore[arg-type]
        )

    traces = {
        STALE: through(STALE, OLD),
        MOVING: through(MOVING, OLD, strategy="moving-state"),
        PARALLEL: through(PARALLEL, OLD, strategy="parallel-track"),
        FRESH: through(FRESH, NEW),
    }
    if setting is HIGH:
        traces[TAKING] = through(TAKING, OLD, strategy="moving-state", clean="take-over")
    held = through(PARALLEL, OLD, strategy="parallel-track", order="timestamp")
    hashed = {
        MOVING: through(MOVING, OLD, "hash", strategy="moving-state"),
        PARALLEL: through(PARALLEL, OLD, "hash", strategy="parallel-track"),
    }
    return _Cases(traces, held, hashed)


def _report(name: str, options: Options, cases: _Cases) -> Report:
    report = Report(name, asdict(options), seed=SEED, runtime="virtual")
    held, named = cases.held.migration, dict(cases.traces)
    named |= {f"{case}, hash joins": trace for case, trace in cases.hashed.items()}
    for case, trace in named.items():
        stage = trace.migration
        report.systems[case] = {
            "seconds": trace.end,
            "results": trace.results,
            "migration": None if stage is None else stage.length,
            "stages": {s.name: s.length for s in trace.stages},
        }
    assert held is not None
    report.systems[PARALLEL]["silence in timestamp order"] = cases.held.longest_silence(
        held.start, held.end
    )
    report.marks = [
        Mark("migration starts", cases.stage(MOVING).start),
        Mark("moving state ends", cases.stage(MOVING).end),
        Mark("parallel track ends", cases.stage(PARALLEL).end),
    ]
    return report


def _times(options: Options, cases: _Cases) -> Floats:
    """The points of a figure: as long as the streams last, and the plans but the old one run."""
    last = max(t.end for case, t in cases.traces.items() if case != STALE)
    return np.arange(0.0, max(options.seconds, last) + options.bin, options.bin)


def _draw(report: Report, cases: _Cases, times: Floats, what: str, unit: str) -> None:
    for case, trace in cases.traces.items():
        y = getattr(trace, what)(times).tolist()
        report.series.append(Series(case, times.tolist(), y, unit, _CLOCK))


def _draw_rates(report: Report, cases: _Cases, options: Options) -> None:
    """Rates around the migration, and all results so far."""
    edges = _times(options, cases)
    middles = ((edges[:-1] + edges[1:]) / 2).tolist()
    for case, trace in cases.traces.items():
        report.series.append(Series(case, middles, trace.rate(edges).tolist(), "results/s", _CLOCK))
    for case, trace in cases.traces.items():
        y = trace.results_by(edges).tolist()
        report.series.append(Series(case, edges.tolist(), y, "results so far", _CLOCK))


def _over(cases: _Cases, top: str, bottom: str, times: Floats) -> float:
    """The ratio of two cases' mean intermediate tuples."""
    return float(
        np.mean(cases.traces[top].intermediate(times))
        / max(1e-9, float(np.mean(cases.traces[bottom].intermediate(times))))
    )


def _quiet_share(cases: _Cases, case: str, length: float) -> float:
    """Of the stretches of this length during a migration, the share without results."""
    stage = cases.stage(case)
    edges = np.arange(stage.start, stage.end, length)
    return float(np.mean(cases.traces[case].rate(edges) == 0))


def _settled(cases: _Cases, case: str, options: Options) -> float:
    """From when on a case has the new plan's count."""
    times = np.arange(cases.stage(case).start, options.seconds, 0.05)
    goal = cases.traces[FRESH].intermediate(times)
    apart = np.flatnonzero(cases.traces[case].intermediate(times) != goal)
    return float(times[min(apart[-1] + 1, len(times) - 1)]) if len(apart) else float(times[0])


def _same_until(cases: _Cases, time: float, times: Floats) -> bool:
    before = times[times < time]
    old = cases.traces[STALE].intermediate(before)
    return all(
        bool(np.array_equal(old, cases.traces[case].intermediate(before)))
        for case in (MOVING, PARALLEL)
    )


def _keeps_up(cases: _Cases, options: Options) -> Claim:
    late = max(t.end for t in cases.traces.values()) / options.seconds
    return at_most("keeps-up", "the machine keeps up: end of the runs / end of the streams",
                   late, 1.05)  # fmt: skip


def _overloaded(cases: _Cases, options: Options) -> Claim:
    late = cases.traces[STALE].end / options.seconds
    return Claim("overload", "the machine is too slow for the old plan",
                 f"it needs {cases.traces[STALE].end:.0f} s for streams of {options.seconds:g} s",
                 late, "more than 1.3 times as long", late > 1.3)  # fmt: skip
