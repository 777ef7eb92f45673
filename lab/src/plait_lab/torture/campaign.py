"""A campaign: rounds until the time is over; the first failure ends it, and is made small."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from plait.errors import PlaitError
from plait.kernels.warm import warm
from plait_lab.torture import local, simulated, small
from plait_lab.torture.cases import Case, drawn, smaller
from plait_lab.torture.tally import Tally

HOSTS: dict[str, Callable[[Case], Tally]] = {"local": local.play, "simulated": simulated.play}
KINDS = (*small.CHECKS,)
"""The campaigns that need no Spark; those of `HOSTS` have large cases, too."""
MOST_ROWS = 1_000_000
"""Rows of the largest case."""

_EVERY = 5.0
"""Seconds between two lines of progress."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong, as small as it got, and what repeats it."""

    case: str
    text: str


def campaign(
    kind: str,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    most_rows: int = MOST_ROWS,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Tally, Failure | None]:
    """Rounds of a kind for so many seconds; what they did, and the failure that ended them.

    A campaign that is interrupted says how far it came.
    """
    warm()  # what is compiled later would be written to disks that are full on purpose
    tally = Tally()
    try:
        return tally, _rounds(kind, seconds, seed, say, most_rows, clock, tally)
    except KeyboardInterrupt:
        say(f"stopped after {tally.text() or 'nothing'}")
        raise


def _rounds(
    kind: str,
    seconds: float,
    seed: int,
    say: Callable[[str], None],
    most_rows: int,
    clock: Callable[[], float],
    tally: Tally,
) -> Failure | None:
    """Add up rounds until the time is over; the failure that ended them earlier."""
    play, chance = HOSTS.get(kind), Random(seed)
    begin = spoken = clock()
    while clock() - begin < seconds:
        if play is None or chance.random() < 0.3:
            number = chance.randrange(2**32)
            try:
                tally.add(small.play(kind, number))
            except Exception as error:
                return Failure(f"small:{number}", _shown(error))
        else:
            case = drawn(chance, most_rows)
            try:
                tally.add(play(case))
            except Exception as error:
                say(f"case {case} failed; making it smaller")
                return shrunk(play, case, error)
        if clock() - spoken > _EVERY:
            spoken = clock()
            say(f"{spoken - begin:5.0f} s  {tally.text()}")
    return None


def repeat(kind: str, text: str) -> tuple[Tally, Failure | None]:
    """Run one case again, by the name that a campaign printed."""
    warm()
    try:
        if text.startswith("small:"):
            return small.play(kind, int(text.removeprefix("small:"))), None
        if kind not in HOSTS:
            raise PlaitError(f"{text!r} names no case of {kind}", remedy="give small:NUMBER")
        return HOSTS[kind](Case.parse(text)), None
    except PlaitError:
        raise
    except Exception as error:
        return Tally(), Failure(text, _shown(error))


def shrunk(play: Callable[[Case], Tally], case: Case, error: Exception, tries: int = 40) -> Failure:
    """The simplest case found in so many tries that fails too."""
    while tries > 0:
        for simpler in smaller(case):
            tries -= 1
            try:
                play(simpler)
            except Exception as again:
                case, error = simpler, again
                break
            if tries <= 0:
                break
        else:
            break
    return Failure(str(case), _shown(error))


def _shown(error: Exception) -> str:
    return "".join(traceback.format_exception(error)[-12:])
