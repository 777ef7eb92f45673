"""Options of a benchmark: a dataclass of numbers and texts, overridden from the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

from plait.errors import PlaitError, did_you_mean

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)


def parse_options(name: str, cls: type[T], given: Mapping[str, str]) -> T:
    """An instance of the dataclass `cls` with the given fields replaced."""
    defaults: dict[str, Any] = {f.name: f.default for f in fields(cls)}
    values: dict[str, Any] = {}
    for key, text in given.items():
        if key not in defaults:
            raise PlaitError(f"{name} has no option {key!r}", remedy=did_you_mean(key, defaults))
        kind: type[Any] = type(defaults[key])
        try:
            values[key] = kind(text)
        except ValueError:
            raise PlaitError(
                f"the option {key} of {name} is {text!r}, not a {kind.__name__}",
                remedy=f"its default is {defaults[key]}",
            ) from None
        if kind is not str and not 0 < values[key] < float("inf"):
            raise PlaitError(f"the option {key} of {name} must be positive, not {text}")
    return cls(**values)
