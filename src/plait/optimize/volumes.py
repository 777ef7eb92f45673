"""How often, and for how long, tuples are close enough in time: volumes of the bounds.

*Mathematics.* Let tuples of stream i arrive at random with rate λ_i. The combinations of one tuple
from each stream of a set U that satisfy the bounds D appear with rate Π λ_i · V(U), where V(U) is
the volume of the times t with `t_j - t_i <= D[i][j]`, one of them held fixed. A combination is
made when its last tuple arrives, and kept until nothing to come can join it:

    life(t) = max over k outside U of (min over i in U of (t_i + D[i][k]) + lag_k) - max of all t_i

where lag_k is how far the watermark of k is behind: its delay, and the gap between two of its
tuples. So Π λ_i · ∫ life is the expected number that is stored. For a global window W without lag

    V(U) = n W^(n-1),    the part whose last tuple is in C: |C| W^(n-1),    ∫ life = W^n,

which are the paper's sizes and rates. For any other D the integrals are estimated by drawing times
one stream after the other, uniformly from the interval that the earlier ones leave. D is closed, so
that interval is never empty; the product of the lengths is the weight of the draw. The draws of a
set extend those of the set without its highest stream, and are the same in every process, so
estimates are too.

*Physical rows.* The engine drops rows in the order in which they were made, up to the first live
one, and compacts a state when as many rows were added as it has and a quarter of them is dead. So
between two compactions, one longest life apart, a row stays for the longest life, and those that
survived a compaction until then: on average `longest/2 + E[life] - E[life²] / (2 longest)` per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

DRAWS = 4096
_MANY_STREAMS = 8
_WORTH_COMPACTING = 0.75


class Volumes(Protocol):
    """Integrals over the times that the bounds allow; sets of streams are bit masks."""

    @property
    def symmetric(self) -> bool:
        """Whether every stream of a set is equally likely to bring its last tuple."""

    def total(self, streams: int) -> float:
        """V(U)."""

    def last(self, streams: int, part: int) -> float:
        """The part of V(U) in which the last tuple belongs to a stream of `part`."""

    def live(self, streams: int) -> float:
        """∫ life."""

    def held(self, streams: int) -> float:
        """The same for rows that are physically there, on average."""

    def longest(self, streams: int) -> float:
        """The longest life: how long a row is physically there at most."""

    def reach(self, gathered: int, part: int, target: int) -> float:
        """How far back a lookup by `gathered` tuples, the last one of `part`, goes in `target`."""


@dataclass(frozen=True, slots=True)
class Uniform:
    """A global window: everything in closed form.

    >>> volumes = Uniform(5.0, (0.0, 0.0, 0.0))
    >>> volumes.total(0b11), volumes.last(0b11, 0b01), volumes.live(0b11), volumes.live(0b001)
    (10.0, 5.0, 25.0, 5.0)
    """

    width: float
    lags: tuple[float, ...]
    symmetric: bool = True

    def total(self, streams: int) -> float:
        """n W^(n-1)."""
        n = streams.bit_count()
        power: float = self.width ** (n - 1)
        return n * power

    def last(self, streams: int, part: int) -> float:
        """|C| W^(n-1)."""
        power: float = self.width ** (streams.bit_count() - 1)
        return part.bit_count() * power

    def live(self, streams: int) -> float:
        """W^n, and what lags behind."""
        n = streams.bit_count()
        power: float = self.width ** (n - 1)
        return power * (self.width + n * self._lag(streams))

    def held(self, streams: int) -> float:
        """The average between two compactions."""
        n = streams.bit_count()
        if n == 1:
            return self.live(streams)
        w, lag = self.width, self._lag(streams)
        mean, square = w / n + lag, 2 * w * w / (n * (n + 1)) + 2 * lag * w / n + lag * lag
        return self.total(streams) * _residence(mean, square, w + lag)

    def longest(self, streams: int) -> float:
        """W, and the lag."""
        return self.width + self._lag(streams)

    def reach(self, gathered: int, part: int, target: int) -> float:
        """W: the last tuple is the newest, and all others are within W of it."""
        return self.width

    def _lag(self, streams: int) -> float:
        if not any(self.lags):
            return 0.0
        return max((lag for k, lag in enumerate(self.lags) if not streams >> k & 1), default=0.0)


def _residence(mean: float, square: float, longest: float) -> float:
    if longest <= 0:
        return 0.0
    if mean > _WORTH_COMPACTING * longest:
        return longest
    return longest / 2 + mean - square / (2 * longest)


@dataclass(frozen=True, slots=True)
class _Draw:
    """Times (a row for each member), their weights, and who was last."""

    members: list[int]
    times: Floats
    weights: Floats
    last: NDArray[np.int64]
    newest: Floats
    total: float
    by_last: dict[int, float]
    """The mean weight of the draws whose last tuple is of a stream."""


@dataclass(frozen=True, slots=True)
class SampledVolumes:
    """Any bounds: integrals over seeded draws, each set of streams drawn once.

    `matrix` is closed and in seconds. With a `batch` longer than 0 seconds, tuples that
    arrive in the same batch are taken stream by stream, in the order of their indexes.
    """

    matrix: tuple[tuple[float, ...], ...]
    lags: tuple[float, ...]
    batch: float = 0.0
    draws: int = DRAWS
    symmetric: bool = False
    _begun: dict[int, tuple[Floats, Floats]] = field(
        default_factory=dict, compare=False, repr=False
    )
    _known: dict[int, _Draw] = field(default_factory=dict, compare=False, repr=False)
    _lives: dict[int, tuple[float, float, float]] = field(
        default_factory=dict, compare=False, repr=False
    )

    def total(self, streams: int) -> float:
        """The mean weight."""
        return self._draw(streams).total

    def last(self, streams: int, part: int) -> float:
        """The mean weight of the draws whose last tuple is of `part`."""
        by_last = self._draw(streams).by_last
        return sum(mean for i, mean in by_last.items() if part >> i & 1)

    def live(self, streams: int) -> float:
        """The mean of weight times life."""
        return self.total(streams) * self._life(streams)[0]

    def held(self, streams: int) -> float:
        """The average between two compactions; base windows are dropped in time."""
        mean, square, longest = self._life(streams)
        if streams.bit_count() == 1:
            return mean
        return self.total(streams) * _residence(mean, square, longest)

    def longest(self, streams: int) -> float:
        """A bound that is reached where all tuples may be of one time."""
        return self._life(streams)[2]

    def reach(self, gathered: int, part: int, target: int) -> float:
        """The mean time from the newest tuple back to the oldest that the lookup allows."""
        draw = self._draw(gathered)
        weights = draw.weights * self._of(part, draw)
        targets = _members(target)
        back = np.array([max(self.matrix[j][i] for j in targets) for i in draw.members])
        oldest = (draw.times - back[:, None]).max(axis=0)
        whole = float(weights.sum())
        return (
            float((np.maximum(draw.newest - oldest, 0.0) * weights).sum()) / whole if whole else 0
        )

    def _of(self, part: int, draw: _Draw) -> Floats:
        return (np.int64(part) >> draw.last & 1).astype(np.float64)

    def _life(self, streams: int) -> tuple[float, float, float]:
        """Mean, mean square and longest life of a combination."""
        if streams not in self._lives:
            draw = self._draw(streams)
            until = np.full(len(draw.weights), -np.inf)
            for k in range(len(self.matrix)):
                if not streams >> k & 1:
                    ahead = np.array([self.matrix[i][k] for i in draw.members])
                    ends = (draw.times + ahead[:, None]).min(axis=0)
                    np.maximum(until, ends + self.lags[k], out=until)
            life = np.maximum(until - draw.newest, 0.0)
            share = draw.weights / max(float(draw.weights.sum()), 1e-300)
            mean, square = float((life * share).sum()), float((life**2 * share).sum())
            self._lives[streams] = mean, square, self._longest(streams)
        return self._lives[streams]

    def _longest(self, streams: int) -> float:
        """No t_i is later than the last one, so no life is longer than this."""
        members = _members(streams)
        ends = (
            min(self.matrix[i][k] for i in members) + self.lags[k]
            for k in range(len(self.matrix))
            if not streams >> k & 1
        )
        return max(0.0, *ends, 0.0)

    def _draw(self, streams: int) -> _Draw:
        if streams not in self._known:
            self._known[streams] = self._sample(streams)
        return self._known[streams]

    def _sample(self, streams: int) -> _Draw:
        members = _members(streams)
        times, weights = self._times(streams)
        newest = times.max(axis=0)
        if self.batch > 0:
            phase = np.random.default_rng([11, streams]).random(self.draws)
            when = np.floor(times / self.batch + phase)
            # Of the tuples in the last batch, the stream with the highest index comes last.
            order = len(members) - 1 - np.argmax((when == when.max(axis=0))[::-1], axis=0)
        else:
            order = np.argmax(times, axis=0)
        shares = np.bincount(order, weights, minlength=len(members)) / self.draws
        return _Draw(
            members,
            times,
            weights,
            np.array(members, np.int64)[order],
            newest,
            float(weights.mean()),
            dict(zip(members, map(float, shares), strict=True)),
        )

    def _times(self, streams: int) -> tuple[Floats, Floats]:
        """Times of the members, a row each, and weights: those without the highest, extended."""
        found = self._begun.get(streams)
        if found is not None:
            return found
        j = streams.bit_length() - 1
        rest = streams ^ 1 << j
        if not rest:
            found = np.zeros((1, self.draws)), np.ones(self.draws)
        else:
            times, weights = self._times(rest)
            members = _members(rest)
            low = (times - np.array([self.matrix[j][i] for i in members])[:, None]).max(axis=0)
            high = (times + np.array([self.matrix[i][j] for i in members])[:, None]).min(axis=0)
            lengths = np.maximum(high - low, 0.0)
            # One draw in each of as many equal strata, in random order: half the noise, no bias.
            random = np.random.default_rng([7, streams])
            strata = (random.permutation(self.draws) + random.random(self.draws)) / self.draws
            found = np.vstack([times, low + lengths * strata]), weights * lengths
        self._begun[streams] = found
        return found


def _members(streams: int) -> list[int]:
    return [i for i in range(streams.bit_length()) if streams >> i & 1]


def volumes_of(
    matrix: Sequence[Sequence[int]],
    lags: Sequence[float],
    *,
    batch: float = 0.0,
    draws: int = DRAWS,
) -> Volumes:
    """The volumes of a closed matrix in microseconds: in closed form where there is one.

    Of many streams each set gets fewer draws: a draw costs the square of its streams, and a
    plan is one of many that are compared by the same draws.

    >>> volumes_of(((0, 5_000_000), (5_000_000, 0)), (0.0, 0.0)).live(0b01)
    5.0
    """
    seconds = tuple(tuple(d / 1e6 for d in row) for row in matrix)
    entries = {d for i, row in enumerate(seconds) for j, d in enumerate(row) if i != j}
    if len(entries) == 1 and batch == 0:
        return Uniform(entries.pop(), tuple(lags))
    fewer = min(1.0, (_MANY_STREAMS / len(seconds)) ** 2)
    return SampledVolumes(seconds, tuple(lags), batch, max(1, round(draws * fewer)))
