"""`plait delta`: commands for Delta tables that queries write to."""

from __future__ import annotations

from typing import Annotated

import typer

from plait.cli.options import DryRunOption


def vacuum(
    table: Annotated[str, typer.Argument(metavar="TABLE", help="The folder of a Delta table.")],
    older_than: Annotated[
        str,
        typer.Option(
            "--older-than",
            metavar="DURATION",
            help="The age from which files are removed; longer than any batch takes.",
        ),
    ] = "7 days",
    dry_run: DryRunOption = False,
) -> None:
    """Remove the files that failed batches have left in the folder of a Delta table.

    Only files that write_delta wrote and that no version of the table names are removed.
    """
    from plait.cli.show import say
    from plait.figures import count
    from plait.spark.io.delta_vacuum import vacuum as remove

    found = remove(table, older_than, dry_run=dry_run)
    for name in found:
        say(name)
    say(f"{count(len(found), 'file')} {'would be removed' if dry_run else 'removed'}")
