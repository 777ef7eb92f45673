"""Show the progress of a run: one line that is renewed on a terminal, and nothing elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from plait.cli.show import console, on_terminal
from plait.figures import event_time
from plait.local.run import Execution

Watch = Callable[[], None]

_EVERY = 0.1
"""Seconds between two looks: more often would only cost time."""


@contextmanager
def progress(execution: Execution, *, quiet: bool = False) -> Iterator[Watch]:
    """Show the progress of a run on standard error; call what it yields now and then."""
    if quiet or not on_terminal():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=20), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(figures(execution), total=None)

        def look() -> None:
            share = execution.progress
            bar.update(
                task,
                description=figures(execution),
                total=None if share is None else 1.0,
                completed=share or 0.0,
            )

        yield throttled(look)


@contextmanager
def waiting(text: str, *, quiet: bool = False) -> Iterator[None]:
    """Say what is going on while nothing can be counted, on a terminal."""
    if quiet or not on_terminal():
        yield
    else:
        with console(stderr=True).status(text):
            yield


def throttled(look: Watch, every: float = _EVERY) -> Watch:
    """Limit a watch to one look in `every` seconds."""
    last = 0.0

    def watch() -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= every:
            last = now
            look()

    return watch


def figures(execution: Execution) -> str:
    """Write the state of a run in one line."""
    counts, seconds = execution.counts, max(execution.seconds, 1e-9)
    parts = [
        f"{execution.rows:,} rows",
        f"{execution.rows / seconds:,.0f} rows/s",
        f"{counts.results:,} results",
        f"{sum(counts.late.values()):,} late",
        f"state {execution.state_rows:,}",
        event_time(execution.reached),
    ]
    return " · ".join(parts)
