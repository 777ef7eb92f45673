"""How long the console takes to open a query that has run for long, and to show what is new.

The checkpoint is made by a generator. The console runs as users start it, in a process of its own;
its pages are fetched as a browser does.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from http.cookiejar import CookieJar
from pathlib import Path

from plait.errors import PlaitError
from plait_lab.reporting.report import Note, Report, at_most
from plait_lab.workloads.checkpoints import ID, LongRun

_PAGES = ("/", "/?span=all", "/decisions", "/processors", "/metrics")
_LONGEST = 30.0


@dataclass(frozen=True, slots=True)
class ConsoleOptions:
    """A query that has run for some hours."""

    batches: int = 10_000
    processors: int = 64
    repeats: int = 5
    seed: int = 1


def console_open(options: ConsoleOptions, note: Note) -> Report:
    """How fast the console opens a long query, shows its pages, and notices a batch."""
    report = Report("console-open", asdict(options))
    run = LongRun(options.batches, options.processors, seed=options.seed)
    with tempfile.TemporaryDirectory(prefix="plait-console-") as scratch:
        checkpoint = Path(scratch) / "checkpoint"
        note(f"writing a checkpoint of {options.batches:,} batches")
        run.write(checkpoint)
        opened, worked = [], []
        for number in range(options.repeats):
            note(f"opening it, {number + 1} of {options.repeats}")
            began, before = time.perf_counter(), _cpu_of_children()
            with _console(checkpoint) as fetch:
                fetch("/")
                opened.append(time.perf_counter() - began)
            worked.append(_cpu_of_children() - before)
        with _console(checkpoint) as fetch:
            pages = {page: _timed(fetch, page, options.repeats) for page in _PAGES}
            noticed = _noticed(run, checkpoint, fetch)
    seconds = statistics.median(opened)
    report.systems["plait"] = {
        "seconds": seconds,
        "CPU of it, seconds": statistics.median(worked),
        "a new batch is on the page after, seconds": noticed,
        **{f"page {page}, seconds": taken for page, taken in pages.items()},
    }
    report.claims += [
        at_most("open", "from the command to the first page", seconds, 2.0, "s"),
        at_most("pages", "the slowest page", max(pages.values()), 0.5, "s"),
        at_most("news", "from the end of a batch to its number on the page", noticed, 2.0, "s"),
    ]
    return report


@contextmanager
def _console(checkpoint: Path) -> Iterator[Callable[[str], str]]:
    """A console that runs, and what fetches a page of it."""
    command = [sys.executable, "-m", "plait", "query", "console", str(checkpoint)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            url = process.stdout.readline().strip()
            opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
            with opener.open(url, timeout=_LONGEST) as home:  # the address leads there
                base = home.url.rstrip("/")
            yield lambda path: opener.open(base + path, timeout=_LONGEST).read().decode()
        finally:
            process.terminate()


def _cpu_of_children() -> float:
    """CPU seconds of processes that were started here and have ended; others do not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _timed(fetch: Callable[[str], str], path: str, repeats: int) -> float:
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        fetch(path)
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def _noticed(run: LongRun, checkpoint: Path, fetch: Callable[[str], str]) -> float:
    """Seconds until a batch that ends now is on the page."""
    number = run.batches
    more = replace(run, batches=number + 1)
    reports = checkpoint / "plait" / "join" / "reports" / ID
    for processor in range(run.processors):
        path = reports / f"{number}-{processor}.json"
        path.write_text(more.report(number, processor).to_json())
    (checkpoint / "commits" / str(number)).write_text("v1\n{}")
    began = time.perf_counter()
    while f"batch {number:,}" not in fetch("/?span=50"):
        if time.perf_counter() - began > _LONGEST:
            raise PlaitError("the console has not noticed a batch")
        time.sleep(0.05)
    return time.perf_counter() - began
