"""Requests to a store that is slow, away, or back again: nobody waits for long, nothing is lost."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from plait.spark.control.background_requests import BackgroundRequests


def test_a_healthy_store_answers_at_once() -> None:
    here, written = BackgroundRequests(60.0), list[int]()
    assert here.ask(lambda: 7).result(0) == 7
    here.post(lambda: written.append(1))
    assert written == [1]
    here.leave(lambda: written.append(2))
    here.ask(lambda: None).result(10)
    assert written == [1, 2]


def test_nobody_waits_while_an_earlier_request_is_under_way() -> None:
    here, gate, done = BackgroundRequests(0.01), threading.Event(), list[int]()
    first = here.ask(gate.wait)
    assert not first.done()
    patient = here._patience
    here._patience = 60.0  # whoever waits now would wait for ever
    later = [here.ask(lambda n=n: done.append(n)) for n in range(5)]  # type: ignore[misc]
    here.post(lambda: done.append(5))
    assert not any(f.done() for f in later)
    gate.set()
    here._patience = patient
    for f in later:
        f.result(10)
    here.ask(lambda: None).result(10)
    assert done == list(range(6)), "in order"


def failing(times: int, then: Callable[[], None]) -> Callable[[], None]:
    left = [times]

    def request() -> None:
        if left[0]:
            left[0] -= 1
            raise OSError("503: slow down")
        then()

    return request


def test_what_cannot_be_written_is_tried_again() -> None:
    here, written = BackgroundRequests(60.0, pauses=[0.0] * 3), list[int]()
    here.post(failing(3, lambda: written.append(1)))
    assert written == [1]


def test_what_is_given_up_is_told_even_if_later() -> None:
    here = BackgroundRequests(60.0, pauses=[0.0])
    with pytest.raises(OSError, match="503: slow down"):
        here.post(failing(2, lambda: None))
    gate = threading.Event()

    def late() -> None:
        gate.wait()
        raise ValueError("gone")

    here._patience = 0.01
    here.post(late)  # not yet known
    gate.set()
    here.ask(lambda: None).result(10)
    with pytest.raises(OSError, match="gone"):
        here.post(lambda: None)


def test_only_so_many_wait() -> None:
    here, gate = BackgroundRequests(0.01, most=2), threading.Event()
    here.ask(gate.wait)
    found = [here.ask(lambda: 1) for _ in range(4)]
    refused = [f for f in found if f.done()]
    assert refused and all(isinstance(f.exception(), OSError) for f in refused)
    gate.set()
    assert [f.result(10) for f in found if f not in refused] == [1] * (4 - len(refused))
