"""Clocks: those of this machine, for hosts that run in real time, or others that a host has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """A host's clocks. They measure how long things take, and nothing else."""

    wall: Callable[[], float]
    """Seconds."""
    cpu: Callable[[], float]
    """Seconds of work of this thread."""


REAL = Clock(time.perf_counter, time.thread_time)


def micros_now() -> int:
    """The time in microseconds since 1970."""
    return time.time_ns() // 1_000
