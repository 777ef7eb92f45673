"""What somebody asks of a running query from outside of its driver, and what the driver answers.

Only the driver decides. Whoever else wants another plan writes down what is asked for, and the
driver adds an epoch (`plait.node.epochs`), or says why not.

    pin      run this plan until it is released
    migrate  go over to this plan, and choose freely again once every processor has
    release  choose freely again
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from plait.errors import SourceError
from plait.machine.sealed import sealed, unsealed
from plait.plan.migration import Strategy

Action = Literal["pin", "migrate", "release"]
_STRATEGIES = (*get_args(Strategy), "auto")


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """What is asked for."""

    action: Action
    plan: str = ""
    """The plan as text; none for a release."""
    strategy: Strategy | Literal["auto"] = "auto"
    at: float = 0.0
    """When it was asked, in seconds since 1970."""

    def to_json(self) -> str:
        """For a file.

        >>> PlanRequest.from_json(PlanRequest("pin", "((a b) c)").to_json()).plan
        '((a b) c)'
        """
        return sealed(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PlanRequest:
        """The inverse of `to_json`; anything else is a SourceError."""
        return cls.from_dict(unsealed(text))

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> PlanRequest:
        """From plain data; what is no request is a SourceError."""
        action: Any = given.get("action")
        plan = given.get("plan", "")
        strategy, at = given.get("strategy", "auto"), given.get("at", 0.0)
        if action not in get_args(Action):
            raise SourceError(f"{action!r} is nothing that can be asked for")
        if not isinstance(plan, str) or not isinstance(at, int | float):
            raise SourceError("it is no request")
        if bool(plan.strip()) == (action == "release"):
            raise SourceError(
                "no plan is given" if action != "release" else "a release has no plan",
                remedy="write a plan such as ((a b) c)" if action != "release" else "",
            )
        if strategy not in _STRATEGIES:
            raise SourceError(
                f"{strategy!r} is no strategy", remedy=f"known: {', '.join(_STRATEGIES)}"
            )
        return cls(action, plan, strategy, float(at))


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
        return sealed(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> PlanAnswer:
        """The inverse of `to_json`; anything else is a SourceError.

        >>> told = PlanAnswer(PlanRequest("release"), 3)
        >>> PlanAnswer.from_json(told.to_json()) == told
        True
        """
        found = unsealed(text)
        epoch, refused, at = found.get("epoch"), found.get("refused"), found.get("at")
        request = found.get("request")
        if not isinstance(request, dict) or type(epoch) is not int:
            raise SourceError("it is no answer")
        if not isinstance(refused, str) or not isinstance(at, int | float):
            raise SourceError("it is no answer")
        return cls(PlanRequest.from_dict(request), epoch, refused, float(at))
