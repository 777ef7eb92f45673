"""Requests and answers in the control directory: how other processes ask the driver for a plan.

    requests/ID.json    what somebody asks for; whoever asks writes it, the driver removes it
    answers/ID.json     what the driver says to it; the last ones are kept

Files appear whole and never change. The driver refuses a request that is older than two minutes, so
that a query that is started days later does not follow it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from plait.errors import PlaitError, StorageError
from plait.machine.stores import LocalStore, problem
from plait.node.reports.requests import PlanAnswer, PlanRequest

_NAME = re.compile(r"([0-9a-f]{32})\.json")
_REQUESTS, _ANSWERS = "requests", "answers"
_KEPT = 64
"""Answers that are kept."""


@dataclass(frozen=True, slots=True)
class PlanRequests:
    """The requests of one control directory, which need not exist."""

    control: Path

    def ask(self, request: PlanRequest) -> str:
        """Write a request; returns its name."""
        name = os.urandom(16).hex()
        self._write(f"{_REQUESTS}/{name}.json", request.to_json())
        return name

    def waiting(self) -> list[tuple[str, PlanRequest | None]]:
        """The requests without an answer, the oldest first; None is one that cannot be read."""
        found: list[tuple[float, str, PlanRequest | None]] = []
        for name, when in self._names(_REQUESTS).items():
            try:
                asked = self._store.read(f"{_REQUESTS}/{name}.json").decode("utf-8")
                found.append((when, name, PlanRequest.from_json(asked)))
            except FileNotFoundError:
                continue
            except (OSError, ValueError, PlaitError):
                found.append((when, name, None))
        return [(name, request) for _, name, request in sorted(found, key=lambda f: f[:2])]

    def answer(self, name: str, answer: PlanAnswer | None) -> None:
        """Answer a request, and remove it; None only removes it."""
        if answer is not None:
            self._write(f"{_ANSWERS}/{name}.json", answer.to_json())
        self._store.delete(f"{_REQUESTS}/{name}.json")
        for old, _ in self.answers()[_KEPT:]:
            self._store.delete(f"{_ANSWERS}/{old}.json")

    def answers(self) -> list[tuple[str, PlanAnswer]]:
        """What was answered, the newest first, as far as it can be read."""
        found = []
        for name in self._names(_ANSWERS):
            try:
                text = self._store.read(f"{_ANSWERS}/{name}.json").decode("utf-8")
                found.append((name, PlanAnswer.from_json(text)))
            except (OSError, ValueError, PlaitError):
                continue
        return sorted(found, key=lambda f: (-f[1].at, -f[1].epoch))

    @property
    def _store(self) -> LocalStore:
        return LocalStore(self.control)

    def _names(self, folder: str) -> dict[str, float]:
        """The files in a folder that have the name of a request, and when they were written."""
        try:
            found = self._store.names(folder)
        except OSError:
            return {}
        return {match[1]: when for name, when in found.items() if (match := _NAME.fullmatch(name))}

    def _write(self, path: str, text: str) -> None:
        try:
            self._store.write(path, text.encode(), durable=True)
        except OSError as error:
            raise StorageError(
                f"{self.control / path} could not be written: {problem(error)}",
                remedy="make room, or make the folder writable, and ask again",
            ) from error
