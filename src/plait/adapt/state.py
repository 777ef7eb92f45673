"""The memory of one processor's loop: a value, stored as plain data between two batches.

`to_dict` writes what must outlive a process. `look` and `asked` are only needed within a batch and
are not written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from plait.adapt.guard import Bans, Trial
from plait.adapt.knowledge import Knowledge
from plait.adapt.observations import ChangePlan
from plait.adapt.pursuit import Pursuit
from plait.adapt.setting import Setting
from plait.plan.jtree import Node

VERSION = 2


@dataclass(frozen=True, slots=True)
class LoopProgress:
    """How far the loop has come; times are seconds of event time."""

    batches: int = 0
    """Observations of joined rows so far."""
    began: float | None = None
    migrated: float | None = None
    """When the plan last changed."""
    tracked: bool = False
    """Whether two plans ran at the last observation."""
    following: str = ""
    """The label of the new plan of a parallel track that may still run."""


@dataclass(frozen=True, slots=True)
class TimeSpent:
    """Where the time went, in seconds."""

    joining: float = 0.0
    comparing: float = 0.0
    sampling: float = 0.0
    last: float = 0.0
    """Seconds of the last comparison or sample."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The last comparison of plans."""

    batch: int = -1
    """The number of observations before it."""
    estimates: Mapping[str, float] | None = None
    """The estimates then; None asks for a comparison."""
    usual: float = 0.0
    """CPU seconds per second of event time that joining took then, or the prediction when the plan
    changed; 0 if unknown."""
    excess: float = 0.0
    """CPU seconds beyond that since."""
    foreseen: tuple[float, ...] = ()
    """The arrival rates that plans were checked against since."""
    short: str = ""
    """The resource of which no plan has enough, if there is one."""


@dataclass(frozen=True, slots=True)
class Price:
    """How this machine differs from the cost model."""

    value: float = 1.0
    """Seconds that the plan takes for each one that the model predicts."""
    measured: bool = False
    overhead: float = 0.0
    """Seconds that the last migration took beyond computing states."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """The inspection of one piece of a batch, in which several samples may be drawn."""

    plan: Node
    compared: bool = False
    """Whether plans were compared: samples now serve to make the decision certain."""
    drawn: int = 0
    """Samples before, or since, the first comparison."""


@dataclass(frozen=True, slots=True)
class Loop:
    """Everything that the loop remembers."""

    knowledge: Knowledge
    course: LoopProgress = LoopProgress()
    spent: TimeSpent = TimeSpent()
    comparison: Comparison = Comparison()
    pursuit: Pursuit = field(default_factory=Pursuit)
    price: Price = Price()
    bans: Bans = field(default_factory=Bans)
    trial: Trial | None = None
    """The last change of the plan, until it is judged."""
    look: Inspection | None = None
    asked: ChangePlan | None = None
    """The change that was requested and not made yet."""

    @classmethod
    def of(cls, setting: Setting) -> Loop:
        """Begin without any knowledge."""
        streams = len(setting.query.streams)
        return cls(Knowledge.of(streams, setting.half_life, setting.window))

    @property
    def time(self) -> float:
        """Event time in seconds."""
        return self.knowledge.time / 1e6

    @property
    def waiting(self) -> float:
        """Seconds of event time that the waiting rows cover, at the average rate."""
        rows, span = sum(self.knowledge.rows), self.knowledge.span
        return self.knowledge.waiting * span / rows if rows else 0.0

    # -- as plain data

    def to_dict(self) -> dict[str, Any]:
        """Plain data, between two batches."""
        return {
            "version": VERSION,
            "knowledge": self.knowledge.to_dict(),
            "trial": None if self.trial is None else self.trial.to_dict(),
            **{name: asdict(getattr(self, name)) for name in _PARTS},
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any], setting: Setting) -> Loop:
        """Read what `to_dict` wrote, also in version 1, which was one flat mapping.

        A later version's data is not understood, and the loop begins anew. It only decides on
        plans, on which no result depends.
        """
        version = given.get("version", 1)
        if version > VERSION:
            return cls.of(setting)
        parts = given if version > 1 else _from_version_1(given)
        trial = parts["trial"]
        return cls(
            Knowledge.from_dict({"window": setting.window} | parts["knowledge"]),
            trial=None if trial is None else Trial.from_dict(trial, setting.query),
            **{name: _read_part(kind, parts.get(name, {})) for name, kind in _PARTS.items()},
        )


_PARTS: dict[str, type[Any]] = {
    "course": LoopProgress,
    "spent": TimeSpent,
    "comparison": Comparison,
    "pursuit": Pursuit,
    "price": Price,
    "bans": Bans,
}
_FLAT = {
    "course": {n: n for n in ("batches", "began", "migrated", "tracked", "following")},
    "spent": {
        "joining": "joining",
        "comparing": "comparing",
        "sampling": "sampling",
        "last": "step",
    },
    "comparison": {
        "batch": "compared",
        "estimates": "reference",
        **{n: n for n in ("usual", "excess", "foreseen", "short")},
    },
    "pursuit": {
        "spent": "pursued",
        **{n: n for n in ("confirmed", "gain", "regret", "learn", "tries", "learned")},
    },
    "price": {"value": "price", "measured": "priced", "overhead": "overhead"},
    "bans": {"until": "banned", "failures": "failures"},
}
"""The names of the fields of each part in version 1."""

T = TypeVar("T")


def _from_version_1(given: Mapping[str, Any]) -> dict[str, Any]:
    """Split a flat mapping; fields that an even older version did not write are missing."""
    parts = {
        part: {name: given[was] for name, was in names.items() if was in given}
        for part, names in _FLAT.items()
    }
    return {**parts, "knowledge": given["knowledge"], "trial": given["trial"]}


def _read_part(kind: type[T], given: Mapping[str, Any]) -> T:
    """Read a part from plain data, in which tuples are lists."""
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in given.items()})
