"""What a claim compares, as a value: from the measurements to a verdict, and to its reverse.

A verdict is *reproduced* when the measurements say what the claim says, *deviates* when they point
the same way but are too weak, too far off or too scattered, and *contradicted* otherwise. Every
comparison can also be `reversed`: the same claim over the opposite measurements. A claim that
survives this says nothing, and a test over all experiments looks for such claims.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Protocol, Self

import numpy as np

Verdict = Literal["reproduced", "deviates", "contradicted"]

_AGREEING = 0.75
"""The share of runs that must point the same way."""
_FALLS, _FALLS_SOMEWHAT = -0.8, -0.4
"""Rank correlations of a series that falls."""
_SIGMAS = 1.96
"""Standard errors of a 95 % confidence interval."""
_ROUGHLY = 3.0
"""How many times its tolerance a value may be off and still only deviate."""


class Comparison(Protocol):
    """Measurements, and what is claimed of them."""

    @property
    def verdict(self) -> Verdict:
        """What the measurements say of the claim."""

    @property
    def value(self) -> float:
        """The number that decides."""

    @property
    def measured(self) -> str:
        """That number for people."""

    @property
    def bound(self) -> str:
        """What it must be."""

    def reversed(self) -> Self:
        """The same claim over the opposite measurements."""


@dataclass(frozen=True, slots=True)
class Smaller:
    """`left` is smaller than `right`, at most `times` of it, in pairs of runs.

    >>> Smaller([1.0, 2.0], [2.0, 3.0]).verdict, Smaller([1.0], [1.5], times=0.5).verdict
    ('reproduced', 'deviates')
    >>> Smaller([1.0, 2.0], [2.0, 3.0]).reversed().verdict
    'contradicted'
    """

    left: Sequence[float]
    right: Sequence[float]
    times: float = 1.0
    unit: str = ""

    @property
    def _ratios(self) -> list[float]:
        pairs = zip(self.left, self.right, strict=True)
        return [_ratio(a, b) for a, b in pairs]

    @property
    def value(self) -> float:
        """The median ratio."""
        return statistics.median(self._ratios)

    @property
    def verdict(self) -> Verdict:
        """By the median ratio, and whether the runs agree."""
        ratios, value = self._ratios, self.value
        if not value < 1:
            return "contradicted"
        agree = sum(r < 1 for r in ratios) >= _AGREEING * len(ratios)
        return "reproduced" if agree and value <= self.times else "deviates"

    @property
    def measured(self) -> str:
        """Medians and the ratio with its spread."""
        unit = f" {self.unit}" if self.unit else ""
        ratios = self._ratios
        text = f"{_short(statistics.median(self.left))} against "
        text += f"{_short(statistics.median(self.right))}{unit}, ratio {_short(self.value)}"
        if len(ratios) > 1:
            text += f" ({_short(min(ratios))} to {_short(max(ratios))} in {len(ratios)} runs)"
        return text

    @property
    def bound(self) -> str:
        """The largest ratio."""
        return "ratio below 1" if self.times == 1 else f"ratio at most {self.times:g}"

    def reversed(self) -> Self:
        """Each in the place of the other."""
        return replace(self, left=self.right, right=self.left)


@dataclass(frozen=True, slots=True)
class Near:
    """Each value is near what is expected of it, within a share of it.

    >>> Near([2.0, 4.1], [2.0, 4.0], 0.05).verdict, Near([2.0, 4.4], [2.0, 4.0], 0.05).verdict
    ('reproduced', 'deviates')
    >>> Near([2.0, 4.1], [2.0, 4.0], 0.05).reversed().verdict
    'contradicted'
    """

    values: Sequence[float]
    expected: Sequence[float]
    within: float

    @property
    def _ratios(self) -> list[float]:
        return [_ratio(v, e) for v, e in zip(self.values, self.expected, strict=True)]

    @property
    def value(self) -> float:
        """The ratio that is furthest from 1, less 1."""
        return max((r - 1 for r in self._ratios), key=abs)

    @property
    def verdict(self) -> Verdict:
        """By the worst value."""
        if not abs(self.value) <= _ROUGHLY * self.within:
            return "contradicted"
        return "reproduced" if abs(self.value) <= self.within else "deviates"

    @property
    def measured(self) -> str:
        """The range of the ratios."""
        ratios = self._ratios
        if len(ratios) == 1:
            return f"{_short(self.values[0])} for {_short(self.expected[0])}"
        return f"{_short(min(ratios))} to {_short(max(ratios))} times what is expected"

    @property
    def bound(self) -> str:
        """The tolerance."""
        return f"within {self.within:.3g} of what is expected"

    def reversed(self) -> Self:
        """The values in the opposite order; where that makes no difference, far from what is
        expected, or what is expected if they were far from it."""
        backwards = replace(self, values=tuple(self.values[::-1]))
        if backwards.verdict != self.verdict:
            return backwards
        off = 1 if self.verdict == "contradicted" else 1 + 2 * _ROUGHLY * self.within
        return replace(self, values=tuple(off * e for e in self.expected))


@dataclass(frozen=True, slots=True)
class Falls:
    """A series falls, by rank and from its first to its last value.

    >>> Falls([3.0, 2.0, 1.5]).verdict, Falls([3.0, 2.0, 1.5]).reversed().verdict
    ('reproduced', 'contradicted')
    """

    values: Sequence[float]

    @property
    def value(self) -> float:
        """The rank correlation with the order of the series."""
        if len(set(self.values)) < 2:
            return 0.0
        ranks = np.argsort(np.argsort(self.values))
        return round(float(np.corrcoef(np.arange(len(ranks)), ranks)[0, 1]), 12)

    @property
    def verdict(self) -> Verdict:
        """By the rank correlation."""
        if self.value > _FALLS_SOMEWHAT or not self.values[-1] < self.values[0]:
            return "contradicted"
        return "reproduced" if self.value <= _FALLS else "deviates"

    @property
    def measured(self) -> str:
        """Both ends."""
        ends = f"from {_short(self.values[0])} to {_short(self.values[-1])}"
        return f"{ends}, rank correlation {self.value:.2f}"

    @property
    def bound(self) -> str:
        """The correlation."""
        return f"rank correlation at most {_FALLS:g}"

    def reversed(self) -> Self:
        """Backwards."""
        return replace(self, values=tuple(self.values[::-1]))


@dataclass(frozen=True, slots=True)
class Degree:
    """y grows as a power of x that lies between two numbers, by a fit of logarithms.

    >>> Degree([1.0, 2.0, 4.0], [1.0, 4.0, 16.0], 2, 3).verdict
    'reproduced'
    >>> Degree([1.0, 2.0, 4.0], [1.0, 4.0, 16.0], 2, 3).reversed().verdict
    'contradicted'
    """

    x: Sequence[float]
    y: Sequence[float]
    low: float
    high: float

    @property
    def _fit(self) -> tuple[float, float]:
        """The power and half of its 95 % confidence interval."""
        xs, ys = np.log(self.x), np.log(self.y)
        slope, shift = np.polyfit(xs, ys, 1)
        free = max(1, len(xs) - 2)
        rest = float(((ys - slope * xs - shift) ** 2).sum()) / free
        wide = float(((xs - xs.mean()) ** 2).sum())
        return float(slope), _SIGMAS * math.sqrt(rest / wide)

    @property
    def value(self) -> float:
        """The power."""
        return self._fit[0]

    @property
    def verdict(self) -> Verdict:
        """Inside; or with its confidence interval reaching inside; or outside."""
        slope, half = self._fit
        if self.low <= slope <= self.high:
            return "reproduced"
        reaches = slope + half >= self.low and slope - half <= self.high
        return "deviates" if reaches else "contradicted"

    @property
    def measured(self) -> str:
        """The power with its confidence interval."""
        slope, half = self._fit
        return f"power {slope:.2f} ± {half:.2f}"

    @property
    def bound(self) -> str:
        """The range."""
        return f"between {self.low:g} and {self.high:g}"

    def reversed(self) -> Self:
        """What grows shrinks as fast."""
        return replace(self, y=tuple(1 / v for v in self.y))


@dataclass(frozen=True, slots=True)
class Crosses:
    """`left` is below `right` at first and above it in the end, with one crossing.

    It deviates where `left` only comes nearer.

    >>> Crosses([1.0, 2.0, 3.0], [1.0, 2.0, 9.0], [3.0, 3.0, 3.0]).measured
    'they cross at 2.14'
    >>> Crosses([1.0, 2.0], [1.0, 2.0], [4.0, 4.0]).verdict
    'deviates'
    """

    x: Sequence[float]
    left: Sequence[float]
    right: Sequence[float]

    @property
    def _gaps(self) -> list[float]:
        return [a - b for a, b in zip(self.left, self.right, strict=True)]

    @property
    def at(self) -> float | None:
        """Where the one crossing is, if it is the only one."""
        gaps = self._gaps
        over = [g > 0 for g in gaps]
        if over[0] or not over[-1] or sorted(over) != over:
            return None
        k = over.index(True)
        share = -gaps[k - 1] / (gaps[k] - gaps[k - 1])
        return self.x[k - 1] + share * (self.x[k] - self.x[k - 1])

    @property
    def value(self) -> float:
        """The crossing; 0 if there is none."""
        return 0.0 if self.at is None else self.at

    @property
    def _ends(self) -> tuple[float, float]:
        return _ratio(self.left[0], self.right[0]), _ratio(self.left[-1], self.right[-1])

    @property
    def verdict(self) -> Verdict:
        """By the crossing, or else by whether the two come nearer."""
        if self.at is not None:
            return "reproduced"
        first, last = self._ends
        return "deviates" if first < last < 1 else "contradicted"

    @property
    def measured(self) -> str:
        """The crossing, or the ratios at both ends."""
        if self.at is not None:
            return f"they cross at {_short(self.at)}"
        first, last = self._ends
        return f"no crossing; the ratio goes from {_short(first)} to {_short(last)}"

    @property
    def bound(self) -> str:
        """What is claimed."""
        return "one crossing"

    def reversed(self) -> Self:
        """Each in the place of the other."""
        return replace(self, left=self.right, right=self.left)


@dataclass(frozen=True, slots=True)
class Limit:
    """A value keeps to a limit.

    >>> Limit(3.0, 2.0, least=True).verdict, Limit(3.0, 2.0, least=True).reversed().verdict
    ('reproduced', 'contradicted')
    """

    value: float
    limit: float
    least: bool = False
    unit: str = ""

    @property
    def verdict(self) -> Verdict:
        """It does or does not."""
        keeps = self.value >= self.limit if self.least else self.value <= self.limit
        return "reproduced" if keeps else "contradicted"

    @property
    def measured(self) -> str:
        """The value."""
        return f"{self.value:.3g}{' ' + self.unit if self.unit else ''}"

    @property
    def bound(self) -> str:
        """The limit."""
        return f"at {'least' if self.least else 'most'} {self.limit:g}"

    def reversed(self) -> Self:
        """The value on the other side of the limit, as far away."""
        away = abs(self.value - self.limit) or 1.0
        beyond = self.value >= self.limit if self.least else self.value > self.limit
        return replace(self, value=self.limit - away if beyond else self.limit + away)


@dataclass(frozen=True, slots=True)
class Flat:
    """A series hardly changes: the largest less the smallest, over the mean.

    >>> Flat([1.0, 1.05], 0.1).verdict, Flat([1.0, 1.05], 0.1).reversed().verdict
    ('reproduced', 'contradicted')
    """

    values: Sequence[float]
    within: float

    @property
    def value(self) -> float:
        """The range over the mean."""
        return (max(self.values) - min(self.values)) / statistics.mean(self.values)

    @property
    def verdict(self) -> Verdict:
        """By the range."""
        if not self.value <= _ROUGHLY * self.within:
            return "contradicted"
        return "reproduced" if self.value <= self.within else "deviates"

    @property
    def measured(self) -> str:
        """The range."""
        low, high = min(self.values), max(self.values)
        return f"{_short(low)} to {_short(high)}, {self.value:.1%} of the mean"

    @property
    def bound(self) -> str:
        """The tolerance."""
        return f"at most {self.within:.0%} of the mean"

    def reversed(self) -> Self:
        """A series that grows where this one is flat, and is flat where it is not."""
        if self.verdict == "contradicted":
            return replace(self, values=(statistics.mean(self.values),) * len(self.values))
        steep = 1 + 2 * _ROUGHLY * self.within
        return replace(self, values=tuple(v * steep**k for k, v in enumerate(self.values)))


@dataclass(frozen=True, slots=True)
class Same:
    """Several systems agree.

    >>> Same([7, 7]).verdict, Same([7, 8]).verdict, Same([]).verdict
    ('reproduced', 'contradicted', 'contradicted')
    """

    values: Sequence[object]

    @property
    def value(self) -> float:
        """1 if they do."""
        return float(len(set(self.values)) == 1)

    @property
    def verdict(self) -> Verdict:
        """They do or do not."""
        return "reproduced" if self.value else "contradicted"

    @property
    def measured(self) -> str:
        """What there was."""
        return ", ".join(map(str, dict.fromkeys(self.values)))

    @property
    def bound(self) -> str:
        """What is claimed."""
        return "equal"

    def reversed(self) -> Self:
        """With one that differs; or the first one alone."""
        if not self.value:
            return replace(self, values=tuple(self.values[:1]) or (0,))
        return replace(self, values=(*self.values, object()))


def _ratio(top: float, bottom: float) -> float:
    if bottom:
        return top / bottom
    return math.inf if top > 0 else 1.0


def _short(value: float) -> str:
    """A number with about three digits.

    >>> _short(12345.6), _short(0.012345), _short(3.0)
    ('12,346', '0.0123', '3')
    """
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
