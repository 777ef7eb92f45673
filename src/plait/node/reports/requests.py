"""What somebody asks of a running query from outside of its driver, and what the driver answers.

Only the driver decides. Whoever else wants another plan writes down what is asked for, and the
driver adds an epoch (`plait.node.epochs`), or says why not.

    pin      run this plan until it is released
    migrate  go over to this plan, and choose freely again once every processor has
    release  choose freely again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from plait.codec import from_plain, to_plain
from plait.errors import SourceError
from plait.machine.sealed import sealed, unsealed
from plait.plan.migration import Strategy

Action = Literal["pin", "migrate", "release"]


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked for."""

    action: Action
    plan: str = ""
    """The plan as text; none for a release."""
    strategy: Strategy | Literal["auto"] = "auto"
    at: float = 0.0
    """When it was asked, in seconds since 1970."""

    def __post_init__(self) -> None:
        if bool(self.plan.strip()) == (self.action == "release"):
            raise SourceError(
                "no plan is given" if self.action != "release" else "a release has no plan",
                remedy="write a plan such as ((a b) c)" if self.action != "release" else "",
            )

    def to_json(self) -> str:
        """For a file.

        >>> PlanRequest.from_json(PlanRequest("pin", "((a b) c)").to_json()).plan
        '((a b) c)'
        """
        return sealed(to_plain(self))

    @classmethod
    def from_json(cls, text: str) -> PlanRequest:
        """Decode what `to_json` returned; anything else is a SourceError."""
        return cls.from_dict(unsealed(text))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PlanRequest:
        """Read plain data; what is no request is a SourceError."""
        return from_plain(cls, given, any_version=True)


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """What became of a request."""

    request: PlanRequest
    epoch: int = 0
    """The number of the epoch that was added; 0 if none was."""
    refused: str = ""
    """Why none was."""
    at: float = 0.0
    """When it was answered, in seconds since 1970."""

    def to_json(self) -> str:
        """For a file."""
        return sealed(to_plain(self))

    @classmethod
    def from_json(cls, text: str) -> PlanAnswer:
        """Decode what `to_json` returned; anything else is a SourceError.

        >>> answer = PlanAnswer(PlanRequest("release"), 3)
        >>> PlanAnswer.from_json(answer.to_json()) == answer
        True
        """
        return from_plain(cls, unsealed(text), any_version=True)
