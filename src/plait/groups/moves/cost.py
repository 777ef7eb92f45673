"""What it takes to move partition groups to another processor: PTLB and MSLB of the D-CAPE paper.

*MSLB* moves the rows and computes the combined states again at the receiver. Nothing of the groups
comes out meanwhile:

    pause = overhead + bytes / transfer + rows * store + (rows * recompute, if h > 1)

where h is the height of the receiver's plan: only with joins above joins are there combined states.

*PTLB* moves nothing: new rows go to both processors until the sender has dropped the last old one,

    T_PT = W for h = 1, else 2W        (h: the height of the sender's plan; W: the window)

A row of the groups is taken in twice for all that time. Let r be what the groups take per second
for their rows and m for their matches. The receiver starts empty: it finds the matches of new rows
with new rows, which are half of all in the first W. A sender with h = 1 finds the other half, so
no match is found twice. With h > 1 only the root holds new matches back; the joins below find all.
What both take, less what one would have taken, is

    r W  for h = 1,        2W r + 3/2 W m  for h > 1

That is the paper's argument for figures 9 to 13: PTLB costs rate times window, MSLB the size of the
state; PTLB wins where the state is large and the streams have become slow.

*Units.* Seconds of event time, seconds of work, bytes, rows.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace

from plait.errors import StatisticsError
from plait.optimize.costs import DEFAULT, Costs
from plait.optimize.migration_cost import t_parallel_track


@dataclass(frozen=True, slots=True)
class MoveCosts:
    """What moving takes on a machine.

    >>> MoveCosts(transfer=0.0)
    Traceback (most recent call last):
    plait.errors.StatisticsError: transfer=0.0 in the costs of a move; give a number above 0
    """

    transfer: float = 3.5e7
    """Bytes per second, from the sender's memory to the receiver's. The default is an Arrow stream
    written to a local disk with a checksum, and read again, on a small virtual server."""
    store: float = DEFAULT.arrive + DEFAULT.insert
    """Seconds to store a row that has arrived."""
    recompute: float = DEFAULT.probe + DEFAULT.match + DEFAULT.visit + DEFAULT.combine
    """Seconds per row to compute the combined states again; by default one match per row."""
    overhead: float = 0.0
    """Seconds that the steps of the protocol take, however little is moved."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = "above 0" if name == "transfer" else ">= 0"
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not math.isfinite(value) or value < 0 or (name, value) == (_RATE, 0):
                raise StatisticsError(
                    f"{name}={value!r} in the costs of a move", remedy=f"give a number {least}"
                )

    @classmethod
    def of(cls, costs: Costs, transfer: float | None = None) -> MoveCosts:
        """From what `plait env calibrate` measured, and the transfer rate if that is known.

        >>> MoveCosts.of(DEFAULT) == MoveCosts()
        True
        """
        recompute = costs.probe + costs.match + costs.visit + costs.combine
        given = {} if transfer is None else {_RATE: transfer}
        return cls(store=costs.arrive + costs.insert, recompute=recompute, **given)

    def learnt(
        self,
        *,
        nbytes: float = 0.0,
        transferred: float | None = None,
        rows: float = 0.0,
        recomputed: float | None = None,
        weight: float = 0.5,
    ) -> MoveCosts:
        """With what a move has taken: seconds for so many bytes, and for so many rows.

        What was not measured stays as it is.

        >>> MoveCosts(transfer=1e6).learnt(nbytes=3e6, transferred=1.0).transfer
        2000000.0
        """
        found = self
        if transferred and nbytes > 0:
            found = replace(found, transfer=_mean(found.transfer, nbytes / transferred, weight))
        if recomputed is not None and rows > 0:
            found = replace(found, recompute=_mean(found.recompute, recomputed / rows, weight))
        return found


_RATE = "transfer"


def _mean(old: float, new: float, weight: float) -> float:
    return (1 - weight) * old + weight * new


@dataclass(frozen=True, slots=True)
class Cargo:
    """What is to be moved; None is unknown."""

    nbytes: float | None
    rows: float | None
    """Stored rows."""
    rows_work: float | None
    """Seconds of work per second for rows that come."""
    match_work: float | None
    """Seconds of work per second for the matches they find."""


@dataclass(frozen=True, slots=True)
class MovePrediction:
    """What both protocols are predicted to take; None is unknown."""

    pause: float | None
    """Seconds in which MSLB lets nothing out; sender and receiver work as long."""
    duration: float
    """T_PT: seconds of event time until PTLB is done."""
    extra: float | None
    """Seconds of work that PTLB takes in all."""
    nbytes: float | None
    """What the receiver must have room for."""


def predict_move(
    cargo: Cargo,
    costs: MoveCosts,
    window: float,
    *,
    sender_height: int = 2,
    receiver_height: int = 2,
    purge: float | None = None,
) -> MovePrediction:
    """Both protocols for these groups.

    `purge` is how long old rows live, if that does not follow from the height: an engine that
    purges by watermarks drops a combination with its oldest row.

    >>> large = Cargo(nbytes=1e9, rows=1e7, rows_work=1e-4, match_work=1e-4)
    >>> found = predict_move(large, MoveCosts(), window=10.0)
    >>> found.pause > 25, found.duration, round(found.extra, 6)
    (True, 20.0, 0.0035)
    >>> predict_move(Cargo(None, 10.0, 0.5, None), MoveCosts(), 10.0).extra is None
    True
    """
    duration = t_parallel_track(sender_height, window) if purge is None else purge
    pause = extra = None
    if cargo.nbytes is not None and cargo.rows is not None:
        per_row = costs.store + (costs.recompute if receiver_height > 1 else 0.0)
        pause = costs.overhead + cargo.nbytes / costs.transfer + cargo.rows * per_row
    if cargo.rows_work is not None and sender_height <= 1:
        extra = cargo.rows_work * duration
    elif cargo.rows_work is not None and cargo.match_work is not None:
        found_twice = max(0.0, duration - window / 2)
        extra = cargo.rows_work * duration + cargo.match_work * found_twice
    return MovePrediction(pause, duration, extra, cargo.nbytes)
