"""`plait console` and `plait report`: a query on Spark, seen from its checkpoint."""

from __future__ import annotations

from pathlib import Path

from plait.cli.show import say
from plait.errors import OutputExists


def serve_console(checkpoint: Path, port: int, *, control: bool) -> None:
    """Serve the console until it is interrupted."""
    from plait.dashboard.contents import watch_checkpoint
    from plait.dashboard.server import Console

    serving = Console(watch_checkpoint(checkpoint), port=port, control=control)
    say(serving.url)
    say("interrupt to end it; the query does not notice")
    serving.run()


def write_report(checkpoint: Path, out: Path, *, overwrite: bool) -> None:
    """Write the report of all joins of a checkpoint into one file."""
    from plait.dashboard.contents import watch_checkpoint
    from plait.dashboard.single_file import report_page
    from plait.files.drafts import write_whole

    if out.exists() and not overwrite:
        raise OutputExists(f"{out} exists", remedy="give another name, or --overwrite")
    found = []
    for watcher in watch_checkpoint(checkpoint):
        watcher.refresh()
        found.append(watcher.settled())
    write_whole(out, report_page(found))
    say(f"written: {out}")
