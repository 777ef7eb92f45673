"""Seed 002, figures 9 to 12: PTLB against MSLB, by window and rate.

All streams have the same rate, 30, 40 or 50 tuples/s, and windows have 15 to 60 s. Each setting is
run without adaptation, with PTLB and with MSLB over the same rows; the throughput ratio is the
number of results over that without adaptation. Plans stay as they are: nothing in the rates would
change them.

*The machines* have one share of a processor in all twelve settings. The smallest setting leaves
the first machine time, and the largest is more than all machines can do together. *The runs* last
three of the longest windows.

*How long a move takes* is measured from the manager's first message to its last confirmation. The
sender of PTLB must join two windows of new tuples, and it is the machine that is behind. So figure
12 is also run on machines that keep up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean

from plait.groups.moves.move import Protocol
from plait_lab.experiments.dcape.settings import NONE, Adaptation, Phase, Run, Scenario
from plait_lab.reporting.comparisons import Falls, Near, Smaller
from plait_lab.reporting.report import Claim, Note, Report, Series, by_paper, by_project, spread

SEED = "002"
SPEED = 7e-4
"""The share of a processor that each machine has in section 5.3."""
PROTOCOLS: tuple[Protocol, ...] = ("PTLB", "MSLB")
_PLACE = "section 5.3, on figure {}"
_ABOUT = 0.25
_SMALL = 0.1
"""A difference that is called insignificant."""
_MUCH = 0.5
_FULL = (
    "with so many pairs to compare the balanced machines are overloaded as well, so what is moved "
    "is not done earlier"
)
_LATE = (
    "the sender is behind: it joins the two windows of new tuples that purge the old ones later "
    "than they arrive, so the relief comes late or not at all"
)


@dataclass(frozen=True, slots=True)
class Options:
    """What can be varied."""

    shortest: float = 15.0
    """The windows, in seconds."""
    longest: float = 60.0
    points: int = 4
    windows: float = 3.0
    """How long the streams last, in longest windows."""
    slices: int = 10
    """Ticks of virtual time per window."""
    every: float = 5.0
    """Seconds between two looks of the manager."""
    speed: float = SPEED
    machines: int = 7
    groups: int = 100
    seeds: int = 3
    """Streams drawn."""
    seed: int = 1

    @property
    def sizes(self) -> list[float]:
        """The windows."""
        step = (self.longest - self.shortest) / max(1, self.points - 1)
        return [self.shortest + k * step for k in range(self.points)]

    def scenario(self, window: float, rate: float, seconds: float, speed: float) -> Scenario:
        """A cluster and its streams."""
        phases = (Phase(0.0, (rate,) * 3),)
        tick = window / self.slices
        return Scenario(window, phases, seconds, speed, self.machines, self.groups, tick)


Lines = dict[str, list[list[float]]]
"""For each protocol and draw, a number for each window."""


def fig9(options: Options, note: Note) -> Report:
    """Throughput ratios of PTLB and MSLB over windows, at 30 tuples/s."""
    place, (report, lines) = _PLACE.format(9), _ratios("dcape/fig9", options, 30.0, note)
    report.claims = [
        *(by_paper(f"grows-{p.lower()}", place, f"the larger the window, the larger the gain of "
                   f"{p}", Falls([-v for v in _mean(lines[p])]), _LATE, theirs="grows")
          for p in PROTOCOLS),
        by_paper("small-same", place, "with the smallest window the difference between PTLB and "
                 "MSLB is insignificant",
                 Near(_at(lines["PTLB"], 0), _at(lines["MSLB"], 0), _SMALL), _LATE,
                 theirs="insignificant"),
        by_paper("large-mslb", place, "with the largest window MSLB is ahead of PTLB by about 25 %",
                 Smaller(_at(lines["PTLB"], -1), _at(lines["MSLB"], -1), 1 / 1.2),
                 "the runs are short beside the windows: for the first two windows of a move the "
                 "receivers of PTLB find what those of MSLB find", theirs="about 25 %"),
        *_both_help(lines, place),
    ]  # fmt: skip
    return report


def fig10(options: Options, note: Note) -> Report:
    """Throughput ratios of PTLB and MSLB over windows, at 40 tuples/s."""
    place, (report, lines) = _PLACE.format(10), _ratios("dcape/fig10", options, 40.0, note)
    _, slower = _ratios("dcape/fig9", replace(options, points=1), 30.0, note)
    report.claims = [
        *(by_paper(f"grows-{p.lower()}", place, f"the larger the window, the larger the gain of "
                   f"{p}", Falls([-v for v in _mean(lines[p])]), _FULL, theirs="grows")
          for p in PROTOCOLS),
        *(by_paper(f"more-than-30-{p.lower()}", place, f"with the smallest window {p} gains more "
                   "than at 30 tuples/s",
                   Smaller(_at(slower[p], 0), _at(lines[p], 0)), _LATE, theirs="much larger")
          for p in PROTOCOLS),
        *_both_help(lines, place),
    ]  # fmt: skip
    return report


def fig11(options: Options, note: Note) -> Report:
    """Throughput ratios of PTLB and MSLB over windows, at 50 tuples/s."""
    place, (report, lines) = _PLACE.format(11), _ratios("dcape/fig11", options, 50.0, note)
    once = [1.0] * options.seeds
    report.claims = [
        by_paper("small-ptlb", place, "with the smallest window PTLB gives about 90 % more",
                 Smaller(once, _at(lines["PTLB"], 0), (1 + _ABOUT) / 1.9), _LATE, theirs="1.9"),
        by_paper("small-mslb", place, "with the smallest window MSLB gives about 100 % more",
                 Smaller(once, _at(lines["MSLB"], 0), (1 + _ABOUT) / 2.0),
                 "half of the results are those of the other machines, which keep up", theirs="2"),
        by_paper("narrows", place, "as the window grows, the gap between PTLB and none narrows",
                 Falls(_mean(lines["PTLB"])), "with the smallest window PTLB gains little, because "
                 "its sender is behind", theirs="narrows"),
        by_paper("mslb-ahead", place, "MSLB is the better choice with large windows",
                 Smaller(_at(lines["PTLB"], -1), _at(lines["MSLB"], -1)), _FULL, theirs="better"),
        *_both_help(lines, place),
    ]  # fmt: skip
    return report


def _both_help(lines: Lines, place: str) -> list[Claim]:
    """That either protocol gives more than none, over all windows and draws."""
    found = []
    for protocol, why in (("PTLB", _LATE), ("MSLB", _FULL)):
        values = [v for line in lines[protocol] for v in line]
        found.append(
            by_paper(f"helps-{protocol.lower()}", place, f"{protocol} gives more results than no "
                     "adaptation", Smaller([1.0] * len(values), values), why, theirs="more")
        )  # fmt: skip
    return found


def _ratios(name: str, options: Options, rate: float, note: Note) -> tuple[Report, Lines]:
    """The runs of one rate, and their throughput ratios."""
    report = Report(name, asdict(options) | {"rate": rate}, seed=SEED, runtime="virtual")
    sizes, seconds = options.sizes, options.windows * options.longest
    lines: Lines = {p: [[] for _ in range(options.seeds)] for p in PROTOCOLS}
    for window in sizes:
        scenario = options.scenario(window, rate, seconds, options.speed)
        tally: dict[str, list[float]] = {"none": [], **{p: [] for p in PROTOCOLS}}
        for k in range(options.seeds):
            note(f"{rate:g} tuples/s, window {window:g} s, draw {k + 1}")
            tables = scenario.tables(options.seed + k)
            none = Run(scenario, NONE, tables).through().total
            tally["none"].append(none)
            for protocol in PROTOCOLS:
                adaptation = Adaptation(protocol, every=options.every)
                total = Run(scenario, adaptation, tables).through().total
                tally[protocol].append(total)
                lines[protocol][k].append(total / none if none else 1.0)
        for setting, totals in tally.items():
            report.systems[f"{setting}, window {window:g} s"] = {"results": spread(totals)}
    report.series.append(
        Series("no adaptation", sizes, [1.0] * len(sizes), "throughput ratio", "window (s)")
    )
    for protocol in PROTOCOLS:
        report.series.append(
            Series(protocol, sizes, _mean(lines[protocol]), "throughput ratio", "window (s)")
        )
        for end in (min, max):
            band = [end(some) for some in zip(*lines[protocol], strict=True)]
            label = f"{protocol}, {end.__name__} of the draws"
            report.series.append(
                Series(label, sizes, band, "throughput ratio", "window (s)", dashed=True)
            )
    return report, lines


def _mean(draws: Sequence[Sequence[float]]) -> list[float]:
    return [fmean(some) for some in zip(*draws, strict=True)]


def _at(draws: Sequence[Sequence[float]], place: int) -> list[float]:
    return [line[place] for line in draws]


@dataclass(frozen=True, slots=True)
class LengthOptions(Options):
    """What can be varied."""

    rate: float = 40.0
    most: float = 16.0
    """How long a run waits for its moves, in windows."""
    quick: float = 20.0
    """How many times as fast machines are that keep up."""
    seeds: int = 3


def fig12(options: LengthOptions, note: Note) -> Report:
    """How long a load balancing takes by PTLB and by MSLB, over windows."""
    report = Report("dcape/fig12", asdict(options), seed=SEED, runtime="virtual")
    sizes = options.sizes
    found: dict[tuple[Protocol, bool], list[float]] = {}
    for keeps_up in (False, True):
        speed = options.speed * (options.quick if keeps_up else 1.0)
        for protocol in PROTOCOLS:
            line = []
            for window in sizes:
                note(f"{protocol}, window {window:g} s{', keeping up' if keeps_up else ''}")
                draws = range(options.seeds if not keeps_up else 1)
                some = [_length(options, window, speed, protocol, options.seed + k) for k in draws]
                line.append(fmean(some))
                if not keeps_up:
                    report.systems[f"{protocol}, window {window:g} s"] = {"seconds": spread(some)}
            found[protocol, keeps_up] = line
            label = f"{protocol}, machines that keep up" if keeps_up else protocol
            report.series.append(Series(label, sizes, line, "seconds", "window (s)"))
    twice = [2 * window for window in sizes]
    report.series.append(Series("2W", sizes, twice, "seconds", "window (s)", dashed=True))
    place = _PLACE.format(12)
    report.claims = [
        by_paper("ptlb-2w", place, "PTLB takes approximately 2W: on machines that keep up",
                 Near(found["PTLB", True], twice, _ABOUT), _LATE, theirs="2W",
                 covers=("section 3.1",)),
        by_paper("ptlb-2w-behind", place, "PTLB always takes approximately 2W: also on the "
                 "machines of figure 10, whose sender is behind",
                 Near(found["PTLB", False], twice, _ABOUT), _LATE, theirs="2W",
                 covers=("section 3.1",)),
        by_paper("mslb-shorter", place, "MSLB usually takes much less time than PTLB: on machines "
                 "that keep up", Smaller(found["MSLB", True], found["PTLB", True], _MUCH, "s"),
                 "the sender works off its queue before it sends anything", theirs="much less"),
        by_paper("mslb-shorter-behind", place, "MSLB usually takes much less time than PTLB: also "
                 "on the machines of figure 10",
                 Smaller(found["MSLB", False], found["PTLB", False], _MUCH, "s"),
                 "the sender works off its queue before it sends anything", theirs="much less"),
        by_project("at-most-2w", "on machines that keep up, PTLB is done after 2W and two ticks",
                   Smaller(found["PTLB", True], [t + 2 * t / 2 / options.slices for t in twice],
                           unit="s")),
    ]  # fmt: skip
    return report


def _length(
    options: LengthOptions, window: float, speed: float, protocol: Protocol, seed: int
) -> float:
    """How long the moves of the manager's first decision take on average."""
    most = options.most * window
    scenario = options.scenario(window, options.rate, most, speed)
    # The windows are full when the manager begins to look.
    adaptation = Adaptation(protocol, every=options.every, balance_from=window, rounds=1)
    run = Run(scenario, adaptation, scenario.tables(seed))
    time = window + 2 * options.every
    while time < most and not _settled(run):
        time += window / 2
        run.through(min(time, most))
    ended = run.lengths(protocol)
    still = [r for r in run.cluster.moves.values() if r.ended is None]
    # A move that is not over has taken at least as long as the run has lasted since.
    return fmean([*ended, *(most - r.begun for r in still)] or [most])


def _settled(run: Run) -> bool:
    moves = run.cluster.moves.values()
    return bool(moves) and all(record.ended is not None for record in moves)
