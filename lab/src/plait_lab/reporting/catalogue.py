"""Measurements by name: found lazily, with options given as text."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any, get_type_hints

from plait.errors import PlaitError, did_you_mean
from plait_lab.reporting.options import parse_options
from plait_lab.reporting.report import Note, Report


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Functions `(options, note) -> Report` by name, each given as `module:function`."""

    kind: str
    functions: Mapping[str, str]

    def names(self) -> list[str]:
        """All names, in alphabetical order."""
        return sorted(self.functions)

    def describe(self, name: str) -> str:
        """What is measured, in one line."""
        return (self._function(name).__doc__ or "").strip().splitlines()[0]

    def run(
        self, name: str, options: Mapping[str, str] | None = None, note: Note = lambda _: None
    ) -> Report:
        """Measure; `options` override the fields of the function's options, as text."""
        function = self._function(name)
        kind = get_type_hints(function)["options"]
        return function(parse_options(name, kind, options or {}), note)

    def _function(self, name: str) -> Callable[[Any, Note], Report]:
        if name not in self.functions:
            raise PlaitError(
                f"there is no {self.kind} {name!r}", remedy=did_you_mean(name, self.names())
            )
        module, function = self.functions[name].split(":")
        found: Callable[[Any, Note], Report] = getattr(import_module(module), function)
        return found
