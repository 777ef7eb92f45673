"""The clocks of this machine, for hosts that run in real time."""

from __future__ import annotations

import time

from plait.node.node import Clock

REAL = Clock(time.perf_counter, time.thread_time)


def micros_now() -> int:
    """The time in microseconds since 1970."""
    return time.time_ns() // 1_000
