"""When the loop reads the counters, draws a sample, compares plans, or looks ahead.

Each of these costs time, so the loop does it only where something may have changed, and for no more
than the share of time that the policy allows. Where joining takes longer than before, or a better
plan was found, part of that loss may be spent as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

from plait.adapt.observations import Draw
from plait.adapt.setting import Setting
from plait.adapt.state import Loop
from plait.optimize.model import bits

_ALLOWANCE = 0.02
"""Seconds that comparing and sampling may take before any rows were joined."""

_LEAST_BATCHES = 3
"""Batches before the first comparison of plans."""

_FASTER = 1.25
"""The factor by which rows must arrive faster than expected for the loop to look ahead."""

_MATCHES = 200.0
"""Matches that a sample should find to be certain enough by itself."""

_SLOW, _RECENT = 2.0, 0.1
"""The factor beyond the usual time at which a piece is inspected, and the weight of the last piece
in the usual time."""

_NEWEST = 0.25
"""The share of each window that a sample is drawn from: the newest rows tell most."""

_SEEDS = 4
"""Seeds for the samples after each batch."""

_LARGER = 8
"""How many times larger than usual a sample may be to find enough matches."""


# -- looking at the counters


def slow(took: float, usual: float) -> bool:
    """Whether a piece took far longer than usual; a `usual` of 0 means unknown.

    >>> slow(3.0, 1.0), slow(1.5, 1.0), slow(3.0, 0.0)
    (True, False, False)
    """
    return took > _SLOW * usual > 0


def usually(took: float, usual: float) -> float:
    """Update the average time of a piece by one more.

    >>> usually(2.0, 0.0), usually(2.0, 1.0)
    (2.0, 1.1)
    """
    return usual + (took - usual) * (_RECENT if usual else 1.0)


# -- comparing plans


def due(setting: Setting, loop: Loop) -> bool:
    """Whether plans should be compared now."""
    knowledge, pursuit, comparison = loop.knowledge, loop.pursuit, loop.comparison
    if not knowledge.heard or loop.course.batches < _LEAST_BATCHES:
        return False
    allowed = setting.policy.effort * loop.spent.joining + _ALLOWANCE
    if loop.spent.comparing > allowed and not _worth_it(setting, loop):
        return False
    if pursuit.confirmed:
        return pursuit.learned or not pursuit.learn
    memory = setting.budget.memory
    if memory is not None and knowledge.nbytes > memory and not comparison.short:
        return True
    if comparison.estimates is None or (not loop.price.measured and steady(setting, loop)):
        return True
    return _drifted(comparison.estimates, estimates(setting, loop), setting.policy.drift)


def steady(setting: Setting, loop: Loop) -> bool:
    """Whether the plan's time is that of a steady state.

    At first windows fill and code is loaded; after a jump windows hold rows from before it.
    """
    assert loop.course.began is not None, "the loop has observed rows"
    return loop.time - loop.course.began > 2 * setting.window and loop.knowledge.settled


def estimates(setting: Setting, loop: Loop) -> dict[str, float]:
    """The estimates that are certain enough, by name."""
    least, knowledge = setting.policy.confidence, loop.knowledge
    rates = {
        f"rate {i}": n / knowledge.span
        for i, n in enumerate(knowledge.rows)
        if 1 - 1 / math.sqrt(1 + n) >= least
    }
    joint = {f"joint {u}": j.value for u, j in knowledge.joint().items() if j.sure >= least}
    return rates | joint


def _drifted(before: Mapping[str, float], now: Mapping[str, float], drift: float) -> bool:
    """Whether an estimate is new or has moved.

    >>> _drifted({"a": 1.0, "b": 2.0}, {"a": 1.1}, 0.2), _drifted({"a": 1.0}, {"a": 1.3}, 0.2)
    (False, True)
    """
    limit = math.log1p(drift)
    for name, value in now.items():
        was = before.get(name)
        if was is None or (value > 0) != (was > 0):
            return True
        if value > 0 and abs(math.log(value / was)) > limit:
            return True
    return False


def _worth_it(setting: Setting, loop: Loop) -> bool:
    """Whether staying costs enough to spend part of it on confirming a better plan.

    Before a better plan is known, the time of joining beyond the usual counts as that cost.
    """
    share, pursuit = setting.policy.pursuit, loop.pursuit
    lost = max(pursuit.regret, pursuit.gain * setting.window)
    return pursuit.spent < share * lost or loop.spent.last < share * loop.comparison.excess


# -- drawing a sample


def wanted_sample(setting: Setting, loop: Loop) -> Draw | None:
    """Choose the sample to draw next, if one is needed and there is time for it."""
    order = _wanted(setting, loop) if _may_sample(setting, loop) else None
    if order is None:
        return None
    rows = _rows(setting, loop, order)
    seed = loop.course.batches * _SEEDS + loop.pursuit.tries
    # After a jump, prefer few rows to old ones.
    return Draw(order, rows, seed, _NEWEST, rows if loop.knowledge.settled else 0)


def _may_sample(setting: Setting, loop: Loop) -> bool:
    """Whether there is time for another sample."""
    share, spent, pursuit = setting.policy.sampling, loop.spent, loop.pursuit
    if not share or (pursuit.learn and pursuit.learned):
        return False
    if spent.sampling <= share * (spent.joining + _ALLOWANCE):
        return True
    return bool(pursuit.learn or loop.knowledge.doubtful()) and _worth_it(setting, loop)


def _wanted(setting: Setting, loop: Loop) -> tuple[int, ...] | None:
    """Choose the streams to join in the next sample, in order; None if none is needed."""
    graph, knowledge, pursuit = setting.query.graph, loop.knowledge, loop.pursuit
    if doubtful := knowledge.doubtful():
        left, right = doubtful[0]
        return sample_order(graph.neighbours, left | right)
    if pursuit.learn:
        ways = list(_ways(pursuit.learn))
        return sample_order(graph.neighbours, *ways[pursuit.tries % len(ways)])
    pairs = [
        (knowledge.confidence((1 << i, 1 << j)), i, j)
        for i in range(len(knowledge.rows))
        for j in graph.neighbours(i)
        if i < j
    ]
    sure, *pair = min(pairs)
    return tuple(pair) if sure < setting.policy.confidence else None


def _rows(setting: Setting, loop: Loop, order: Sequence[int]) -> int:
    """Choose how many rows to draw, to find enough matches if there are any."""
    usual = setting.policy.sample_rows
    left, right = sorted((1 << order[0], 1 << order[1]))
    known = loop.knowledge.agreements.get((left, right))
    if known is None:
        return usual
    return int(min(_LARGER * usual, max(usual, (_MATCHES / known.value) ** 0.5)))


def _ways(learn: Sequence[int]) -> Iterator[tuple[int, int]]:
    """List the largest of these sets, each with one of the pairs in it, if any, to begin with.

    >>> list(_ways((0b011, 0b110, 0b111)))
    [(7, 3), (7, 6)]
    """
    for streams in learn:
        if not any(streams != other and streams & other == streams for other in learn):
            pairs = [p for p in learn if p.bit_count() == 2 and p & streams == p]
            yield from ((streams, first) for first in pairs or [0])


def sample_order(
    neighbours: Callable[[int], frozenset[int]], streams: int, first: int = 0
) -> tuple[int, ...]:
    """Order the streams of a connected set, each after a neighbour; some of them first.

    >>> from plait.testing.examples import chain
    >>> sample_order(chain(4).graph.neighbours, 0b1111, first=0b0100)
    (2, 1, 0, 3)
    """
    left = sorted(bits(streams), key=lambda s: not first >> s & 1)
    order = [left.pop(0)]
    while left:
        near = next((s for s in left if any(s in neighbours(o) for o in order)), left[0])
        left.remove(near)
        order.append(near)
    return tuple(order)


# -- looking ahead


def expected_rates(
    setting: Setting, loop: Loop, rates: Sequence[float]
) -> tuple[float, ...] | None:
    """Choose the rates to look ahead for, if rows arrive at `rates`; None if nothing is new."""
    knowledge, comparison, memory = loop.knowledge, loop.comparison, setting.budget.memory
    usual = [n / knowledge.span for n in knowledge.rows]
    expected = comparison.foreseen or usual
    crowded = memory is not None and knowledge.nbytes > (1 - setting.policy.headroom) * memory
    if not crowded and all(r <= _FASTER * e for r, e in zip(rates, expected, strict=True)):
        return None
    if crowded and comparison.short:
        return None
    return tuple(max(pair) for pair in zip(rates, usual, strict=True))
