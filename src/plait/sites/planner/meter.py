"""What a site measures of a stream that arrives there: rate, size of tuples, and how keys repeat.

*Rate.* Rows per second of event time, over an interval. It depends on the rows alone, so it is the
same after a crash, and whatever the speed of the host.

*Selectivity factor.* The share of a stream's tuples that have the same key (the paper's f) is the
chance that two of its tuples agree. New rows are compared with a small sample of earlier ones; what
was found fades by half in each interval. A stream without keys keeps the factor it was given. The
sample follows from the rows and not from their order, which may differ when a step is repeated.

*Chance.* Counts scatter. A rate or factor that differs from the one in effect by less than some
standard errors is taken to be unchanged; without this a steady stream would ask for a new plan all
the time. The standard error is that of independent arrivals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from plait.sites.planner.cost import StreamStatistics
from plait.sites.planner.policy import PlacementPolicy

_MICROS = 1e6
_FADES = 0.5


@dataclass(frozen=True, slots=True)
class StreamMeter:
    """What was counted of a stream in the interval that goes on."""

    begin: int | None = None
    """The newest event time when the interval began; None before the first row."""
    newest: int = 0
    rows: int = 0
    nbytes: int = 0
    samples: tuple[tuple[int, ...], ...] = ()
    """For each key of the stream, hashes of those of some earlier rows."""
    same: float = 0.0
    """Pairs of rows that agreed in a key, fading."""
    pairs: float = 0.0
    """Pairs of rows that were compared, fading."""


def counted(
    meter: StreamMeter,
    policy: PlacementPolicy,
    newest: int,
    rows: int,
    nbytes: int,
    keys: Sequence[NDArray[np.uint64]] = (),
) -> StreamMeter:
    """After some more rows. The first ones begin an interval and are not counted in it.

    >>> meter = counted(StreamMeter(), PlacementPolicy(), 0, 1, 150)
    >>> counted(meter, PlacementPolicy(), 500_000, 50, 7_500).rows
    50
    """
    samples = meter.samples or tuple(() for _ in keys)
    same, pairs, kept = meter.same, meter.pairs, []
    for old, new in zip(samples, keys, strict=True):
        fresh = _drawn(new, policy.sample, newest)
        same += int((fresh[:, None] == np.array(old, np.uint64)[None, :]).sum())
        pairs += len(fresh) * len(old)
        kept.append(tuple([*old, *fresh.tolist()][-policy.sample :]))
    meter = replace(meter, samples=tuple(kept), same=same, pairs=pairs)
    if meter.begin is None:
        return replace(meter, begin=newest, newest=newest)
    return replace(
        meter,
        newest=max(meter.newest, newest),
        rows=meter.rows + rows,
        nbytes=meter.nbytes + nbytes,
    )


def _drawn(keys: NDArray[np.uint64], most: int, newest: int) -> NDArray[np.uint64]:
    """Some of the keys at random, the same ones in whatever order they come."""
    seed = [int(keys.sum(dtype=np.uint64)), newest % 2**64]
    return np.random.default_rng(seed).choice(np.sort(keys), min(most, len(keys)), replace=False)


def measured(
    meter: StreamMeter, policy: PlacementPolicy, adopted: StreamStatistics
) -> tuple[StreamMeter, StreamStatistics | None]:
    """If the interval is over: the next one, and what was measured in this one.

    >>> old = StreamStatistics(rate=50, factor=0.01, tuple_bytes=150, window=0.5)
    >>> fast = StreamMeter(begin=0, newest=1_000_000, rows=200, nbytes=30_000)
    >>> measured(fast, PlacementPolicy(), old)[1].rate
    200.0
    >>> chance = StreamMeter(begin=0, newest=1_000_000, rows=60, nbytes=9_000)
    >>> measured(chance, PlacementPolicy(), old)[1] == old
    True
    """
    if meter.begin is None or meter.newest - meter.begin < policy.interval:
        return meter, None
    seconds = (meter.newest - meter.begin) / _MICROS
    after = replace(
        meter,
        begin=meter.newest,
        rows=0,
        nbytes=0,
        same=meter.same * _FADES,
        pairs=meter.pairs * _FADES,
    )
    rate = _believed(adopted.rate, meter.rows, seconds, policy)
    factor = min(_believed(adopted.factor, meter.same, meter.pairs, policy), 1.0)
    size = meter.nbytes / meter.rows if meter.rows else adopted.tuple_bytes
    return after, replace(adopted, rate=rate, factor=factor, tuple_bytes=size)


def _believed(adopted: float, count: float, trials: float, policy: PlacementPolicy) -> float:
    """The frequency that was counted, or the one in effect if chance explains the difference."""
    if not trials:
        return adopted
    expected = adopted * trials
    if abs(count - expected) <= policy.sigmas * math.sqrt(max(expected, 1.0)):
        return adopted
    return count / trials
