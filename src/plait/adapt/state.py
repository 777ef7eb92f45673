"""What the loop of one processor remembers: a value, and plain data between two batches.

`to_dict` writes what must outlive a process. What is only needed within a batch (`look`, `asked`)
is not written: between two batches there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from plait.adapt.guard import Bans, Trial
from plait.adapt.knowledge import Knowledge
from plait.adapt.pursuit import Pursuit
from plait.adapt.setting import Setting
from plait.adapt.told import ChangePlan
from plait.plan.jtree import Node

VERSION = 2


@dataclass(frozen=True, slots=True)
class Course:
    """How far the loop has come; times are seconds of event time."""

    batches: int = 0
    """How often it was told that rows were joined."""
    began: float | None = None
    migrated: float | None = None
    """When the plan last changed."""
    tracked: bool = False
    """Whether two plans ran when it was last told."""
    following: str = ""
    """The label of the new plan of a parallel track that is not known to have ended."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Where the time went, in seconds."""

    joining: float = 0.0
    comparing: float = 0.0
    sampling: float = 0.0
    last: float = 0.0
    """What the last comparison or sample took."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """How things were when plans were last compared."""

    batch: int = -1
    """The loop had been told of so many batches."""
    estimates: Mapping[str, float] | None = None
    """What was estimated; None asks for a comparison."""
    usual: float = 0.0
    """Seconds per second of event time that joining took then, or that were predicted when the
    plan changed; 0 if that is not known."""
    excess: float = 0.0
    """Seconds that it has taken beyond that since."""
    foreseen: tuple[float, ...] = ()
    """The rates for which it was looked ahead since."""
    short: str = ""
    """The resource that no plan has enough of, if it was found so."""


@dataclass(frozen=True, slots=True)
class Price:
    """How the machine differs from the cost model."""

    value: float = 1.0
    """What the plan takes for each second that the model foresees."""
    measured: bool = False
    overhead: float = 0.0
    """What the last migration took beside the states that had to be computed."""


@dataclass(frozen=True, slots=True)
class PieceLook:
    """Where the loop stands while it looks at one piece: it may ask for several samples."""

    plan: Node
    compared: bool = False
    """Whether plans were compared: what is drawn now is to learn what the decision hangs on."""
    drawn: int = 0
    """Samples so far, before or since the first comparison."""


@dataclass(frozen=True, slots=True)
class Loop:
    """All of it."""

    knowledge: Knowledge
    course: Course = Course()
    spent: Spent = Spent()
    comparison: Comparison = Comparison()
    pursuit: Pursuit = field(default_factory=Pursuit)
    price: Price = Price()
    bans: Bans = field(default_factory=Bans)
    trial: Trial | None = None
    """The last change of the plan, as long as it is not judged."""
    look: PieceLook | None = None
    asked: ChangePlan | None = None
    """What was asked for and is not done yet."""

    @classmethod
    def of(cls, setting: Setting) -> Loop:
        """One that knows nothing yet."""
        streams = len(setting.query.streams)
        return cls(Knowledge.of(streams, setting.half_life, setting.window))

    @property
    def time(self) -> float:
        """Event time in seconds."""
        return self.knowledge.time / 1e6

    @property
    def waiting(self) -> float:
        """How many seconds of event time the rows that wait are worth."""
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
        """The inverse of `to_dict`; also of what version 1 wrote, which was one flat mapping.

        What a later version wrote is not understood: the loop begins anew. It decides on plans
        only, and results do not depend on those.
        """
        version = given.get("version", 1)
        if version > VERSION:
            return cls.of(setting)
        parts = given if version > 1 else _from_version_1(given)
        trial = parts["trial"]
        return cls(
            Knowledge.from_dict({"window": setting.window} | parts["knowledge"]),
            trial=None if trial is None else Trial.from_dict(trial, setting.query),
            **{name: _made(kind, parts.get(name, {})) for name, kind in _PARTS.items()},
        )


_PARTS: dict[str, type[Any]] = {
    "course": Course,
    "spent": Spent,
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
"""What the fields of each part were called in version 1."""

T = TypeVar("T")


def _from_version_1(given: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a flat mapping; what an even older version did not write is missing."""
    parts = {
        part: {name: given[was] for name, was in names.items() if was in given}
        for part, names in _FLAT.items()
    }
    return {**parts, "knowledge": given["knowledge"], "trial": given["trial"]}


def _made(kind: type[T], given: Mapping[str, Any]) -> T:
    """A part from plain data, in which tuples are lists."""
    return kind(**{n: tuple(v) if isinstance(v, list) else v for n, v in given.items()})
