"""Seed 000, figures 13 to 16: intermediate tuples and output rates while a plan is migrated.

Four cases, as in the paper: the old plan, the new plan, and from the one to the other by moving
state (MS) and by parallel track (PT), beginning after 10 seconds. The new plan pushes the join with
the small reduction factor down. Beside them stand moving state whose new plan takes the queues over
instead of working them off first (footnote 4), and the parallel track that holds the new plan's
results back to keep the timestamp order, as the paper's does.

*Which machine.* The paper does not say what joining a pair costs. With the costs of table 3 of
seed 003 and a whole processor, the old plan of the high configuration is no burden at all; that
run comes first, and contradicts the paper. All else runs on the share of a processor that
`settings.py` uses for all of section 6.

*Which time.* The paper speaks of the initial stage of the migration, and of the migration stage.
Here the first 2W after the start are the initial stage, and each strategy is also looked at over
its own stage, from its start to its end. Silence is the longest time between two results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plait_lab.experiments.cape.settings import (
    HIGH,
    LOW,
    NEW,
    OLD,
    SPEED,
    START,
    CapeSetting,
    run_through,
)
from plait_lab.reporting.comparisons import Limit, Near, Same, Smaller
from plait_lab.reporting.report import Claim, Note, PlotMark, Report, Series, by_paper, by_project
from plait_lab.virtual.trace import Stage, Trace

SEED = "000"
MOVING, TAKING, PARALLEL = "moving state", "moving state, queues taken over", "parallel track"
HELD = "parallel track, in timestamp order"
FRESH, STALE = "new plan", "old plan"
_CLOCK = "virtual time (s)"
_PLACE = "section 6.3, on figure {}"
_NOTICEABLE = 1.0
"""Seconds without a result that anybody would notice."""
_SHARED = (
    "both strategies first run the old plan at full load; the parallel track runs the new plan "
    "beside it, so it gets through fewer tuples"
)
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
    slices: int = 20
    """Slices of virtual time per window."""
    speed: float = SPEED
    """The share of a processor."""
    seeds: int = 3
    """Streams drawn."""
    seed: int = 1


@dataclass(frozen=True, slots=True)
class _Cases:
    """The runs of one configuration over one draw of the streams."""

    window: float
    traces: dict[str, Trace]

    def stage(self, case: str) -> Stage:
        """The migration of a case."""
        stage = self.traces[case].migration
        assert stage is not None, f"{case} migrates"
        return stage

    @property
    def initial(self) -> tuple[float, float]:
        """The first 2W of the migrations."""
        start = self.stage(MOVING).start
        return start, start + 2 * self.window

    def own(self, case: str) -> tuple[float, float]:
        """The stage of a case."""
        return self.stage(case).start, self.stage(case).end

    @property
    def migrated(self) -> float:
        """When both of the paper's strategies are done."""
        return max(self.stage(MOVING).end, self.stage(PARALLEL).end)

    def rate(self, case: str, span: tuple[float, float]) -> float:
        """Results per second."""
        return float(self.traces[case].rate(span)[0])

    def kept(self, case: str, span: tuple[float, float]) -> float:
        """Intermediate tuples on average."""
        return float(np.mean(self.traces[case].intermediate(np.linspace(*span, 400))))

    def silence(self, case: str) -> float:
        """The longest time between two results while it migrates."""
        return self.traces[case].longest_silence(*self.own(case))


_All = Sequence[_Cases]


def _of(runs: _All, value: Callable[[_Cases], float]) -> list[float]:
    """A number of every run."""
    return [value(cases) for cases in runs]


def fig13(options: Options, note: Note) -> Report:
    """Intermediate tuples with enough of everything: moving state is down to the new plan first."""
    runs = _runs(LOW, options, note)
    report = _report("cape/fig13", options, runs)
    times = _times(options, runs[0])
    _draw(report, runs[0], times, "intermediate", "intermediate tuples")
    place, end = _PLACE.format(13), options.seconds
    span = (options.start, end)
    report.claims = [
        by_paper("new-smaller", place, "the new plan has a much smaller intermediate tuple count "
                 "than the old plan throughout the experiment",
                 Smaller(_of(runs, lambda c: c.kept(FRESH, span)),
                         _of(runs, lambda c: c.kept(STALE, span)), 0.5, "tuples"),
                 "the reduction factors of this draw are nearer to each other"),
        by_paper("same-before", place, "in the first 10 s the three lines overlap",
                 Same([n for c in runs for n in _before(c, times)]),
                 "the runs are not the same up to the start"),
        by_paper("moving-first", place, "moving state has the new plan's count earlier than the "
                 "parallel track", Smaller(_of(runs, lambda c: _settled(c, MOVING, options)),
                                           _of(runs, lambda c: _settled(c, PARALLEL, options)),
                                           unit="s after the start"),
                 "the states hold too few tuples to differ"),
        by_paper("both-settle", place, "both eventually have the same count as the new plan",
                 Limit(max(_settled(c, k, options) for c in runs for k in (MOVING, PARALLEL)),
                       end - options.start, unit="s after the start"),
                 "the streams ended before the migration did"),
        _keeps_up(runs, options),
    ]  # fmt: skip
    return report


def fig14(options: Options, note: Note) -> Report:
    """Output rates with enough of everything: neither strategy has an advantage."""
    runs = _runs(LOW, options, note)
    report = _report("cape/fig14", options, runs)
    _draw_rates(report, runs[0], options)
    place = _PLACE.format(14)
    got = {
        case: sum(float(np.diff(c.traces[case].results_by((options.start, c.migrated)))[0])
                  for c in runs)
        for case in (MOVING, PARALLEL)
    }  # fmt: skip
    report.claims = [
        by_paper("alike", place, "no strong advantage can be observed for either strategy: results "
                 "during the migration", Near([got[MOVING]], [max(1.0, got[PARALLEL])], 0.1),
                 "a stage of two seconds has few results, so a few more or less count",
                 measured=f"{got[MOVING]:.0f} by moving state, {got[PARALLEL]:.0f} by parallel "
                 f"track in {len(runs)} runs"),
        by_paper("silence", place, "the output silence of moving state is short enough to be "
                 "neglected: its length over the mean time between results",
                 Smaller(_of(runs, lambda c: c.stage(MOVING).length),
                         _of(runs, lambda c: options.seconds / max(1, c.traces[STALE].results)),
                         0.1, "s"),
                 "recomputing takes as long as a result takes to come"),
        _same_results(runs),
        _keeps_up(runs, options),
    ]  # fmt: skip
    return report


def fig15(options: Options, note: Note) -> Report:
    """Intermediate tuples under overload: is parallel track the one that has fewer?"""
    runs = _runs(HIGH, options, note)
    report = _report("cape/fig15", options, runs)
    times = _times(options, runs[0])
    _draw(report, runs[0], times, "intermediate", "intermediate tuples")
    _draw(report, runs[0], times, "queued", "tuples in input queues")
    place, end = _PLACE.format(15), options.seconds
    migrated = (FRESH, MOVING, PARALLEL)
    report.claims = [
        _insufficient(options, note),
        by_paper("fewer-initial", place, "at the initial stage (the first 2W) the parallel track "
                 "has a smaller intermediate tuple count",
                 Smaller(_of(runs, lambda c: c.kept(PARALLEL, c.initial)),
                         _of(runs, lambda c: c.kept(MOVING, c.initial)), unit="tuples"),
                 _SHARED, theirs="fewer"),
        by_paper("fewer-stage", place, "during the migration stage (each strategy over its own) "
                 "the parallel track has a smaller intermediate tuple count",
                 Smaller(_of(runs, lambda c: c.kept(PARALLEL, c.own(PARALLEL))),
                         _of(runs, lambda c: c.kept(MOVING, c.own(MOVING))), unit="tuples"),
                 "until its old plan is purged the parallel track keeps the states of both plans",
                 theirs="fewer"),
        by_paper("fewer-taken-over", "section 4.1, footnote 4, and figure 15", "with the queues "
                 "taken over, too, the parallel track has fewer in the first 2W",
                 Smaller(_of(runs, lambda c: c.kept(PARALLEL, c.initial)),
                         _of(runs, lambda c: c.kept(TAKING, c.initial)), unit="tuples"),
                 "with the queues taken over the new plan runs at once, and it keeps far fewer"),
        by_paper("new-smaller", place, "the new plan and both migrated ones out-perform the old "
                 "plan dramatically: intermediate tuples after the migration",
                 Smaller(_of(runs, lambda c: max(c.kept(k, (c.migrated, end)) for k in migrated)),
                         _of(runs, lambda c: c.kept(STALE, (c.migrated, end))), 0.5, "tuples"),
                 "the streams end too soon after the migration"),
        _overloaded(runs, options),
    ]  # fmt: skip
    return report


def fig16(options: Options, note: Note) -> Report:
    """Output rates under overload: who is silent, who is over first?"""
    runs = _runs(HIGH, options, note)
    report = _report("cape/fig16", options, runs)
    _draw_rates(report, runs[0], options)
    place, end = _PLACE.format(16), options.seconds
    per_second = "results/s"

    def by_end(cases: _Cases, case: str) -> float:
        return float(cases.traces[case].results_by([end])[0])

    report.claims = [
        by_paper("rate-initial", place, "the parallel track has a higher output rate at the "
                 "initial stage of the migration (the first 2W)",
                 Smaller(_of(runs, lambda c: c.rate(MOVING, c.initial)),
                         _of(runs, lambda c: c.rate(PARALLEL, c.initial)), unit=per_second),
                 _SHARED, theirs="higher"),
        by_paper("rate-stage", place, "during the migration stage (each strategy over its own) the "
                 "parallel track has a better output rate",
                 Smaller(_of(runs, lambda c: c.rate(MOVING, c.own(MOVING))),
                         _of(runs, lambda c: c.rate(PARALLEL, c.own(PARALLEL))), unit=per_second),
                 _SHARED, theirs="better"),
        by_paper("rate-held", "section 4.2 and figure 16", "the parallel track that keeps the "
                 "timestamp order has the higher output rate in the first 2W",
                 Smaller(_of(runs, lambda c: c.rate(MOVING, c.initial)),
                         _of(runs, lambda c: c.rate(HELD, c.initial)), unit=per_second),
                 "what the new plan finds is held back until the old plan is done",
                 theirs="higher"),
        by_paper("silence", place, "there is a noticeable output silence between 10 and 20 s for "
                 "moving state", Limit(float(np.median(_of(runs, lambda c: c.silence(MOVING)))),
                                       _NOTICEABLE, least=True, unit="s"),
                 "while the queues are worked off, results go on; only recomputing is silent, and "
                 "by equation 8 that is a fraction of a second here", theirs="about 10 s"),
        by_paper("less-silent", place, "the parallel track produces results while the migration is "
                 "ongoing: its longest silence is the shorter one",
                 Smaller(_of(runs, lambda c: c.silence(PARALLEL)),
                         _of(runs, lambda c: c.silence(MOVING)), unit="s"),
                 "neither strategy is silent for long", theirs="no silence"),
        by_paper("less-silent-held", "section 4.2 and figure 16", "in timestamp order, too, the "
                 "parallel track has the shorter silence",
                 Smaller(_of(runs, lambda c: c.silence(HELD)),
                         _of(runs, lambda c: c.silence(MOVING)), unit="s"),
                 "once the old plan has nothing left to say, the new plan's results still wait for "
                 "it to be purged", theirs="no silence"),
        by_paper("ends-first", place, "the total time for the migration stage is smaller in the "
                 "case of moving state", Smaller(_of(runs, lambda c: c.stage(MOVING).length),
                                                 _of(runs, lambda c: c.stage(PARALLEL).length),
                                                 unit="s"),
                 "working the queues off takes as long as getting through 2W with both plans; "
                 "which is longer depends on the draw", theirs="smaller"),
        by_paper("ends-overall", place, "moving state ends the overall execution earlier",
                 Smaller(_of(runs, lambda c: c.traces[MOVING].end),
                         _of(runs, lambda c: c.traces[PARALLEL].end), unit="s"),
                 "the ends differ by what the draw makes of the two stages", theirs="earlier"),
        by_paper("old-worse", place, "the new plan and both migrated ones out-perform the old plan "
                 "dramatically: results by the end of the streams",
                 Smaller(_of(runs, lambda c: by_end(c, STALE)),
                         _of(runs, lambda c: min(by_end(c, k) for k in (MOVING, PARALLEL, FRESH))),
                         0.75, "results"),
                 "the streams end too soon after the migration"),
        by_project("taken-over", "with the queues taken over (footnote 4) moving state is over "
                   "before the parallel track",
                   Smaller(_of(runs, lambda c: c.stage(TAKING).length),
                           _of(runs, lambda c: c.stage(PARALLEL).length), unit="s")),
        by_project("taken-over-rate", "and has the better output rate in the first 2W",
                   Smaller(_of(runs, lambda c: c.rate(PARALLEL, c.initial)),
                           _of(runs, lambda c: c.rate(TAKING, c.initial)), unit=per_second)),
        _overloaded(runs, options),
        _same_results(runs),
    ]  # fmt: skip
    return report


# -- runs


def _runs(setting: CapeSetting, options: Options, note: Note) -> list[_Cases]:
    found = []
    for k in range(options.seeds):
        note(f"streams {k + 1} of {options.seeds}")
        found.append(_run(setting, options, options.seed + k))
    return found


@lru_cache(maxsize=8)
def _run(setting: CapeSetting, options: Options, seed: int) -> _Cases:
    """All cases; remembered, because two figures show the same runs."""

    def through(shape: str, **how: Any) -> Trace:
        return run_through(
            setting,
            shape,
            "nested-loop",
            options.seconds,
            seed,
            start=options.start,
            slices=options.slices,
            speed=options.speed,
            **how,
        )

    traces = {
        STALE: through(OLD),
        MOVING: through(OLD, strategy="moving-state"),
        PARALLEL: through(OLD, strategy="parallel-track"),
        FRESH: through(NEW),
    }
    if setting is HIGH:
        traces[TAKING] = through(OLD, strategy="moving-state", clean="take-over")
        traces[HELD] = through(OLD, strategy="parallel-track", order="timestamp")
    return _Cases(setting.window, traces)


def _report(name: str, options: Options, runs: _All) -> Report:
    report = Report(name, asdict(options), seed=SEED, runtime="virtual")
    for k, cases in enumerate(runs):
        for case, trace in cases.traces.items():
            stage = trace.migration
            report.systems[f"{case}, streams {k + 1}"] = {
                "seconds": trace.end,
                "results": trace.results,
                "migration": None if stage is None else stage.length,
                "silence": None if stage is None else cases.silence(case),
                "stages": {s.name: s.length for s in trace.stages},
            }
    first = runs[0]
    report.marks = [
        PlotMark("migration starts", first.stage(MOVING).start),
        PlotMark("moving state ends", first.stage(MOVING).end),
        PlotMark("parallel track ends", first.stage(PARALLEL).end),
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


def _settled(cases: _Cases, case: str, options: Options) -> float:
    """Seconds after the start from when on a case has the new plan's count."""
    start = cases.stage(case).start
    times = np.arange(start, options.seconds, 0.05)
    goal = cases.traces[FRESH].intermediate(times)
    apart = np.flatnonzero(cases.traces[case].intermediate(times) != goal)
    settled = times[min(apart[-1] + 1, len(times) - 1)] if len(apart) else times[0]
    return float(settled - start)


def _before(cases: _Cases, times: Floats) -> list[int]:
    """Zeros; other numbers where a strategy differs from the old plan before it begins."""
    earlier = times[times < cases.stage(MOVING).start]
    old = cases.traces[STALE].intermediate(earlier)
    return [
        int(np.abs(old - cases.traces[case].intermediate(earlier)).sum())
        for case in (MOVING, PARALLEL)
    ]


# -- claims


def _insufficient(options: Options, note: Note) -> Claim:
    """The paper's settings with the only costs that its authors have published."""
    note("the old plan, a whole processor")
    whole = run_through(
        HIGH, OLD, "nested-loop", options.seconds, options.seed, slices=options.slices, speed=1.0
    )
    busy = float(whole.busy([options.seconds / 2, options.seconds])[0])
    return by_paper(
        "insufficient", "section 6.3 and table 2", "the computational power is not sufficient to "
        "process the old plan of set 2, with the costs of table 3 of seed 003 and a whole "
        "processor: its busy share", Limit(busy, 1.0, least=True),
        "the paper does not give T_j; with the 2.2 µs that its authors measured later, table 2's "
        "rates and windows keep a processor busy for about a quarter of the time",
        theirs="not sufficient", covers=("table 2",),
    )  # fmt: skip


def _keeps_up(runs: _All, options: Options) -> Claim:
    late = max(t.end for c in runs for t in c.traces.values()) / options.seconds
    text = "the machine keeps up: end of the runs / end of the streams"
    return by_project("keeps-up", text, Limit(late, 1.05))


def _overloaded(runs: _All, options: Options) -> Claim:
    late = min(c.traces[STALE].end for c in runs) / options.seconds
    text = "on this share of a processor the old plan falls behind: its end / end of the streams"
    return by_project("overload", text, Limit(late, 1.3, least=True))


def _same_results(runs: _All) -> Claim:
    odd = [c.traces[k].results - c.traces[STALE].results for c in runs for k in c.traces]
    text = "all find as many results: differences to the old plan"
    return by_project("results", text, Same(odd))
