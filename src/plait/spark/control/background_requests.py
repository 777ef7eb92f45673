"""Ask a remote store in a background thread, so that a slow store does not hold up a batch.

*Correct output.* Results never depend on an answer: requests carry reports and decisions about
plans.

*Invariants.* Requests are made in a thread of the Python worker, in order. The caller waits for
half a second, in which a healthy store has long answered, and then goes on without the answer.
While an earlier request is under way, nobody waits at all. So a store that is away costs that time
once, not in every batch. The queue is bounded; when it is full, new requests are refused.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from plait.machine.stores import problem

Answer = TypeVar("Answer")

PATIENCE = 0.5
"""Seconds that a batch waits for a store."""
_MOST_WAITING = 64
_PAUSES = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Seconds after which something that could not be written is tried again."""


class BackgroundRequests:
    """A queue of requests, and the thread that makes them in order."""

    def __init__(
        self,
        patience: float = PATIENCE,
        most: int = _MOST_WAITING,
        pauses: Sequence[float] = _PAUSES,
    ) -> None:
        self._patience = patience
        self._pauses = pauses
        self._last: Future[Any] | None = None
        self._posted: list[Future[None]] = []
        self._waiting: queue.Queue[tuple[Callable[[], Any], Future[Any]]] = queue.Queue(most)
        threading.Thread(target=self._run, name="plait-requests", daemon=True).start()

    def ask(self, request: Callable[[], Answer]) -> Future[Answer]:
        """Make a request and wait briefly; the answer may not be `done` then."""
        late = self._last is not None and not self._last.done()
        found: Future[Answer] = Future()
        try:
            self._waiting.put_nowait((request, found))
        except queue.Full:
            found.set_exception(OSError("the store has not answered for a long time"))
            return found
        self._last = found
        if not late:
            with suppress(NotYet):
                found.exception(self._patience)
        return found

    def leave(self, request: Callable[[], None]) -> None:
        """Make a request without waiting; its failure is ignored."""
        with suppress(queue.Full):
            self._waiting.put_nowait((request, Future()))

    def post(self, request: Callable[[], None]) -> None:
        """Repeat a request until it works; OSError if it, or an earlier one, was given up."""
        self._posted.append(self.ask(lambda: self._again(request)))
        failed = [f.exception() for f in self._posted if f.done() and f.exception() is not None]
        self._posted = [f for f in self._posted if not f.done()]
        for error in failed:
            assert error is not None, "those without one were left out"
            raise OSError(problem(error)) from error

    def _again(self, request: Callable[[], None]) -> None:
        for pause in self._pauses:
            try:
                return request()
            except OSError:
                time.sleep(pause)
        return request()

    def _run(self) -> None:
        while True:
            request, found = self._waiting.get()
            try:
                found.set_result(request())
            except BaseException as error:  # whoever asked is told
                found.set_exception(error)


@cache
def requests() -> BackgroundRequests:
    """The queue of this process."""
    return BackgroundRequests()
