"""What is known of the streams while they flow: estimates that forget.

*Mathematics.* Every sum is weighted by 2^(-age / half-life), in event time. A rate is rows over
seconds. The *agreement* of two disjoint sets of streams G and T is the probability that a tuple of
G and a tuple of T which lie close enough in time agree in all keys and conditions between them:
matches over pairs. A lookup tells how many matches there were; how many pairs it stood for follows
from the rows of the state and the volumes of the bounds,

    pairs = probes · rows(T) · V(G ∪ T, last in C) / (V(G, last in C) · held(T))

so a state that is still filling, or still emptying, misleads nobody. A sample of rows counts both.
The joint selectivity of a set is then the product along the way on which it was put together; where
there are several, the surest counts.

*Leaps.* Where what a batch tells cannot be chance (more than four standard errors and half as much
again), what was known before is forgotten. But not if it leapt the other way within the last four
half-lives, nor again until then: what goes back and forth has a mean, and a plan should be chosen
for that. For a window after a leap lookups still go through rows from before it, so they tell of a
mixture; a sample of the newest rows does not. Once there is one, it counts and lookups do not.

*Confidence* is 1 - 1 / sqrt(1 + matches), which is one minus the relative error, and it fades when
nothing new is heard. Where even the upper bound of an agreement means less than a tenth of a match
per lookup, it is sure enough: what is not found costs next to nothing.

A knowledge is plain data at any time (`to_dict`), so it can be kept beside the state it is about.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

from plait.optimize.model import bits
from plait.optimize.statistics import PROBABILITY, ROWS_PER_SECOND, SECONDS, Estimate, Statistics
from plait.optimize.volumes import Volumes, volumes_of
from plait.plan.observed import Looked
from plait.query.expr import Column
from plait.query.names import quoted
from plait.query.query import Query

_FADES = 4.0
"""After so many half-lives without news an estimate is half as sure."""

_NEGLIGIBLE = 0.1
"""Matches per lookup that cost less than the lookup."""

_ERRORS, _FACTOR = 4.0, 1.5
"""A leap is so many standard errors, and so many times more or less."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What one batch told."""

    time: int
    """The newest event time of any stream so far, in microseconds."""
    span: float
    """Seconds of event time that the batch brought."""
    stored: Sequence[int]
    """Tuples that entered each window."""
    looked: Sequence[Looked] = ()
    seconds: float = 0.0
    """What joining the batch took."""
    nbytes: int = 0
    """What the states hold after it."""
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""


@dataclass(slots=True)
class Agreement:
    """What is known of two sets of streams together."""

    pairs: float
    matches: float
    rows: float
    """Rows that a lookup goes through: those of the second set."""
    time: int
    """When it was heard of last."""
    leap: list[int] = field(default_factory=lambda: [0, 0])
    """When it leapt last, and which way: 1 up, -1 down, 0 both."""
    sampled: int = -1
    """When there was a sample last."""

    @property
    def value(self) -> float:
        """The probability; never quite 0, since it is not known that there never is a match."""
        return min(1.0, (self.matches + 0.5) / (self.pairs + 0.5))

    @property
    def most(self) -> float:
        """What the probability hardly exceeds: two standard errors, or three matches more."""
        return min(1.0, (self.matches + 2 * math.sqrt(self.matches) + 3) / (self.pairs + 1))

    @property
    def sureness(self) -> float:
        """One minus the relative error."""
        if self.most * self.rows < _NEGLIGIBLE:
            return 1.0
        return 1 - 1 / math.sqrt(1 + self.matches)


class Joint(NamedTuple):
    """What is known of a set of streams as a whole."""

    value: float
    sure: float
    age: float
    """In seconds."""
    most: float
    """What the value hardly exceeds."""
    fresh: float
    """1 if that was heard just now, less with time."""
    rare: bool
    """Whether a lookup finds less than one match."""


_SINGLE = Joint(1.0, 1.0, 0.0, 1.0, 1.0, False)
_NONE = Joint(0.0, 0.0, 0.0, 1.0, 0.0, False)


@dataclass(slots=True)
class Knowledge:
    """The estimates of one processor; sets of streams are bit masks."""

    streams: int
    half_life: float
    """In seconds of event time."""
    window: float = 0.0
    """How long rows stay, in seconds."""
    time: int = 0
    rows: list[float] = field(default_factory=list)
    span: float = 0.0
    batches: float = 0.0
    seconds: float = 0.0
    timed: float = 0.0
    """Seconds of event time in which `seconds` were spent, with the current plan."""
    nbytes: int = 0
    waiting: int = 0
    """Rows that have arrived and are not joined yet."""
    agreements: dict[tuple[int, int], Agreement] = field(default_factory=dict)
    leaps: list[list[int]] = field(default_factory=list)
    """When the rate of each stream leapt last, and which way."""

    def __post_init__(self) -> None:
        self.rows = self.rows or [0.0] * self.streams
        self.leaps = self.leaps or [[0, 0] for _ in range(self.streams)]

    # -- taking in

    def learn(self, seen: Seen, volumes: Volumes) -> None:
        """Take in what a batch told."""
        keep = 0.5 ** (seen.span / self.half_life)
        self.time = seen.time
        span = keep * self.span + seen.span
        for i, new in enumerate(seen.stored):
            old = self.rows[i]
            self.rows[i] = keep * old + new
            if self._leaps(self.leaps[i], leaps(old, self.span, new, seen.span)):
                self.rows[i] = new * span / seen.span
        self.span = span
        self.batches = keep * self.batches + 1
        self.seconds = keep * self.seconds + seen.seconds
        self.timed = keep * self.timed + seen.span
        self.nbytes, self.waiting = seen.nbytes, seen.waiting
        found: dict[tuple[int, int], list[float]] = {}
        for step in seen.looked:
            # Both sides of a join tell about the same pairs: together they are unbiased within
            # a batch, in which one stream comes after the other.
            key = _key(step.gathered, step.target)
            both = step.gathered | step.target
            before = volumes.last(step.gathered, step.part)
            after = volumes.last(both, step.part)
            held = volumes.held(step.target)
            if before <= 0 or held <= 0:
                continue
            sums = found.setdefault(key, [0.0, 0.0, 0.0])
            sums[0] += step.probes * step.rows * after / (before * held)
            sums[1] += step.matches
            sums[2] = max(sums[2], step.rows)
        for key, (pairs, matches, rows) in found.items():
            self._add(key, pairs, matches, rows)

    def sampled(self, gathered: int, target: int, pairs: float, matches: float, rows: int) -> None:
        """Take in what a sample told; `rows` are those of the state that it stands for."""
        self._add(_key(gathered, target), pairs, matches, rows, sample=True)

    def _add(
        self, key: tuple[int, int], pairs: float, matches: float, rows: float, sample: bool = False
    ) -> None:
        old = self.agreements.get(key)
        if pairs <= 0:
            if old is not None and sample:
                old.sampled = self.time  # there is nothing to be learnt from another one
            return
        if old is None:
            old = self.agreements[key] = Agreement(0.0, 0.0, rows, self.time)
        leapt, mixed = old.leap[0], self._mixed(old)
        old.rows = rows
        if mixed and not sample and old.sampled >= leapt:
            return
        keep = 0.5 ** ((self.time - old.time) / 1e6 / self.half_life)
        first = mixed and sample and old.sampled < leapt
        if first or self._leaps(old.leap, leaps(old.matches, old.pairs, matches, pairs)):
            keep = 0.0
        old.pairs = keep * old.pairs + pairs
        old.matches = keep * old.matches + matches
        old.time = self.time
        if sample:
            old.sampled = self.time

    def _mixed(self, known: Agreement) -> bool:
        """Whether windows still hold rows from before it leapt."""
        return self._lately(known.leap)

    def _lately(self, leap: Sequence[int]) -> bool:
        when, way = leap
        return way != 0 and self.time - when < 1e6 * self.window

    def _only_mixed(self, known: Agreement) -> bool:
        """Whether only lookups, through old rows and new ones, tell about it."""
        return self._mixed(known) and known.sampled < known.leap[0]

    @property
    def settled(self) -> bool:
        """Whether all rows came after the last leap."""
        leaps = [*self.leaps, *(known.leap for known in self.agreements.values())]
        return not any(map(self._lately, leaps))

    def doubtful(self) -> list[tuple[int, int]]:
        """The pairs of streams of which only a sample can tell what is true since a leap.

        Where one has leapt, others of which nothing was heard since may have, too.
        """
        latest = max((a.leap[0] for a in self.agreements.values() if self._mixed(a)), default=-1)
        return [
            key
            for key, known in self.agreements.items()
            if (key[0] | key[1]).bit_count() == 2
            and (max(known.time, known.sampled) < latest or self._only_mixed(known))
        ]

    def _leaps(self, last: list[int], way: int) -> bool:
        """Whether to believe a leap; `last` is brought up to date."""
        if not way:
            return False
        when, before = last
        lately = when and self.time - when < 4e6 * self.half_life
        if lately and before != way:
            last[:] = [when if before == 0 else self.time, 0]
            return False
        last[:] = [self.time, way]
        return True

    def restart_clock(self) -> None:
        """Another plan runs: what the last one took says nothing about it."""
        self.seconds = self.timed = 0.0

    # -- what is known now

    @property
    def heard(self) -> bool:
        """Whether there is anything to go by."""
        return self.span > 0 and any(self.rows)

    def confidence(self, key: tuple[int, int]) -> float:
        """How far to trust an agreement now."""
        known = self.agreements.get(key)
        return 0.0 if known is None else known.sureness * self._freshness(known)

    def _freshness(self, known: Agreement) -> float:
        age = (self.time - known.time) / 1e6
        return float(0.5 ** (age / (_FADES * self.half_life)))

    def joint(self) -> dict[int, Joint]:
        """What is known of each set that was put together."""
        found: dict[int, Joint] = {}
        for key in sorted(self.agreements, key=lambda k: (k[0] | k[1]).bit_count()):
            left, right = (_SINGLE if s & (s - 1) == 0 else found.get(s, _NONE) for s in key)
            known, both = self.agreements[key], key[0] | key[1]
            if both.bit_count() > 2 and self._only_mixed(known):
                continue
            fresh = self._freshness(known)
            sure = min(known.sureness * fresh, left.sure, right.sure)
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
        """What the optimiser is told: what is at least half as sure as it should be, and bounds.

        Two streams that hardly match are never sure, but what a sample told of them is better than
        to assume that every row has a partner. The bounds are of what is less sure than `least`, if
        it is not too old.
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

    def forget(self) -> None:
        """Drop what is too old to be of use."""
        oldest = self.time - 8 * _FADES * self.half_life * 1e6
        for key in [k for k, known in self.agreements.items() if known.time < oldest]:
            del self.agreements[key]

    # -- as plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "half_life": self.half_life,
            "window": self.window,
            "time": self.time,
            "rows": self.rows,
            "span": self.span,
            "batches": self.batches,
            "seconds": self.seconds,
            "timed": self.timed,
            "nbytes": self.nbytes,
            "waiting": self.waiting,
            "leaps": self.leaps,
            "agreements": [
                [*key, a.pairs, a.matches, a.rows, a.time, a.leap, a.sampled]
                for key, a in self.agreements.items()
            ],
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> Knowledge:
        """The inverse of `to_dict`."""
        parts = dict(given)
        known = {(g, t): Agreement(*rest) for g, t, *rest in parts.pop("agreements")}
        return cls(len(parts["rows"]), agreements=known, **parts)


def leaps(before: float, over: float, now: float, of: float) -> int:
    """Whether `now` of `of` is so much more (1) or less (-1) than `before` of `over`; else 0.

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
    """The volumes of a query's bounds; worked out once per process."""
    return _volumes(query.bounds.matrix, tuple(s.delay for s in query.streams))


@lru_cache(maxsize=8)
def _volumes(matrix: tuple[tuple[int, ...], ...], delays: tuple[int, ...]) -> Volumes:
    return volumes_of(matrix, [d / 1e6 for d in delays])


def _key(gathered: int, target: int) -> tuple[int, int]:
    return min(gathered, target), max(gathered, target)


def _conditions(query: Query, joint: Mapping[int, Joint]) -> Iterable[tuple[str, Estimate]]:
    """Selectivities of single equalities, as far as pairs of streams tell them.

    Two streams that share several keys do not tell the keys apart; each gets an equal part.
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
