"""Seed 000, figures 9 to 12: how long the migration stage is, by strategy, window and rate.

Everything runs on the virtual runtime, with the settings of `cape_settings.py`. T_MS and T_PT are
the lengths of the stages from the request to the end. A migration that moves a few states is a
small sample, so T_MS is the mean of several streams drawn apart. `hash` beside it is the same
machine at the same prices with hash joins.

What figure 12 depends on: by equation 8 a state that is moved costs a fraction of what the old plan
costs per second, so on a machine that keeps up with the streams T_MS is below 2W for any window
worth the name. Moving state becomes the longer one when the machine falls behind: then it first has
to work off what has piled up since (`start` seconds, much longer than a window), while a parallel
track only has to get through 2W. So the strategies cross where the load does, and hash joins move
that to larger windows. If the new plan takes the queues over (footnote 4 of the paper), moving
state is always the shorter one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import get_args

import numpy as np

from plait.hosts.virtual.accounting import Account
from plait.optimize.costs import PAPER, load
from plait.optimize.migration_cost import equation_8, t_parallel_track, terms_of
from plait.plan.migration import Strategy
from plait.workshop.bench.report import Claim, Note, Report, Scale, Series, at_most
from plait.workshop.experiments.cape_settings import (
    FLAT,
    OLD,
    SPEED,
    START,
    Measured,
    Setting,
    mean,
    migration,
    moves,
    set_1,
    set_2,
    set_3,
)

SEED = "000"
_WITHIN = 0.10
_MODEL = 0.25
_HOURS = 20.0


@dataclass(frozen=True, slots=True)
class LengthOptions:
    """What can be varied."""

    shortest: float = 2.0
    """The shortest window, in seconds."""
    longest: float = 3.5
    step: float = 0.3
    warm: float = 3.0
    """When the migration begins, in windows."""
    repeats: int = 16
    """Streams drawn for each T_MS."""
    tracks: int = 3
    """Streams drawn for each T_PT."""
    slices: int = 25
    """Slices of virtual time per window."""
    speed: float = SPEED
    seed: int = 1

    @property
    def windows(self) -> list[float]:
        """From the shortest to the longest."""
        count = round((self.longest - self.shortest) / self.step) + 1
        return [self.shortest + self.step * k for k in range(count)]


@dataclass(frozen=True, slots=True)
class RateOptions:
    """What can be varied."""

    slowest: float = 60.0
    """The longest inter-arrival time of B, in milliseconds."""
    fastest: float = 20.0
    points: int = 7
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

    shortest: float = 0.2
    longest: float = 0.7
    hash_shortest: float = 0.5
    hash_longest: float = 1.5
    points: int = 6
    start: float = 2 * START
    """When the migration begins, in seconds."""
    slices: int = 8
    speed: float = SPEED
    seed: int = 1


def fig9(options: LengthOptions, note: Note) -> Report:
    """T_PT grows linearly with the window: 2W if joins are above joins, else W."""
    report = _report("cape/fig9", options)
    windows = options.windows

    runs: dict[str, list[Measured]] = {}
    kinds: list[tuple[str, Account, str]] = [
        ("h = 3", "nested-loop", OLD),
        ("h = 1", "nested-loop", FLAT),
        ("h = 3, hash joins", "hash", OLD),
    ]
    for label, account, shape in kinds:
        runs[label] = []
        for w in windows:
            note(f"{label}: window of {w:g} s")
            runs[label].append(_mean_track(set_1(w), account, options, shape))
    for label, found in runs.items():
        report.series.append(_series(f"T_PT, {label}", windows, [m.total for m in found]))
    for height, text in ((3, "2W"), (1, "W")):
        predicted = [t_parallel_track(height, w) for w in windows]
        report.series.append(_series(text, windows, predicted, dashed=True))
    report.claims = [
        _near_window("pt-2w", "T_PT = 2W for h > 1", windows, runs["h = 3"], 2.0),
        _near_window("pt-w", "T_PT = W for h = 1", windows, runs["h = 1"], 1.0),
        _near_window("pt-2w-hash", "hash joins change nothing: T_PT = 2W", windows,
                     runs["h = 3, hash joins"], 2.0),
        _linear("pt-linear", windows, [m.total for m in runs["h = 3"]]),
        at_most("keeps-up", "the machine keeps up: its busy share before the migration",
                max(m.busy for m in runs["h = 3"]), 1.0),
    ]  # fmt: skip
    return report


def fig10(options: LengthOptions, note: Note) -> Report:
    """T_MS grows like a polynomial of the window, as equation 8 says."""
    report = _report("cape/fig10", options)
    windows = options.windows
    found = [_mean_moves(set_1(w), options, note, f"window of {w:g} s") for w in windows]
    nested, hashed = [f["nested-loop"] for f in found], [f["hash"] for f in found]
    model = [set_1(w).predicted("nested-loop", speed=options.speed).t_ms for w in windows]
    printed = [_printed(set_1(w), options.speed) for w in windows]
    fitted, squares = _cubic(windows, nested)
    report.series = [
        _series("measured T_MS", windows, nested, "T_MS (ms)"),
        _series("fit a W² + b W³", windows, fitted, "T_MS (ms)", dashed=True),
        _series("model", windows, model, "T_MS (ms)", dashed=True),
        _series("equation 8 as printed", windows, printed, "T_MS (ms)", dashed=True),
        _series("measured T_MS, hash joins", windows, hashed, "T_MS (ms)"),
    ]
    ratios = [m / p for m, p in zip(nested, printed, strict=True)]
    slope = _degree(windows, nested)
    hash_model = [set_1(w).predicted("hash", speed=options.speed).t_ms for w in windows]
    report.ratios = {
        "measured / equation 8 as printed": dict(zip(map(_seconds, windows), ratios, strict=True)),
        "nested loops / hash joins": dict(
            zip(map(_seconds, windows),
                [n / h for n, h in zip(nested, hashed, strict=True)], strict=True)
        ),
    }  # fmt: skip
    report.claims = [
        _near_model("ms-model", "T_MS as equations 1 to 3 predict, with the sizes of states that "
                    "are recomputed", nested, model),
        Claim("ms-polynomial", "T_MS is a polynomial a W² + b W³, as equation 8",
              f"R² = {squares:.3f}", squares, "at least 0.95", squares >= 0.95),
        Claim("ms-degree", "the degree of equation 8 is between 2 and 3",
              f"W^{slope:.2f}", slope, "2 to 3", 2.0 <= slope <= 3.0),
        Claim("ms-printed", "equation 8 as printed is an upper bound: it counts each pair of BC "
              "twice", f"{min(ratios):.2f} to {max(ratios):.2f} of it", mean(ratios),
              "0.5 to 1 on average", 0.5 <= mean(ratios) <= 1.0),
        _near_model("ms-model-hash", "T_MS by hash joins as the model predicts",
                    hashed, hash_model),
    ]  # fmt: skip
    return report


def fig11(options: RateOptions, note: Note) -> Report:
    """T_MS grows with the rate of B; T_PT does not."""
    report = _report("cape/fig11", options)
    gaps = options.gaps
    rates = [1000 / gap for gap in gaps]
    tracks, found = [], []
    for gap in gaps:
        note(f"a tuple of B every {gap:.3g} ms")
        tracks.append(_mean_track(set_2(gap), "nested-loop", options))
        found.append(_mean_moves(set_2(gap), options, note, f"B every {gap:.3g} ms"))
    nested, hashed = [f["nested-loop"] for f in found], [f["hash"] for f in found]
    window = set_2(1.0).window
    model = [set_2(gap).predicted("nested-loop", speed=options.speed).t_ms for gap in gaps]
    lengths = [m.total for m in tracks]
    x_unit = "λ_B (tuples/s)"
    report.series = [
        _series("T_MS", rates, nested, "T_MS (ms)", x_unit),
        _series("model", rates, model, "T_MS (ms)", x_unit, dashed=True),
        _series("T_MS, hash joins", rates, hashed, "T_MS (ms)", x_unit),
        _series("T_PT", rates, lengths, "T_PT (s)", x_unit),
        _series("2W", rates, [2 * window] * len(rates), "T_PT (s)", x_unit, dashed=True),
    ]
    growth = nested[-1] / nested[0]
    spread = (max(lengths) - min(lengths)) / mean(lengths)
    correlation = float(np.corrcoef(rates, nested)[0, 1])
    report.claims = [
        Claim("ms-grows", "T_MS grows with the rate of B",
              f"{growth:.2f} times from λ_B = {rates[0]:.0f} to {rates[-1]:.0f} per second",
              growth, "more than half as much as the rate",
              growth > 0.5 * rates[-1] / rates[0] and correlation > 0.9),
        at_most("pt-flat", "T_PT does not: (largest - smallest) / mean", spread, 2 * _WITHIN),
        _near_window("pt-2w", "T_PT = 2W whatever the rate", [window] * len(tracks), tracks, 2.0),
        _near_model("ms-model", "T_MS as the model predicts", nested, model),
    ]  # fmt: skip
    return report


def fig12(options: CrossingOptions, note: Note) -> Report:
    """Which strategy is over first: moving state for small windows, parallel track for large."""
    report = _report("cape/fig12", options)
    spans = {
        "nested-loop": (options.shortest, options.longest),
        "hash": (options.hash_shortest, options.hash_longest),
    }
    crossings: dict[str, float | None] = {}
    for account in get_args(Account):
        first, last = spans[account]
        windows = [float(w) for w in np.linspace(first, last, options.points)]
        moved, tracks = [], []
        for w in windows:
            note(f"{account}: window of {w:.2g} s")
            moved.append(_migrate(set_3(w), "moving-state", account, options))
            tracks.append(_migrate(set_3(w), "parallel-track", account, options))
        unit = "T (s), nested loops" if account == "nested-loop" else "T (s), hash joins"
        report.series += [
            _series("T_MS", windows, [m.total for m in moved], unit, y_scale="log"),
            _series(
                "T_MS, queues taken over", windows, [m.move for m in moved], unit, y_scale="log"
            ),
            _series("T_PT", windows, [m.total for m in tracks], unit, y_scale="log"),
            _series("2W", windows, [2 * w for w in windows], unit, dashed=True, y_scale="log"),
        ]
        ahead = [m.total - t.total for m, t in zip(moved, tracks, strict=True)]
        crossings[account] = _crossing(windows, ahead)
        report.systems[account] = {
            "busy": [m.busy for m in moved],
            "T_MS": [m.total for m in moved],
            "of that cleaning": [m.clean for m in moved],
            "T_PT": [t.total for t in tracks],
            "windows": windows,
        }
        name = "nested loops" if account == "nested-loop" else "hash joins"
        report.claims += [
            _crosses(account, name, windows, ahead, crossings[account]),
            Claim(f"taken-over-{account}", f"{name}: if the queues are taken over, moving state is "
                  "always over first", _against([m.move for m in moved],
                  [t.total for t in tracks]), max(m.move / t.total for m, t in
                  zip(moved, tracks, strict=True)), "T_MS / T_PT below 1",
                  all(m.move < t.total for m, t in zip(moved, tracks, strict=True))),
        ]  # fmt: skip
    nested, hashed = crossings["nested-loop"], crossings["hash"]
    if nested is not None and hashed is not None:
        factor = hashed / nested
        ours = _overload()
        report.ratios = {
            "crossing, nested loops (s)": nested,
            "crossing, hash joins (s)": hashed,
            "overload, this engine's costs, by the model (s)": ours,
        }
        report.claims.append(
            Claim("moves", "hash joins move the crossing to larger windows",
                  f"from {nested:.2f} s to {hashed:.2f} s; with this engine's own costs and a "
                  f"whole processor the old plan is too much from {ours:.1f} s on, by the model",
                  factor, "more than 1.5 times",
                  factor > 1.5)
        )  # fmt: skip
    return report


# -- runs


def _report(name: str, options: LengthOptions | RateOptions | CrossingOptions) -> Report:
    return Report(name, asdict(options), seed=SEED, runtime="virtual")


def _migrate(
    setting: Setting, strategy: Strategy, account: Account, options: CrossingOptions
) -> Measured:
    return migration(
        setting,
        strategy,
        account,
        start=options.start,
        seed=options.seed,
        slices=options.slices,
        speed=options.speed,
    )


def _mean_track(
    setting: Setting, account: Account, options: LengthOptions | RateOptions, old: str = OLD
) -> Measured:
    """T_PT over several streams."""
    found = [
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
    return replace(
        found[0], total=mean([m.total for m in found]), busy=mean([m.busy for m in found])
    )


def _mean_moves(
    setting: Setting, options: LengthOptions | RateOptions, note: Note, text: str
) -> dict[Account, float]:
    """T_MS over several streams, by either account."""
    found = []
    for k in range(options.repeats):
        note(f"{text}: stream {k + 1} of {options.repeats}")
        start = options.warm * setting.window
        found.append(moves(setting, start, options.seed + k, options.speed))
    return {account: mean([f[account] for f in found]) for account in get_args(Account)}


def _printed(setting: Setting, speed: float) -> float:
    _, b, c, d = setting.rates
    _, bc, cd = setting.sigmas
    return equation_8((b, c, d), (bc, cd), setting.window, terms_of(PAPER, "nested-loop")) / speed


def _overload() -> float:
    """The window of set 3 from which on the old plan is too much for this engine, by the model."""
    return _root(lambda w: set_3(w).predicted("hash", load(), 1.0).old_load - 1, 0.01, _HOURS)


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function that is first negative, then positive, changes its sign."""
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < 0 else (low, middle)
    return (low + high) / 2


# -- claims


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


def _near_window(
    id_: str, text: str, windows: Sequence[float], found: Sequence[Measured], times: float
) -> Claim:
    """That every length is so many windows."""
    off = [m.total / (times * w) - 1 for w, m in zip(windows, found, strict=True)]
    worst = max(off, key=abs)
    measured = f"{times * (1 + min(off)):.3f} to {times * (1 + max(off)):.3f} windows"
    return Claim(id_, text, measured, worst, "within 10 %", abs(worst) <= _WITHIN)


def _near_model(id_: str, text: str, measured: Sequence[float], model: Sequence[float]) -> Claim:
    """That every measurement is near its prediction."""
    off = [m / p - 1 for m, p in zip(measured, model, strict=True)]
    worst = max(off, key=abs)
    shown = f"{min(off):+.0%} to {max(off):+.0%} of the model"
    return Claim(id_, text, shown, worst, "within 25 %", abs(worst) <= _MODEL)


def _linear(id_: str, x: Sequence[float], y: Sequence[float]) -> Claim:
    slope, intercept = np.polyfit(x, y, 1)
    rest = np.asarray(y) - (slope * np.asarray(x) + intercept)
    squares = 1 - float((rest**2).sum() / ((np.asarray(y) - np.mean(y)) ** 2).sum())
    return Claim(id_, "T_PT is linear in W", f"slope {slope:.2f}, R² = {squares:.4f}", squares,
                 "R² at least 0.98", squares >= 0.98)  # fmt: skip


def _cubic(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], float]:
    """The best a x² + b x³ with relative errors, and the share of the variance it explains."""
    xs, ys = np.asarray(x), np.asarray(y)
    table = np.column_stack([xs**2, xs**3])
    (a, b), *_ = np.linalg.lstsq(table / ys[:, None], np.ones(len(ys)), rcond=None)
    fitted = a * xs**2 + b * xs**3
    squares = 1 - float(((ys - fitted) ** 2).sum() / ((ys - ys.mean()) ** 2).sum())
    return fitted.tolist(), squares


def _degree(x: Sequence[float], y: Sequence[float]) -> float:
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _crossing(x: Sequence[float], ahead: Sequence[float]) -> float | None:
    """Where a series changes from negative to positive for good.

    >>> _crossing([1.0, 2.0, 3.0], [-1.0, -1.0, 1.0])
    2.5
    >>> _crossing([1.0, 2.0], [1.0, 2.0]) is None
    True
    """
    for k in range(len(x) - 1, 0, -1):
        if ahead[k] > 0 >= ahead[k - 1]:
            share = -ahead[k - 1] / (ahead[k] - ahead[k - 1])
            return x[k - 1] + share * (x[k] - x[k - 1])
        if ahead[k] <= 0:
            return None
    return None


def _crosses(
    account: str, name: str, windows: Sequence[float], ahead: Sequence[float], at: float | None
) -> Claim:
    holds = at is not None and all(a < 0 for w, a in zip(windows, ahead, strict=True) if w < at)
    shown = f"they cross at W = {at:.2f} s" if at is not None else "they do not cross"
    return Claim(f"crossing-{account}", f"{name}: moving state is over first for small windows, "
                 "parallel track for large ones", shown, at or 0.0,
                 "one crossing", holds)  # fmt: skip


def _against(left: Sequence[float], right: Sequence[float]) -> str:
    ratios = [a / b for a, b in zip(left, right, strict=True)]
    return f"T_MS / T_PT = {min(ratios):.3f} to {max(ratios):.3f}"
