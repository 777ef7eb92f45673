"""`plait query`: commands for those who operate a query on Spark, by its checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plait.cli.options import CheckpointArgument, DryRunOption, JsonOption, OverwriteOption

if TYPE_CHECKING:
    from plait.dashboard.reading.snapshot import Watcher


def console(
    checkpoint: CheckpointArgument,
    port: Annotated[
        int,
        typer.Option("--port", min=0, max=65535, metavar="N", help="The port; 0 takes a free one."),
    ] = 0,
    control: Annotated[
        bool, typer.Option("--control", help="Let plans be asked for on its pages.")
    ] = False,
) -> None:
    """Show a query in the browser, live: its plans, estimates, decisions and loads.

    The query may run elsewhere or have ended: only its checkpoint is read. The console listens on
    this machine only and answers nothing without the token in the address that is printed.
    """
    from plait.cli.show import say
    from plait.dashboard.server import Console

    serving = Console(_watchers(checkpoint, control=control), port=port, control=control)
    say(serving.url)
    say("interrupt to end it; the query does not notice")
    serving.run()


def report(
    checkpoint: CheckpointArgument,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="Where to write it.")
    ] = Path("report.html"),
    overwrite: OverwriteOption = False,
) -> None:
    """Write the pages of the console into one HTML file, for example to attach to a ticket."""
    from plait.cli.show import say
    from plait.dashboard.pages.report_page import report_page
    from plait.errors import OutputExists
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
    """Open a checkpoint for reading, in the file system or in an object store."""
    from plait.dashboard.reading.mirror import watch_remote
    from plait.dashboard.reading.watcher import watch_checkpoint
    from plait.machine.stores import is_remote

    if is_remote(checkpoint):
        return watch_remote(checkpoint, control=control)
    return watch_checkpoint(Path(checkpoint))


def upgrade(checkpoint: CheckpointArgument, dry_run: DryRunOption = False) -> None:
    """Let a query go on from its checkpoint although its question has changed.

    Make the changed query with to_df(checkpoint=...) first: it is refused, and what has changed is
    kept. This command says what each change means, and agrees to it. Then start the query.
    """
    from plait.cli.show import say
    from plait.errors import CheckpointMismatch
    from plait.node.durable.upgrade import REFUSED
    from plait.spark.checkpoint.upgrades import agree, is_agreed, refused_changes

    wishes = refused_changes(checkpoint)
    for name, (_, wish) in wishes.items():
        say(f"{name}: change {wish.code}, from the first batch after the restart on")
        for change in wish.changes:
            say(f"  {change}", style="bold")
            verdict = "refused: " if change.verdict == REFUSED else ""
            say(f"    {verdict}{change.answer}")
    if refused := [name for name, (_, wish) in wishes.items() if wish.refused]:
        raise CheckpointMismatch(
            f"{refused[0]!r} cannot go on with this question",
            remedy="undo the changes that are refused, or begin a new checkpoint",
        )
    if all(is_agreed(control, wish) for control, wish in wishes.values()):
        say("agreed to already: start the query")
    elif dry_run:
        say("nothing has been changed: without --dry-run this is agreed to")
    else:
        for control, wish in wishes.values():
            agree(control, wish)
        say("agreed: start the query")


def rebalance(
    checkpoint: CheckpointArgument,
    processors: Annotated[
        int,
        typer.Option(
            "--processors", "-p", min=1, metavar="N", help="The number of processors from now on."
        ),
    ],
    sink: Annotated[
        str,
        typer.Option(
            "--sink",
            metavar="DIR",
            help="The folder that the query writes to, if it writes files (parquet, csv, json, "
            "...); none if it writes elsewhere.",
        ),
    ],
) -> None:
    """Let a query that has stopped go on with another number of processors.

    Stop the query first, and start it again afterwards, as before. Its partition groups move to
    the new processors while it runs, and no result is lost or repeated.
    """
    from plait.cli.env import local_spark
    from plait.cli.show import say
    from plait.errors import MissingRequirement
    from plait.spark.environment import java
    from plait.spark.environment.connect import refuse_remote

    refuse_remote("plait query rebalance")
    if problem := java.missing():
        raise MissingRequirement(problem, remedy="install a Java runtime, version 17 or 21")
    from plait.spark.balance.rebalance import checked_place
    from plait.spark.balance.rebalance import rebalance as divide

    checked_place(checkpoint)  # before Spark starts, which takes some seconds
    say("starting Spark ...")
    with local_spark("plait query rebalance") as session:
        say(f"dividing the state into {processors} partitions ...")
        output = None if sink == "none" else Path(sink)
        before, last = divide(session, checkpoint, processors, output)
    done = (
        f"the state has {processors} partitions already"
        if before == processors
        else f"the state had {before} partitions and has {processors} since batch {last}"
    )
    say(f"{done}; start the query again, and its groups move while it runs")


def replay(
    events: Annotated[
        Path,
        typer.Argument(
            metavar="CHECKPOINT",
            help="The query's checkpointLocation, or an event log: a folder events/, or the file "
            "that plait run --events wrote.",
        ),
    ],
    policy: Annotated[
        list[str] | None,
        typer.Option("--policy", metavar="KEY=VALUE", help="Override a threshold of the policy."),
    ] = None,
    json: JsonOption = None,
) -> None:
    """Tell what another policy would have decided, from what was known then.

    Example: plait query replay checkpoint --policy margin=0.5 --policy rest=60
    """
    from plait.cli.replaying import replay_events

    replay_events(events, policy or [], json)
