"""Requests and answers in the control directory: how other processes ask the driver for a plan.

    requests/ID.json    what somebody asks for; whoever asks writes it, the driver removes it
    answers/ID.json     what the driver says to it; the last ones are kept

Files appear whole and never change. A request that nobody has answered for a while is out of date:
the driver refuses it, so that a query that is started days later does not obey it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from plait.errors import PlaitError, StorageError
from plait.node.requests import PlanAnswer, PlanRequest

_NAME = re.compile(r"([0-9a-f]{32})\.json")
_KEPT = 64
"""Answers that are kept."""


@dataclass(frozen=True, slots=True)
class PlanRequests:
    """Those of one control directory, which need not be there."""

    control: Path

    def ask(self, request: PlanRequest) -> str:
        """Write a request down; its name."""
        name = os.urandom(16).hex()
        _write(self._requests / f"{name}.json", request.to_json())
        return name

    def waiting(self) -> list[tuple[str, PlanRequest | None]]:
        """The requests that have no answer yet, the oldest first; None is one without meaning."""
        found: list[tuple[float, str, PlanRequest | None]] = []
        for name in _names(self._requests):
            path = self._requests / f"{name}.json"
            try:
                asked, when = path.read_text(encoding="utf-8"), path.stat().st_mtime
            except FileNotFoundError:
                continue
            except (OSError, ValueError):
                asked, when = "", 0.0
            try:
                found.append((when, name, PlanRequest.from_json(asked)))
            except PlaitError:
                found.append((when, name, None))
        return [(name, request) for _, name, request in sorted(found, key=lambda f: f[:2])]

    def answer(self, name: str, answer: PlanAnswer | None) -> None:
        """Answer a request, and remove it; None only removes it."""
        if answer is not None:
            _write(self._answers / f"{name}.json", answer.to_json())
        (self._requests / f"{name}.json").unlink(missing_ok=True)
        for old, _ in self.answers()[_KEPT:]:
            (self._answers / f"{old}.json").unlink(missing_ok=True)

    def answers(self) -> list[tuple[str, PlanAnswer]]:
        """What was answered, the newest first, as far as it can be read."""
        found = []
        for name in _names(self._answers):
            try:
                text = (self._answers / f"{name}.json").read_text(encoding="utf-8")
                found.append((name, PlanAnswer.from_json(text)))
            except (OSError, ValueError, PlaitError):
                continue
        return sorted(found, key=lambda f: (-f[1].at, -f[1].epoch))

    @property
    def _requests(self) -> Path:
        return self.control / "requests"

    @property
    def _answers(self) -> Path:
        return self.control / "answers"


def _names(folder: Path) -> list[str]:
    try:
        found = [_NAME.fullmatch(name) for name in os.listdir(folder)]
    except OSError:
        return []
    return [match[1] for match in found if match]


def _write(path: Path, text: str) -> None:
    new = path.with_name(f"new-{os.getpid()}-{os.urandom(4).hex()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with new.open("x", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise StorageError(
            f"{path} could not be written: {error.strerror}",
            remedy="make room, or make the folder writable, and ask again",
        ) from error
