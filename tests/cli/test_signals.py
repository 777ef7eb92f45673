"""Signals: exceptions in the command, and an end in any case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from plait.cli.signals import SIGNALS, Stopped, stoppable

LOST = """
import os, signal, sys, time
from plait.cli.signals import stoppable

class Callback:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        for _ in range(100):
            pass

with stoppable(lambda: open(sys.argv[1], "a").write("clean\\n") or None, grace=0.1):
    Callback()  # what a destructor raises is lost
    time.sleep(60)
"""


@pytest.fixture
def heard() -> Iterator[None]:
    """Signals as in a terminal: whoever starts the tests with nohup has some ignored."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    for number in SIGNALS:
        usual = signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL
        signal.signal(number, usual)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_leaves_the_block_once_and_cleans_up(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    cleaned, left = [], []
    kind = KeyboardInterrupt if number == signal.SIGINT else Stopped
    with pytest.raises(kind) as caught, stoppable(lambda: cleaned.append(number)):
        try:
            os.kill(os.getpid(), number)
            signal.pause()
        finally:
            os.kill(os.getpid(), number)  # impatient: nothing is skipped
            left.append(number)
    assert left == cleaned == [number]
    assert signal.getsignal(number) == before
    if isinstance(caught.value, Stopped):
        assert caught.value.code == 128 + number
        assert str(caught.value) == number.name


def test_what_is_ignored_stays_so() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stoppable(lambda: None):
            os.kill(os.getpid(), signal.SIGHUP)
            assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


def test_in_another_thread_nothing_is_installed() -> None:
    seen: list[object] = []

    def work() -> None:
        with stoppable(lambda: seen.append("clean")):
            seen.append(signal.getsignal(signal.SIGTERM))

    before = signal.getsignal(signal.SIGTERM)
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before, "clean"]


def test_an_exception_that_gets_lost_does_not_keep_the_process(tmp_path: Path) -> None:
    log = tmp_path / "log"
    done = subprocess.run(
        [sys.executable, "-c", LOST, str(log)], capture_output=True, check=False, timeout=50
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert log.read_text() == "clean\n"
