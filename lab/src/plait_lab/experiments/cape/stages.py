"""Seed 000, figures 9 to 12: how long the migration stage is, by strategy, window and rate.

T_PT is the length of the stage on the virtual runtime, from the request to the end. T_MS of figures
10 and 11 is measured by nested loops that are really carried out (`nested_loops.py`); figure 12
runs both strategies to their end. Every number is the mean over streams drawn apart.

*What figure 12 depends on.* The paper has T_MS grow like a polynomial until it overtakes 2W, on a
machine that keeps up. By its own equations that cannot be with set 3: recomputing BC and BCD costs
less than what the old plan costs in two windows, so the machine is overloaded long before, and the
parallel track takes far more than 2W. What T_MS then consists of is the working off of the queues,
which depends on how long the machine has been behind: on `start`. So the crossing is looked at with
a whole processor, for two starts, and on a machine so slow that recomputing does overtake 2W.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from plait.optimize.costs import PAPER
from plait.optimize.migration_cost import t_parallel_track, terms_of
from plait.plan.migration import Strategy
from plait_lab.experiments.cape.equations import equation_8
from plait_lab.experiments.cape.nested_loops import Recomputed, engine_kept, recompute
from plait_lab.experiments.cape.settings import (
    FLAT,
    OLD,
    SPEED,
    CapeSetting,
    Measured,
    mean,
    migration,
    set_1,
    set_2,
    set_3,
)
from plait_lab.reporting.comparisons import Crosses, Degree, Flat, Limit, Near, Smaller
from plait_lab.reporting.report import Note, Report, Scale, Series, by_paper, by_project
from plait_lab.virtual.accounting import Account
from plait_lab.virtual.host import Clean

SEED = "000"
_FIG_9, _FIG_10 = "section 6.2, on figure 9", "section 6.2, on figure 10"
_FIG_11, _FIG_12 = "section 6.2, on figure 11", "section 6.2, on figure 12"
_WITHIN = 0.10
_MODEL = 0.25


@dataclass(frozen=True, slots=True)
class TrackOptions:
    """What can be varied."""

    shortest: float = 0.5
    """The shortest window, in seconds."""
    longest: float = 4.0
    step: float = 0.5
    warm: float = 3.0
    """When the migration begins, in windows."""
    tracks: int = 4
    """Streams drawn for each T_PT."""
    slices: int = 25
    """Slices of virtual time per window."""
    speed: float = SPEED
    seed: int = 1


@dataclass(frozen=True, slots=True)
class MoveOptions:
    """What can be varied."""

    shortest: float = 1.0
    longest: float = 8.0
    step: float = 1.0
    warm: float = 3.0
    repeats: int = 16
    """Streams drawn for each T_MS."""
    checked: int = 3
    """Streams whose combinations are compared with the engine's."""
    speed: float = SPEED
    seed: int = 1


@dataclass(frozen=True, slots=True)
class RateOptions:
    """What can be varied."""

    slowest: float = 60.0
    """The longest inter-arrival time of B, in milliseconds."""
    fastest: float = 20.0
    points: int = 5
    warm: float = 4.0
    repeats: int = 16
    tracks: int = 3
    slices: int = 25
    speed: float = SPEED
    seed: int = 1

    @property
    def gaps(self) -> list[float]:
        """Inter-arrival times whose rates are evenly spaced."""
        rates = np.linspace(1000 / self.slowest, 1000 / self.fastest, self.points)
        return [1000 / float(rate) for rate in rates]


@dataclass(frozen=True, slots=True)
class CrossingOptions:
    """What can be varied."""

    shortest: float = 0.5
    longest: float = 2.5
    points: int = 5
    start: float = 10.0
    """When the migration begins, in seconds; the crossing is also looked for at twice that."""
    slow: float = 0.004
    """The share of a processor on which recomputing overtakes 2W."""
    slow_shortest: float = 0.06
    slow_longest: float = 0.26
    slow_start: float = 4.0
    repeats: int = 2
    """Streams drawn for each point."""
    slices: int = 8
    seed: int = 1


def _steps(options: TrackOptions | MoveOptions) -> list[float]:
    count = round((options.longest - options.shortest) / options.step) + 1
    return [options.shortest + options.step * k for k in range(count)]


def fig9(options: TrackOptions, note: Note) -> Report:
    """T_PT grows linearly with the window: 2W if joins are above joins, else W."""
    report = Report("cape/fig9", asdict(options), seed=SEED, runtime="virtual")
    windows = _steps(options)
    kinds: list[tuple[str, Account, str]] = [
        ("h = 3", "nested-loop", OLD),
        ("h = 1", "nested-loop", FLAT),
        ("h = 3, hash joins", "hash", OLD),
    ]
    runs: dict[str, list[float]] = {}
    busiest = 0.0
    for label, account, shape in kinds:
        runs[label] = []
        for w in windows:
            note(f"{label}: window of {w:g} s")
            found = _tracks(set_1(w), account, options, shape)
            runs[label].append(mean([m.total for m in found]))
            busiest = max(busiest, mean([m.busy for m in found]))
            totals = [m.total for m in found]
            report.systems[f"{label}, W = {w:g} s"] = {"T_PT": totals, "of W": totals[0] / w}
    for label, totals in runs.items():
        report.series.append(_series(f"T_PT, {label}", windows, totals))
    for height, text in ((3, "2W"), (1, "W")):
        predicted = [t_parallel_track(height, w) for w in windows]
        report.series.append(_series(text, windows, predicted, dashed=True))
    tall = runs["h = 3"]
    slope, shift = (float(v) for v in np.polyfit(windows, tall, 1))
    small = (
        "a small window holds a handful of tuples, and by lemma 2.2 an old one goes only when "
        "the next tuple of another stream comes"
    )
    report.claims = [
        by_paper("pt-2w", _FIG_9, "T_PT is statistically equivalent to 2W (h > 1)",
                 Near(tall, [2 * w for w in windows], _WITHIN), small, theirs="2W",
                 covers=("equation 4", "lemma 2.2")),
        by_paper("pt-w", "section 5.2, equation 4", "T_PT = W for h = 1",
                 Near(runs["h = 1"], windows, _WITHIN), small, theirs="W", covers=("equation 4",)),
        by_paper("pt-linear", _FIG_9, "T_PT has a linear relationship with W: its power of W",
                 Degree(windows, tall, 0.9, 1.1), small, theirs="linear", covers=("equation 4",)),
        by_paper("pt-slope", _FIG_9, "each second of window adds two seconds: dT_PT/dW",
                 Near([slope], [2.0], 0.05), "the waiting for the next tuple is longer where "
                 "windows are short", theirs="2",
                 measured=f"slope {slope:.3f}, at W = 0 it would be {shift:.3f} s"),
        by_project("pt-2w-hash", "hash joins change nothing: T_PT as by nested loops",
                   Near(runs["h = 3, hash joins"], tall, _WITHIN)),
        by_project("keeps-up", "the machine keeps up: its busy share before the migration",
                   Limit(busiest, 1.0)),
    ]  # fmt: skip
    return report


def fig10(options: MoveOptions, note: Note) -> Report:
    """T_MS grows like a polynomial of the window, as equation 8 says."""
    report = Report("cape/fig10", asdict(options), seed=SEED, runtime="nested loops")
    windows, speed = _steps(options), options.speed
    found = [_moves(set_1(w), options, note, f"window of {w:g} s") for w in windows]
    measured = [mean([r.t_ms(speed) for r in runs]) for runs in found]
    timed = [mean([r.seconds for r in runs]) for runs in found]
    model = [set_1(w).predicted("nested-loop", speed=speed).t_ms for w in windows]
    printed = [_printed(set_1(w), speed) for w in windows]
    fitted = _fit(windows, measured, "polynomial")
    unit = "T_MS (ms)"
    report.series = [
        _series("measured T_MS: pairs compared, at T_j and T_s", windows, measured, unit),
        _series("fit a W² + b W³", windows, fitted, unit, dashed=True),
        _series("equations 1 to 3, sizes as recomputed", windows, model, unit, dashed=True),
        _series("equation 8 as printed", windows, printed, unit, dashed=True),
        _series("nested loops, timed", windows, timed, "this interpreter (ms)"),
    ]
    errors = {form: fit_error(windows, measured, form) for form in _FORMS}
    report.ratios = {
        "squared relative error of the best fit": errors,
        "measured / equation 8 as printed": {
            _seconds(w): m / p for w, m, p in zip(windows, measured, printed, strict=True)
        },
    }
    others = min(e for form, e in errors.items() if form != "polynomial")
    kept = [sum(r.kept) for runs in found for r in runs[: options.checked]]
    engine = [
        sum(engine_kept(set_1(w), options.warm * w, options.seed + k))
        for w in windows
        for k in range(options.checked)
    ]
    sizes = "equation 2 counts each combination twice: |S_BC| is half of λ_BC W, and so is the cube"
    report.claims = [
        by_paper("ms-degree", "section 6.2, equation 8", "T_MS has a polynomial relationship with "
                 "W, between its square and its cube", Degree(windows, measured, 2.0, 3.0),
                 "the windows are too small for the cube to show", theirs="W² and W³",
                 covers=("equation 8",)),
        by_paper("ms-timed", _FIG_10, "the measured time increases likewise: processor time of the "
                 "loops", Degree(windows, timed, 2.0, 3.0),
                 "the loops take microseconds, at which the clock is coarse", theirs="polynomial"),
        by_paper("ms-form", _FIG_10, "a polynomial trendline fits: squared relative error of "
                 "a W² + b W³ against the best of a + b W, a exp(b W) and a W⁵",
                 Smaller([errors["polynomial"]], [others]),
                 "too few points to tell the forms apart", theirs="polynomial"),
        by_paper("ms-model", "section 5.1, equations 1 and 3", "T_MS is T_j |S_B| |S_C| + T_s ... "
                 "for each state that is recomputed, with the sizes that are there",
                 Near(measured, model, _MODEL), "the model's windows keep a tuple until the next "
                 "one comes, the loops take exactly the last W, and W³ triples the difference",
                 covers=("equation 1", "equation 3")),
        by_paper("ms-printed", "section 6.2, equation 8", "T_MS is what equation 8 says",
                 Near(measured, printed, _MODEL), sizes, theirs="equation 8",
                 covers=("equation 2", "equation 8")),
        by_project("as-the-engine", "the loops keep as many combinations as the engine recomputes, "
                   "over all draws", Near([float(sum(kept))], [float(sum(engine))], _MODEL)),
    ]  # fmt: skip
    return report


def fig11(options: RateOptions, note: Note) -> Report:
    """T_MS grows with the rate of B; T_PT does not."""
    report = Report("cape/fig11", asdict(options), seed=SEED, runtime="virtual")
    gaps = options.gaps
    rates = [1000 / gap for gap in gaps]
    lengths, found = [], []
    for gap in gaps:
        note(f"a tuple of B every {gap:.3g} ms")
        tracks = _tracks(set_2(gap), "nested-loop", options)
        lengths.append(mean([m.total for m in tracks]))
        found.append(_moves(set_2(gap), options, note, f"B every {gap:.3g} ms"))
    measured = [mean([r.t_ms(options.speed) for r in runs]) for runs in found]
    window = set_2(1.0).window
    model = [set_2(gap).predicted("nested-loop", speed=options.speed).t_ms for gap in gaps]
    x_unit = "λ_B (tuples/s)"
    report.series = [
        _series("T_MS", rates, measured, "T_MS (ms)", x_unit),
        _series("equations 1 to 3", rates, model, "T_MS (ms)", x_unit, dashed=True),
        _series("T_PT", rates, lengths, "T_PT (s)", x_unit),
        _series("2W", rates, [2 * window] * len(rates), "T_PT (s)", x_unit, dashed=True),
    ]
    report.claims = [
        by_paper("ms-grows", _FIG_11, "when λ_B increases, T_MS increases as well: its power of "
                 "λ_B", Degree(rates, measured, 0.5, 1.5), "few tuples in a window scatter",
                 theirs="increases", covers=("equation 8",)),
        by_paper("pt-flat", _FIG_11, "λ_B has almost no effect on T_PT",
                 Flat(lengths, _WITHIN), "T_PT waits for the next tuple, which scatters",
                 theirs="fairly stable"),
        by_paper("pt-2w", _FIG_11, "T_PT = 2W whatever the rate",
                 Near(lengths, [2 * window] * len(rates), _WITHIN),
                 "an old tuple goes only when the next one comes", theirs="2W",
                 covers=("equation 4",)),
        by_paper("ms-model", "section 5.1, equations 1 and 3", "T_MS is what equations 1 and 3 "
                 "say, with the sizes that are there", Near(measured, model, _MODEL),
                 "few tuples in a window scatter", covers=("equation 1", "equation 3")),
    ]  # fmt: skip
    return report


@dataclass(frozen=True, slots=True)
class _Race:
    """Both strategies over some windows: means over the draws."""

    windows: list[float]
    moving: list[float]
    cleaning: list[float]
    recomputing: list[float]
    taking: list[float]
    parallel: list[float]
    busy: list[float]


def fig12(options: CrossingOptions, note: Note) -> Report:
    """Which strategy is over first, as the window grows; and what that depends on."""
    report = Report("cape/fig12", asdict(options), seed=SEED, runtime="virtual")
    spans = {
        "whole processor": (options.shortest, options.longest, 1.0, options.start),
        "whole processor, twice the start": (
            options.shortest,
            options.longest,
            1.0,
            2 * options.start,
        ),
        "slow machine": (
            options.slow_shortest,
            options.slow_longest,
            options.slow,
            options.slow_start,
        ),
    }
    races: dict[str, _Race] = {}
    for name, (first, last, speed, start) in spans.items():
        windows = [float(w) for w in np.linspace(first, last, options.points)]
        races[name] = _race(name, windows, speed, start, options, note)
        _draw_race(report, name, races[name])
    whole, later, slow = races.values()
    load = "from W = 1.1 s on the old plan of set 3 needs more than a whole processor by table 3's "
    load += "costs, and a plan that falls behind does not get through 2W in 2W"
    cleaning = [c / m for c, m in zip(whole.cleaning, whole.moving, strict=True)]
    twice = [2 * w for w in slow.windows]
    report.claims = [
        by_paper("pt-2w", _FIG_12, "as the window grows T_PT increases linearly and stays at about "
                 "2W (whole processor)",
                 Near(whole.parallel, [2 * w for w in whole.windows], _WITHIN), load, theirs="2W"),
        by_paper("pt-linear", _FIG_12, "T_PT is linear in W (whole processor): its power of W",
                 Degree(whole.windows, whole.parallel, 0.9, 1.1), load, theirs="linear"),
        by_paper("ms-degree", _FIG_12, "recomputing has a polynomial relationship with W: its "
                 "power of W, between 2 and 3", Degree(whole.windows, whole.recomputing, 2.0, 3.0),
                 "few draws, and states that vary a lot", theirs="polynomial",
                 covers=("equation 8",)),
        by_paper("small-first", _FIG_12, "at small windows moving state migrates faster",
                 Smaller(whole.moving[:1], whole.parallel[:1], unit="s"),
                 "the smallest window is not small enough", theirs="faster"),
        by_paper("crossing", _FIG_12, "after a certain window size the parallel track is the "
                 "faster one (whole processor)",
                 Crosses(whole.windows, whole.moving, whole.parallel),
                 "moving state works off what has piled up by the old plan alone, the parallel "
                 "track gets through 2W with both plans", theirs="they cross"),
        by_paper("crossing-later", _FIG_12, "the same when the migration begins twice as late",
                 Crosses(later.windows, later.moving, later.parallel),
                 "what has piled up is still less than what the parallel track has to do",
                 theirs="they cross"),
        by_paper("recomputing", _FIG_12, "it is the recomputation that overtakes 2W "
                 "(whole processor)",
                 Crosses(whole.windows, whole.recomputing, [2 * w for w in whole.windows]),
                 "recomputing takes a fraction of 2W at every window that the machine can bear",
                 theirs="it does"),
        by_paper("recomputing-slow", _FIG_12, "it is the recomputation that overtakes 2W "
                 f"({options.slow:g} of a processor, windows below a third of a second)",
                 Crosses(slow.windows, slow.recomputing, twice),
                 "where windows are shorter than the 0.1 s between two tuples of A, states keep "
                 "more than a window's tuples, and recomputing is above 2W from the start",
                 theirs="it does"),
        by_paper("crossing-slow", _FIG_12, "after a certain window size the parallel track is the "
                 f"faster one ({options.slow:g} of a processor)",
                 Crosses(slow.windows, slow.moving, slow.parallel),
                 "the states of so small windows vary a lot", theirs="they cross"),
        by_project("cleaning", "under overload T_MS is mostly the working off of the queues: its "
                   "share at the largest window (whole processor)",
                   Limit(cleaning[-1], 0.8, least=True)),
        by_project("start-matters", "and so it grows with the time for which tuples have piled up: "
                   "T_MS at the largest window, against that of twice the start",
                   Smaller(whole.moving[-1:], later.moving[-1:], 0.8, "s")),
        by_project("taken-over", "if the new plan takes the queues over (footnote 4, run), moving "
                   "state is over first at every window",
                   Smaller(whole.taking + slow.taking, whole.parallel + slow.parallel, unit="s")),
    ]  # fmt: skip
    return report


# -- runs


def _race(
    name: str,
    windows: list[float],
    speed: float,
    start: float,
    options: CrossingOptions,
    note: Note,
) -> _Race:
    def run(w: float, strategy: Strategy, clean: Clean = "work-off") -> list[Measured]:
        note(f"{name}: window of {w:.2g} s, {strategy}")
        return [
            migration(
                set_3(w),
                strategy,
                "nested-loop",
                start=start,
                seed=options.seed + k,
                slices=options.slices,
                clean=clean,
                speed=speed,
            )
            for k in range(options.repeats)
        ]

    moved = [run(w, "moving-state") for w in windows]
    taken = [run(w, "moving-state", "take-over") for w in windows]
    tracks = [run(w, "parallel-track") for w in windows]
    return _Race(
        windows,
        [mean([m.total for m in runs]) for runs in moved],
        [mean([m.clean for m in runs]) for runs in moved],
        [mean([m.move for m in runs]) for runs in moved],
        [mean([m.total for m in runs]) for runs in taken],
        [mean([m.total for m in runs]) for runs in tracks],
        [mean([m.busy for m in runs]) for runs in moved],
    )


def _draw_race(report: Report, name: str, race: _Race) -> None:
    lines = {
        "T_MS": race.moving,
        "of that recomputing": race.recomputing,
        "T_MS, queues taken over": race.taking,
        "T_PT": race.parallel,
    }
    unit = f"T (s), {name}"
    for label, y in lines.items():
        report.series.append(_series(label, race.windows, y, unit, y_scale="log"))
    twice = [2 * w for w in race.windows]
    report.series.append(_series("2W", race.windows, twice, unit, dashed=True, y_scale="log"))
    crossing = Crosses(race.windows, race.moving, race.parallel)
    report.systems[name] = asdict(race) | {"crossing": crossing.at}


def _tracks(
    setting: CapeSetting, account: Account, options: TrackOptions | RateOptions, old: str = OLD
) -> list[Measured]:
    """T_PT of several streams."""
    return [
        migration(
            setting,
            "parallel-track",
            account,
            old=old,
            start=options.warm * setting.window,
            seed=options.seed + k,
            slices=options.slices,
            speed=options.speed,
        )
        for k in range(options.tracks)
    ]


def _moves(
    setting: CapeSetting, options: MoveOptions | RateOptions, note: Note, text: str
) -> list[Recomputed]:
    """State recomputation of several streams."""
    note(f"{text}: recomputing")
    start = options.warm * setting.window
    return [recompute(setting, start, options.seed + k) for k in range(options.repeats)]


def _printed(setting: CapeSetting, speed: float) -> float:
    _, b, c, d = setting.rates
    _, bc, cd = setting.sigmas
    return equation_8((b, c, d), (bc, cd), setting.window, terms_of(PAPER, "nested-loop")) / speed


# -- fits

_FORMS = ("polynomial", "linear", "exponential", "fifth power")


def _fit(x: Sequence[float], y: Sequence[float], form: str) -> list[float]:
    """The curve of a form with the smallest squared relative error (the exponential: of logs)."""
    xs, ys = np.asarray(x), np.asarray(y)
    if form == "exponential":
        slope, shift = np.polyfit(xs, np.log(ys), 1)
        curve: list[float] = np.exp(slope * xs + shift).tolist()
        return curve
    terms = {"polynomial": (xs**2, xs**3), "linear": (xs**0, xs), "fifth power": (xs**5,)}[form]
    table = np.column_stack(terms)
    factors, *_ = np.linalg.lstsq(table / ys[:, None], np.ones(len(ys)), rcond=None)
    fitted: list[float] = (table @ factors).tolist()
    return fitted


def fit_error(x: Sequence[float], y: Sequence[float], form: str) -> float:
    """The mean squared relative error of the best fit of a form.

    >>> fit_error([1.0, 2.0, 3.0, 4.0], [3.0, 5.0, 7.0, 9.0], "linear") < 1e-9
    True
    """
    fitted = _fit(x, y, form)
    return mean([(f / v - 1) ** 2 for f, v in zip(fitted, y, strict=True)])


def _series(
    label: str,
    x: Sequence[float],
    y: Sequence[float],
    unit: str = "T (s)",
    x_unit: str = "window W (s)",
    *,
    dashed: bool = False,
    y_scale: Scale = "linear",
) -> Series:
    shown = [1000 * v for v in y] if unit.endswith("(ms)") else list(y)
    return Series(label, list(x), shown, unit, x_unit, y_scale=y_scale, dashed=dashed)


def _seconds(window: float) -> str:
    return f"W = {window:g} s"
