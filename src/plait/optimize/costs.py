"""What one operation costs on a machine, in seconds: the constants of the cost model.

The papers know three: C_i to insert a tuple into a state, C_d to delete it, C_j to join a pair.
The hash engine spends its time on a few more: a lookup costs even if it finds nothing (`probe`),
every row in a bucket is looked at (`visit`), a joined tuple of n streams has n positions to be
copied (`carry`), results are gathered into columns (`result`), rows are parsed and sorted as they
arrive (`arrive`). A combination is dearer to keep than a tuple of a stream (`combine`). And much
has a price of its own in each batch, however little there is to do: the rows of a stream
(`intake`), a step (`call`), a state of combinations (`upkeep`), a column of results (`output`). In
small batches that is most of the time.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from plait.errors import StatisticsError, did_you_mean


@dataclass(frozen=True, slots=True)
class Costs:
    """Seconds per operation.

    >>> Costs(insert=2e-7, delete=2e-7, match=2.2e-6) == PAPER
    True
    """

    insert: float = 0.0
    """Keeping a tuple: C_i."""
    delete: float = 0.0
    """Dropping it again: C_d."""
    match: float = 0.0
    """A joined pair: C_j."""
    probe: float = 0.0
    """A lookup, whether or not it finds something."""
    visit: float = 0.0
    """A row looked at by a lookup."""
    carry: float = 0.0
    """A position copied: one per stream of a joined, probing or stored combination."""
    result: float = 0.0
    """A value of a result: one per row and column."""
    arrive: float = 0.0
    """A row taken in."""
    call: float = 0.0
    """A step of a batch, however many tuples it is for."""
    combine: float = 0.0
    """A combination kept and dropped, beyond what a tuple costs."""
    upkeep: float = 0.0
    """A state of combinations looked through for what has expired, once a batch."""
    intake: float = 0.0
    """A stream's rows of a batch, however many: checked, sorted, appended."""
    output: float = 0.0
    """A column of results gathered, however many rows at a time."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not math.isfinite(value) or value < 0:
                raise StatisticsError(
                    f"the cost of {name!r} is {value}", remedy="give seconds per operation, >= 0"
                )


PAPER = Costs(insert=2.0e-7, delete=2.0e-7, match=2.2e-6)
"""Table 3 of the paper: C_i, C_d and C_j of its engine."""

DEFAULT = Costs(
    insert=3.0e-8,
    delete=2.0e-8,
    match=1.7e-9,
    probe=8.5e-9,
    visit=1.0e-9,
    carry=3.0e-9,
    result=9.5e-10,
    arrive=1.5e-8,
    call=1.5e-5,
    combine=1.8e-7,
    upkeep=8.8e-5,
    intake=2.9e-4,
    output=1.7e-5,
)
"""Measured once on a small virtual server; `plait env calibrate` measures yours."""


def costs_path() -> Path:
    """Where calibrated costs are kept: `PLAIT_COSTS`, or a file in the user's cache."""
    given = os.environ.get("PLAIT_COSTS")
    if given:
        return Path(given)
    return user_cache() / "costs.json"


def user_cache() -> Path:
    """The folder for what Plait keeps for a user and can make again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "plait"


def save(costs: Costs, path: Path) -> None:
    """Keep calibrated costs."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(costs), indent=2) + "\n", encoding="utf-8")


def load(path: Path | None = None) -> Costs:
    """The costs kept at `path` (or at the usual place), or the default if there are none."""
    where = path or costs_path()
    try:
        text = where.read_text(encoding="utf-8")
    except OSError:
        return DEFAULT
    try:
        given = json.loads(text)
    except ValueError as error:
        raise StatisticsError(
            f"{where} is no JSON: {error}",
            remedy="run `plait env calibrate` again, or remove the file",
        ) from None
    return from_mapping(given, str(where))


def from_mapping(given: object, where: str = "costs") -> Costs:
    """Costs from plain data.

    >>> from_mapping({"match": 1e-6}).match
    1e-06
    """
    if not isinstance(given, Mapping):
        raise StatisticsError(f"{where} is no object of costs", remedy='write {"insert": 1e-7}')
    known = [f.name for f in fields(Costs)]
    for name, value in given.items():
        if name not in known:
            raise StatisticsError(
                f"{where}: there is no cost {name!r}", remedy=did_you_mean(str(name), known)
            )
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise StatisticsError(f"{where}: the cost of {name!r} is {value!r}, not a number")
    return Costs(**{str(k): float(v) for k, v in given.items()})
