"""Child processes with a time limit: start one, listen to it, end it and all that it started."""

from __future__ import annotations

import os
import queue
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import psutil

from plait_lab.bench.spark.job import heard

_TICK = 0.5
_TAIL = 15
"""Lines of a log that an error shows."""

Listener = Callable[[dict[str, Any]], None]
Ticker = Callable[[int], None]


@dataclass(slots=True)
class Heard:
    """What a child said, and how it ended."""

    said: list[dict[str, Any]] = field(default_factory=list)
    over: bool = False
    """Whether it was ended because its time was over."""
    seconds: float = 0.0
    """From start to end of the process."""
    silent: float = 0.0
    """From the last thing it said to its end."""
    error: str = ""

    def of(self, kind: str) -> list[dict[str, Any]]:
        """Everything it said of one kind."""
        return [figures for figures in self.said if figures["kind"] == kind]


def listen(
    command: Sequence[str],
    log: Path,
    limit: float,
    on_word: Listener = lambda _: None,
    on_tick: Ticker = lambda _: None,
    environment: Mapping[str, str] | None = None,
) -> Heard:
    """Run a command until it ends or `limit` seconds have passed.

    Its standard error goes to `log`. `on_word` gets what it says, `on_tick` its process id about
    twice a second. `environment` is added to that of this process.
    """
    outcome = Heard()
    lines: queue.Queue[str | None] = queue.Queue()
    began = last = time.monotonic()
    with log.open("wb") as errors:
        child = subprocess.Popen(
            list(command),
            stdout=subprocess.PIPE,
            stderr=errors,
            stdin=subprocess.DEVNULL,
            text=True,
            env={**os.environ, **(environment or {}), "PYTHONUNBUFFERED": "1"},
        )
        assert child.stdout is not None
        threading.Thread(target=_read, args=(child.stdout, lines), daemon=True).start()
        try:
            while True:
                try:
                    line = lines.get(timeout=_TICK)
                except queue.Empty:
                    line = ""
                if line is None:
                    break
                if (word := heard(line)) is not None:
                    last = time.monotonic()
                    outcome.said.append(word)
                    on_word(word)
                on_tick(child.pid)
                if time.monotonic() - began > limit:
                    outcome.over = True
                    break
            if not outcome.over:
                _wait(child, 30.0)
        finally:
            _end(child)
    now = time.monotonic()
    outcome.seconds, outcome.silent = now - began, now - last
    if not outcome.over and not outcome.of("end"):
        outcome.error = _error(outcome, log, child.returncode)
    return outcome


def _read(stream: IO[str], lines: queue.Queue[str | None]) -> None:
    for line in stream:
        lines.put(line)
    lines.put(None)


def _wait(child: subprocess.Popen[str], seconds: float) -> None:
    """A child that has said all it has to say may take its time to clean up, but not for ever."""
    try:
        child.wait(seconds)
    except subprocess.TimeoutExpired:
        return


def _end(child: subprocess.Popen[str]) -> None:
    """End the child and everything it started, by process id."""
    try:
        family = psutil.Process(child.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        family = []
    if child.poll() is None:
        child.kill()
    for process in family:
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
    child.wait()


def _error(outcome: Heard, log: Path, code: int) -> str:
    if failed := outcome.of("failed"):
        return str(failed[0]["error"])
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return "\n".join([f"it ended with code {code}", *lines[-_TAIL:]])
