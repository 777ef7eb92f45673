"""`plait console` and `plait report`: a query on Spark, seen from its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from plait.cli.show import say
from plait.errors import OutputExists

if TYPE_CHECKING:
    from plait.dashboard.reading.snapshot import Watcher


def serve_console(checkpoint: str, port: int, *, control: bool) -> None:
    """Serve the console until it is interrupted."""
    from plait.dashboard.server import Console

    serving = Console(_watchers(checkpoint, control=control), port=port, control=control)
    say(serving.url)
    say("interrupt to end it; the query does not notice")
    serving.run()


def write_report(checkpoint: str, out: Path, *, overwrite: bool) -> None:
    """Write the report of all joins of a checkpoint into one file."""
    from plait.dashboard.pages.report_page import report_page
    from plait.machine.drafts import write_whole

    if out.exists() and not overwrite:
        raise OutputExists(f"{out} exists", remedy="give another name, or --overwrite")
    found = []
    for watcher in _watchers(checkpoint):
        watcher.refresh()
        found.append(watcher.settled())
    write_whole(out, report_page(found))
    say(f"written: {out}")


def _watchers(checkpoint: str, *, control: bool = False) -> list[Watcher]:
    """What reads a checkpoint, in the file system or in an object store."""
    from plait.dashboard.reading.mirror import watch_remote
    from plait.dashboard.reading.watcher import watch_checkpoint
    from plait.machine.stores import is_remote

    if is_remote(checkpoint):
        return watch_remote(checkpoint, control=control)
    return watch_checkpoint(Path(checkpoint))
