"""`plait upgrade`: a query that goes on from its checkpoint with another question."""

from __future__ import annotations

from plait.cli.show import say
from plait.errors import CheckpointMismatch
from plait.node.durable.upgrade import REFUSED


def upgrade(checkpoint: str, *, dry_run: bool) -> None:
    """Say what changes of a question mean, and agree to them."""
    from plait.spark.checkpoint.upgrades import agree, is_agreed, refused_changes

    wishes = refused_changes(checkpoint)
    for name, (_, wish) in wishes.items():
        say(f"{name}: change {wish.code}, from the first batch after the restart on")
        for change in wish.changes:
            say(f"  {change}", style="bold")
            said = "refused: " if change.verdict == REFUSED else ""
            say(f"    {said}{change.answer}")
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
