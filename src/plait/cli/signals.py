"""Signals that end a command: it cleans up, and ends with 128 plus their number.

A signal becomes an exception, so that every `with` block on the way is left properly. Python
notices it between two of its own steps only. In case it is busy elsewhere for too long, or the
exception gets lost in a callback, a thread that the system tells about the signal removes the files
in the making and ends the process.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
GRACE = 10.0
"""Seconds from a signal to the end of the process, whatever it is doing."""


class Stopped(BaseException):
    """A signal other than Ctrl-C says that the command is to end."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
        self.code = 128 + number


@contextmanager
def stoppable(cleanup: Callable[[], None], grace: float = GRACE) -> Iterator[None]:
    """Signals end the block with an exception; `cleanup` runs in the end, whatever happens.

    Signals that are ignored stay so (nohup), and those that somebody else handles.
    """
    if threading.current_thread() is not threading.main_thread():
        try:
            yield
        finally:
            cleanup()
        return
    default = (signal.SIG_DFL, signal.default_int_handler)
    ours = [number for number in SIGNALS if signal.getsignal(number) in default]

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        for other in ours:  # nothing disturbs the cleaning up
            signal.signal(other, signal.SIG_IGN)
        raise KeyboardInterrupt if number == signal.SIGINT else Stopped(number)

    reader, writer = socket.socketpair()
    writer.setblocking(False)
    watchman = threading.Thread(target=_watch, args=(reader, ours, cleanup, grace), daemon=True)
    watchman.start()
    before = {number: signal.getsignal(number) for number in ours}
    told = signal.set_wakeup_fd(writer.fileno(), warn_on_full_buffer=False)
    try:
        for number in ours:
            signal.signal(number, stop)
        yield
    finally:
        cleanup()
        signal.set_wakeup_fd(told)
        writer.close()
        watchman.join()
        reader.close()
        for number, handler in before.items():
            signal.signal(number, handler)


def _watch(
    reader: socket.socket, ours: list[signal.Signals], cleanup: Callable[[], None], grace: float
) -> None:
    """Wait for a signal, then for the process to be done in time."""
    stopped: int | None = None
    while True:
        try:
            numbers = reader.recv(64)
        except TimeoutError:
            cleanup()
            os._exit(128 + (stopped or 0))
        if not numbers:
            return  # done
        if stopped is None and (found := [n for n in numbers if n in ours]):
            stopped = found[0]
            reader.settimeout(grace)
