"""Epochs: what the driver has decided for all processors, numbered from 1 on.

An epoch says which plan to run from some batch on, or that processors may choose for themselves.
It need not be the same batch on every processor, nor again when a batch is repeated: results do not
depend on plans. So a processor takes the newest epoch it sees at the beginning of a batch, and its
header remembers which one that was.

*Which epoch is new.* Numbers order the epochs of one control directory. They say nothing across
directories: a query that is restarted may get a new, empty one, or one that it had before. So an
epoch carries the `origin` of its directory, a random name, and the header remembers the number that
was followed last for each origin. The first epoch of a new directory is new whatever its number is,
and the last one of an old directory is not obeyed a second time when the query returns to it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from plait.errors import SourceError
from plait.machine.sealed import sealed, unsealed
from plait.plan.jtree import Node
from plait.plan.migration import Strategy
from plait.plan.serde import from_dict, to_dict
from plait.query.query import Query

_STRATEGIES = (*get_args(Strategy), "auto")
_NEEDED = frozenset({"number", "strategy", "plan"})
REMEMBERED = 64
"""Directories whose epochs a header remembers: those that it followed an epoch of last."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """A plan for all processors, and how they come to it."""

    number: int
    plan: Node | None
    """None lets every processor choose for itself."""
    strategy: Strategy | Literal["auto"] = "moving-state"
    origin: str = ""
    """The name of the directory that the number belongs to; before there were names, none."""

    def to_json(self) -> str:
        """For a file.

        >>> from plait.testing.examples import clique
        >>> from plait.plan.jtree import mjoin
        >>> epoch = Epoch(1, mjoin(clique(3)), origin="a1")
        >>> Epoch.from_json(epoch.to_json(), clique(3)) == epoch
        True
        """
        plan = None if self.plan is None else to_dict(self.plan)
        fields = {"number": self.number, "strategy": self.strategy, "plan": plan}
        return sealed({**fields, "origin": self.origin})

    @classmethod
    def from_json(cls, text: str, query: Query) -> Epoch:
        """The inverse of `to_json`; the plan is checked against the query.

        What is no epoch, or one that this version does not understand, is a SourceError; a plan of
        another query is a PlanError.
        """
        found = unsealed(text)
        if missing := sorted(_NEEDED - found.keys()):
            raise SourceError(f"it lacks the field {missing[0]!r}")
        if unknown := sorted(found.keys() - _NEEDED - {"origin"}):
            raise SourceError(f"it has a field {unknown[0]!r}, which this version does not know")
        number, strategy, origin = found["number"], found["strategy"], found.get("origin", "")
        if type(number) is not int or number < 1 or not isinstance(origin, str):
            raise SourceError(f"{number!r} of {origin!r} is no number of an epoch")
        if strategy not in _STRATEGIES:
            raise SourceError(f"{strategy!r} is no strategy that this version knows")
        plan = None if found["plan"] is None else from_dict(found["plan"], query)
        return cls(number, plan, strategy, origin)


@dataclass(frozen=True, slots=True)
class Followed:
    """What a processor has followed so far; part of its header.

    >>> before = Followed().after(Epoch(5, None, origin="old"))
    >>> before.is_new(Epoch(1, None, origin="new")), before.is_new(Epoch(5, None, origin="old"))
    (True, False)
    """

    numbers: Mapping[str, int] = field(default_factory=dict)
    """The number of the last epoch of each origin, the origin of the newest last."""
    held: bool | None = False
    """Whether the driver says which plan to run; None if an earlier version did not write it."""

    @classmethod
    def of(cls, header: Mapping[str, Any]) -> Followed:
        """What a header says; one of an earlier version knows a number without an origin."""
        number = header.get("epoch", 0)
        earlier = {"": number} if number else {}
        return cls(header.get("followed", earlier), header.get("held", None if number else False))

    @property
    def last(self) -> int:
        """The number of the last one, 0 before the first."""
        return [0, *self.numbers.values()][-1]

    def is_new(self, epoch: Epoch | None) -> bool:
        """Whether an epoch is still to be followed."""
        return epoch is not None and epoch.number > self.numbers.get(epoch.origin, 0)

    def after(self, epoch: Epoch, *, obeyed: bool = True, remembered: int = REMEMBERED) -> Followed:
        """With one more; a request that had to be refused changes nothing but the number."""
        others = {o: n for o, n in self.numbers.items() if o != epoch.origin}
        kept = list(others.items())[max(0, len(others) + 1 - remembered) :]
        held = (epoch.plan is not None) if obeyed else self.held
        return Followed({**dict(kept), epoch.origin: epoch.number}, held)

    def holds(self, epoch: Epoch | None) -> bool:
        """Whether the driver says the plan: by what was followed, or by an epoch that waits."""
        if epoch is not None and (self.held is None or self.is_new(epoch)):
            return epoch.plan is not None
        return bool(self.held)

    def to_dict(self) -> dict[str, Any]:
        """For the header. Earlier versions read the number."""
        return {"epoch": self.last, "followed": dict(self.numbers), "held": self.held}
