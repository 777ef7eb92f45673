"""The events of the adaptive loop in files: one line of JSON each."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import IO

from plait.adapt.events import Event
from plait.errors import SourceError
from plait.machine.regular import append_below, open_below
from plait.query.reading import Reader

_READ = Reader(SourceError)
_REMEDY = "give a log as Plait writes it"


def write_events(
    events: Iterable[Event], path: Path, attempt: str = "", below: Path | None = None
) -> None:
    """Add lines to a log; `attempt` tells the tries of a batch apart that was repeated.

    No link is followed below the folder `below`, which is the log's own unless another is given.
    """
    if text := event_lines(events, attempt):
        root = below or path.parent
        append_below(root, str(path.relative_to(root)), text.encode())


def event_lines(events: Iterable[Event], attempt: str = "") -> str:
    """Events as lines of a log."""
    lines = (json.dumps(event.to_dict() | {"attempt": attempt}) for event in events)
    return "".join(f"{line}\n" for line in lines)


def read_events(
    path: Path,
    last: int | None = None,
    below: Path | None = None,
    skipped: list[str] | None = None,
) -> list[Event]:
    """The events of a log, or of all logs in a folder; of a repeated batch those of the last try.

    A line that was cut off at the end of a log, by a crash while it was written, is left out. With
    `last`, only the lines that lie wholly in the last so many bytes of a log are read. With
    `below`, the log must be a regular file that no link below that folder leads to; so must those
    of a folder. A line that is no event is a SourceError, or is told in `skipped`.
    """
    if below is None and path.is_dir():
        logs = sorted(path.glob("*.jsonl"))
        if not logs:
            raise SourceError(f"{path} has no event logs", remedy="give a folder with *.jsonl")
        return [event for log in logs for event in read_events(log, last, path, skipped)]
    try:
        text = _text(path, last, below, "strict" if skipped is None else "replace")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "no text in UTF-8"
        raise SourceError(
            f"{path} cannot be read: {reason}", remedy="give an event log or its folder"
        ) from None
    return parsed_events(text, str(path), skipped, numbered=last is None)


def parsed_events(
    text: str, place: str, skipped: list[str] | None = None, *, numbered: bool = False
) -> list[Event]:
    """The events in the text of a log; errors name its place, and the line if it is `numbered`.

    With `skipped`, lines that are no events are told there, and are no error.
    """
    lines = text.split("\n")
    tries: dict[tuple[int, int], tuple[str, list[Event]]] = {}
    for number, line in enumerate(lines, 1):
        # What follows the last line end is the line that a crash cut off, or nothing.
        whole = number < len(lines)
        if not whole and not _is_json(line):
            break
        try:
            attempt, event = _event(line, f"{place}:{number}" if numbered else place)
        except SourceError as error:
            if skipped is None:
                raise
            skipped.append(error.message)
            continue
        key = (event.processor, event.batch)
        if key not in tries or tries[key][0] != attempt:
            tries[key] = (attempt, [])
        tries[key][1].append(event)
    return [event for _, events in tries.values() for event in events]


def _text(path: Path, last: int | None, below: Path | None, errors: str) -> str:
    with _opened(path, below) as log:
        if last is None:
            return log.read().decode("utf-8", errors)
        begin = max(log.seek(0, os.SEEK_END) - last, 0)
        log.seek(max(begin - 1, 0))
        if begin:
            log.readline()  # the rest of the line before, or its end
        return log.read(last).decode("utf-8", errors)


def _opened(path: Path, below: Path | None) -> IO[bytes]:
    if below is None:  # somebody has named this file
        return path.open("rb")
    return open(open_below(below, str(path.relative_to(below))), "rb")


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _event(line: str, origin: str) -> tuple[str, Event]:
    """The try that a line belongs to, and the event."""
    try:
        given = _READ.mapping(json.loads(line), "$")
        for name in ("event", "batch", "time", "processor"):
            if name not in given:
                raise SourceError(f"$ lacks the field {name!r}")
        _READ.text(given["event"], "$.event", "a kind of event")
        for name in ("batch", "time", "processor"):
            _READ.whole64(given[name], f"$.{name}")
        attempt = _READ.text(given.get("attempt", ""), "$.attempt")
    except SourceError as error:
        raise SourceError(f"{origin} is no event: {error.message}", remedy=_REMEDY) from None
    except (ValueError, RecursionError):
        raise SourceError(f"{origin} is no event: it is no JSON", remedy=_REMEDY) from None
    plain = {name: value for name, value in given.items() if name != "attempt"}
    return attempt, replace(Event.from_dict(plain), origin=origin)
