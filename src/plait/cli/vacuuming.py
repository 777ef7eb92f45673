"""`plait vacuum`: the folder of a Delta table without what failed batches have left there."""

from __future__ import annotations

from plait.cli.show import say


def vacuum(table: str, older_than: str, *, dry_run: bool) -> None:
    """Remove old files that no version of the table names, and say which."""
    from plait.spark.io.delta_vacuum import vacuum as remove

    found = remove(table, older_than, dry_run=dry_run)
    for name in found:
        say(name)
    what = "1 file" if len(found) == 1 else f"{len(found)} files"
    say(f"{what} would be removed" if dry_run else f"{what} removed")
