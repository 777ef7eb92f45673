"""Estimates of the streams while they flow, weighted towards the present.

*Mathematics.* Every sum is weighted by 2^(-age / half-life), in event time. A rate is rows over
seconds. The *agreement* of two disjoint sets of streams G and T is the probability that a tuple of
G and a tuple of T which lie close enough in time agree in all keys and conditions between them:
matches over pairs. A lookup counts the matches; the number of pairs that it compared follows from
the rows of the state and the volumes of the bounds,

    pairs = probes · rows(T) · V(G ∪ T, last in C) / (V(G, last in C) · held(T))

so a state that is still filling or emptying gives no wrong estimate. A sample of rows counts both.
The joint selectivity of a set is then the product along the path on which it was combined; of
several paths, the most certain counts.

*Jumps.* Where a batch differs by more than chance (four standard errors and a factor of 1.5), the
estimate jumps: earlier observations are forgotten. But not if it jumped the other way within the
last four half-lives, nor again until then: streams that alternate have a mean, and a plan should be
chosen for that mean. For one window after a jump, lookups still go through rows from before it and
measure a mixture; a sample of the newest rows does not. Once there is a sample, it counts and
lookups do not.

*Confidence* is 1 - 1 / sqrt(1 + matches), which is one minus the relative error, and it fades
without new observations. Where even the upper bound of an agreement means less than a tenth of a
match per lookup, it is certain enough: a lookup without matches costs next to nothing.

A `Knowledge` is an immutable value: an observation gives another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

from plait.optimize.model import bits
from plait.optimize.statistics import PROBABILITY, ROWS_PER_SECOND, SECONDS, Estimate, Statistics
from plait.optimize.volumes import Volumes, volumes_of
from plait.plan.observed import LookupCounts
from plait.query.expr import Column
from plait.query.names import quoted
from plait.query.query import Query

_FADES = 4.0
"""Half-lives without observations after which the confidence of an estimate is halved."""

_NEGLIGIBLE = 0.1
"""Matches per lookup that cost less than the lookup."""

_ERRORS, _FACTOR = 4.0, 1.5
"""The standard errors, and the factor, that make a jump."""


@dataclass(frozen=True, slots=True)
class BatchObservations:
    """The observations of one batch."""

    time: int
    """The newest event time of any stream so far, in microseconds."""
    span: float
    """Seconds of event time that the batch brought."""
    stored: Sequence[int]
    """Tuples that entered each window."""
    looked: Sequence[LookupCounts] = ()
    seconds: float = 0.0
    """CPU seconds of joining the batch."""
    nbytes: int = 0
    """Bytes in the states after it."""
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""


class Leap(NamedTuple):
    """When an estimate jumped last, and which way: 1 up, -1 down, 0 both or never."""

    when: int = 0
    way: int = 0

    def after(self, way: int, now: int, half_life: float) -> tuple[Leap, bool]:
        """Take in what looks like a jump now, and say whether to believe it.

        >>> Leap().after(1, 5_000_000, 2.0)
        (Leap(when=5000000, way=1), True)
        >>> Leap(5_000_000, 1).after(-1, 6_000_000, 2.0)
        (Leap(when=6000000, way=0), False)
        """
        if not way:
            return self, False
        lately = self.when and now - self.when < 4e6 * half_life
        if lately and self.way != way:
            return Leap(self.when if self.way == 0 else now, 0), False
        return Leap(now, way), True


NEVER = Leap()


@dataclass(frozen=True, slots=True)
class MatchRate:
    """How often tuples of two sets of streams agree."""

    pairs: float
    matches: float
    rows: float
    """Rows in the state that a lookup searches: those of the second set."""
    time: int
    """The time of the last observation."""
    leap: Leap = NEVER
    sampled: int = -1
    """The time of the last sample."""

    @property
    def value(self) -> float:
        """The probability; never 0, since a match may still come."""
        return min(1.0, (self.matches + 0.5) / (self.pairs + 0.5))

    @property
    def most(self) -> float:
        """An upper bound: two standard errors, or three matches more."""
        return min(1.0, (self.matches + 2 * math.sqrt(self.matches) + 3) / (self.pairs + 1))

    @property
    def certainty(self) -> float:
        """One minus the relative error."""
        if self.most * self.rows < _NEGLIGIBLE:
            return 1.0
        return 1 - 1 / math.sqrt(1 + self.matches)


class Joint(NamedTuple):
    """The estimate for a set of streams as a whole."""

    value: float
    sure: float
    age: float
    """In seconds."""
    most: float
    """An upper bound of the value."""
    fresh: float
    """1 for an observation of this moment, less with time."""
    rare: bool
    """Whether a lookup finds less than one match."""


_SINGLE = Joint(1.0, 1.0, 0.0, 1.0, 1.0, False)
_NONE = Joint(0.0, 0.0, 0.0, 1.0, 0.0, False)


Pair = tuple[int, int]
"""Two disjoint sets of streams, as bit masks, the smaller number first."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """The estimates of one processor; sets of streams are bit masks."""

    half_life: float
    """In seconds of event time."""
    rows: tuple[float, ...]
    """Rows of each stream, weighted by age."""
    leaps: tuple[Leap, ...]
    """The last jump of each stream's rate."""
    window: float = 0.0
    """Seconds that rows stay in a window."""
    time: int = 0
    span: float = 0.0
    batches: float = 0.0
    seconds: float = 0.0
    timed: float = 0.0
    """Seconds of event time in which `seconds` were spent, with the current plan."""
    nbytes: int = 0
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""
    agreements: Mapping[Pair, MatchRate] = field(default_factory=dict)

    @classmethod
    def of(cls, streams: int, half_life: float, window: float = 0.0) -> Knowledge:
        """Begin without any observation.

        >>> Knowledge.of(2, 1.0).heard
        False
        """
        return cls(half_life, (0.0,) * streams, (NEVER,) * streams, window)

    # -- taking in

    def learn(self, seen: BatchObservations, volumes: Volumes) -> Knowledge:
        """Take in a batch."""
        keep = 0.5 ** (seen.span / self.half_life)
        span = keep * self.span + seen.span
        rows, last = [], []
        for old, leapt, new in zip(self.rows, self.leaps, seen.stored, strict=True):
            way = leaps(old, self.span, new, seen.span)
            leap, believed = leapt.after(way, seen.time, self.half_life)
            rows.append(new * span / seen.span if believed else keep * old + new)
            last.append(leap)
        found: dict[Pair, list[float]] = {}
        for step in seen.looked:
            # Both sides of a join measure the same pairs: together they are unbiased within a
            # batch, in which one stream is joined after the other.
            before = volumes.last(step.gathered, step.part)
            after = volumes.last(step.gathered | step.target, step.part)
            held = volumes.held(step.target)
            if before <= 0 or held <= 0:
                continue
            sums = found.setdefault(_key(step.gathered, step.target), [0.0, 0.0, 0.0])
            sums[0] += step.probes * step.rows * after / (before * held)
            sums[1] += step.matches
            sums[2] = max(sums[2], step.rows)
        known = replace(
            self,
            rows=tuple(rows),
            leaps=tuple(last),
            time=seen.time,
            span=span,
            batches=keep * self.batches + 1,
            seconds=keep * self.seconds + seen.seconds,
            timed=keep * self.timed + seen.span,
            nbytes=seen.nbytes,
            waiting=seen.waiting,
        )
        if not found:
            return known
        new_ones = {key: known._agreement(key, *sums) for key, sums in found.items()}
        return known._with(new_ones)

    def sampled(
        self, gathered: int, target: int, pairs: float, matches: float, rows: int
    ) -> Knowledge:
        """Take in a sample; `rows` counts those of the state that it was drawn from."""
        key = _key(gathered, target)
        return self._with({key: self._agreement(key, pairs, matches, rows, sample=True)})

    def _with(self, found: Mapping[Pair, MatchRate | None]) -> Knowledge:
        heard = {key: known for key, known in found.items() if known is not None}
        return replace(self, agreements={**self.agreements, **heard})

    def _agreement(
        self, key: Pair, pairs: float, matches: float, rows: float, *, sample: bool = False
    ) -> MatchRate | None:
        """The agreement of two sets of streams after further pairs and matches."""
        old = self.agreements.get(key)
        if pairs <= 0:
            if old is not None and sample:
                # Another sample would show nothing either.
                return replace(old, sampled=self.time)
            return old
        if old is None:
            old = MatchRate(0.0, 0.0, rows, self.time)
        mixed, behind = self._lately(old.leap), old.sampled < old.leap.when
        if mixed and not sample and not behind:
            return replace(old, rows=rows)
        leap, keep = old.leap, 0.5 ** ((self.time - old.time) / 1e6 / self.half_life)
        if mixed and sample and behind:
            keep = 0.0
        else:
            way = leaps(old.matches, old.pairs, matches, pairs)
            leap, believed = leap.after(way, self.time, self.half_life)
            keep = 0.0 if believed else keep
        return MatchRate(
            keep * old.pairs + pairs,
            keep * old.matches + matches,
            rows,
            self.time,
            leap,
            self.time if sample else old.sampled,
        )

    def _lately(self, leap: Leap) -> bool:
        """Whether windows still hold rows from before a jump."""
        return leap.way != 0 and self.time - leap.when < 1e6 * self.window

    def _only_mixed(self, known: MatchRate) -> bool:
        """Whether only lookups through a mixture of old and new rows have measured it."""
        return self._lately(known.leap) and known.sampled < known.leap.when

    @property
    def settled(self) -> bool:
        """Whether all rows arrived after the last jump."""
        leaps = [*self.leaps, *(known.leap for known in self.agreements.values())]
        return not any(map(self._lately, leaps))

    def doubtful(self) -> list[Pair]:
        """List the pairs of streams that need a sample since the last jump.

        Where one pair has jumped, others without an observation since may have jumped, too.
        """
        leapt = (a.leap for a in self.agreements.values())
        latest = max((leap.when for leap in leapt if self._lately(leap)), default=-1)
        return [
            key
            for key, known in self.agreements.items()
            if (key[0] | key[1]).bit_count() == 2
            and (max(known.time, known.sampled) < latest or self._only_mixed(known))
        ]

    def restarted(self) -> Knowledge:
        """Forget the times, since another plan runs now."""
        return replace(self, seconds=0.0, timed=0.0)

    def lasting(self) -> Knowledge:
        """Drop agreements that are too old to be useful."""
        oldest = self.time - 8 * _FADES * self.half_life * 1e6
        if all(known.time >= oldest for known in self.agreements.values()):
            return self
        kept = {key: known for key, known in self.agreements.items() if known.time >= oldest}
        return replace(self, agreements=kept)

    # -- what is known now

    @property
    def heard(self) -> bool:
        """Whether there was any observation."""
        return self.span > 0 and any(self.rows)

    def confidence(self, key: Pair) -> float:
        """The confidence in an agreement now."""
        known = self.agreements.get(key)
        return 0.0 if known is None else known.certainty * self._freshness(known)

    def _freshness(self, known: MatchRate) -> float:
        age = (self.time - known.time) / 1e6
        return float(0.5 ** (age / (_FADES * self.half_life)))

    def joint(self) -> dict[int, Joint]:
        """The estimate for each set of streams that was combined."""
        found: dict[int, Joint] = {}
        for key in sorted(self.agreements, key=lambda k: (k[0] | k[1]).bit_count()):
            left, right = (_SINGLE if s & (s - 1) == 0 else found.get(s, _NONE) for s in key)
            known, both = self.agreements[key], key[0] | key[1]
            if both.bit_count() > 2 and self._only_mixed(known):
                continue
            fresh = self._freshness(known)
            sure = min(known.certainty * fresh, left.sure, right.sure)
            if fresh > 0 and (both not in found or sure > found[both].sure):
                found[both] = Joint(
                    known.value * left.value * right.value,
                    sure,
                    max((self.time - known.time) / 1e6, left.age, right.age),
                    known.most * left.most * right.most,
                    min(fresh, left.fresh, right.fresh),
                    known.value * known.rows < 1,
                )
        return found

    def statistics(self, query: Query, least: float = 0.0) -> Statistics:
        """Statistics for the optimiser: estimates with at least half of `least`, and upper bounds.

        Two streams that hardly match never reach a high confidence, but what a sample shows of them
        is better than to assume that every row has a partner. Upper bounds are given for recent
        estimates below `least`.
        """
        names = query.names
        known = self.joint()
        joint = {
            u: found
            for u, found in known.items()
            if found.sure >= least / 2
            or (u.bit_count() == 2 and found.rare and found.fresh >= least / 2)
        }
        bounded = {u: f for u, f in known.items() if f.sure < least and f.fresh >= least / 2}
        rates = {
            name: Estimate(n / self.span, ROWS_PER_SECOND, 0.0, 1 - 1 / math.sqrt(1 + n))
            for name, n in zip(names, self.rows, strict=True)
            if self.span > 0
        }
        batch = Estimate(self.span / self.batches, SECONDS) if self.batches else None

        def called(streams: int) -> str:
            return " ".join(quoted(names[i]) for i in bits(streams))

        return Statistics(
            rates,
            dict(_conditions(query, joint)),
            batch,
            {called(u): Estimate(f.value, PROBABILITY, f.age, f.sure) for u, f in joint.items()},
            {called(u): Estimate(f.most, PROBABILITY, f.age, f.fresh) for u, f in bounded.items()},
        )

    # -- as plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "half_life": self.half_life,
            "window": self.window,
            "time": self.time,
            "rows": list(self.rows),
            "span": self.span,
            "batches": self.batches,
            "seconds": self.seconds,
            "timed": self.timed,
            "nbytes": self.nbytes,
            "waiting": self.waiting,
            "leaps": [list(leap) for leap in self.leaps],
            "agreements": [
                [*key, a.pairs, a.matches, a.rows, a.time, list(a.leap), a.sampled]
                for key, a in self.agreements.items()
            ],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Knowledge:
        """Read what `to_dict` wrote; earlier versions did not write the times of samples."""
        parts = dict(given)
        known = {
            (g, t): MatchRate(pairs, matches, rows, time, Leap(*leap), *sampled)
            for g, t, pairs, matches, rows, time, leap, *sampled in parts.pop("agreements")
        }
        rows, last = tuple(parts.pop("rows")), tuple(Leap(*leap) for leap in parts.pop("leaps"))
        return cls(rows=rows, leaps=last, agreements=known, **parts)


def leaps(before: float, over: float, now: float, of: float) -> int:
    """Whether the share `now` of `of` jumped up (1) or down (-1) from `before` of `over`; else 0.

    >>> leaps(100, 1000, 12, 100), leaps(100, 1000, 60, 100), leaps(1000, 1000, 1, 100)
    (0, 1, -1)
    """
    if over <= 0 or of <= 0:
        return 0
    expected = before * of / over
    error = math.sqrt(max(expected, 1.0) * (1 + of / over))
    apart = max(now, expected) > _FACTOR * min(now, expected)
    if not apart or abs(now - expected) <= _ERRORS * error:
        return 0
    return 1 if now > expected else -1


def geometry(query: Query) -> Volumes:
    """The volumes of a query's bounds, computed once per process."""
    return _volumes(query.bounds.matrix, tuple(s.lag for s in query.streams))


@lru_cache(maxsize=8)
def _volumes(matrix: tuple[tuple[int, ...], ...], delays: tuple[int, ...]) -> Volumes:
    return volumes_of(matrix, [d / 1e6 for d in delays])


def _key(gathered: int, target: int) -> Pair:
    return min(gathered, target), max(gathered, target)


def _conditions(query: Query, joint: Mapping[int, Joint]) -> Iterable[tuple[str, Estimate]]:
    """Derive selectivities of single equalities from pairs of streams.

    Where two streams share several keys, each key gets an equal part.
    """
    classes = query.graph.classes
    for streams, (value, sure, age, *_) in joint.items():
        if streams.bit_count() != 2:
            continue
        i, j = bits(streams)
        shared = [c for c in classes if {i, j} <= c.streams]
        for c in shared:
            left, right = (Column(query.names[s], c.columns[s][0]) for s in (i, j))
            part = value ** (1 / len(shared))
            yield f"{left} = {right}", Estimate(part, PROBABILITY, age, sure)
