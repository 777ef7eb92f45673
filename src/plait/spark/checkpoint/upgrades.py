"""Let a query go on from its checkpoint with a changed question, once somebody has agreed.

`to_df` refuses a changed question, says what the change would mean, and names it by a code. The
query goes on once somebody has agreed to this very change, by `plait query upgrade` on the command
line or by the code in `to_df(upgrade=...)`. Any other change is refused again.

    asked.json       the change that was refused last, part by part
    upgrade.json     the code of the change that was agreed to
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from plait.errors import CheckpointMismatch, PlaitError
from plait.node.durable.contract import Contract
from plait.node.durable.upgrade import (
    GOES_ON,
    REFUSED,
    QuestionChange,
    changes,
    check_contract,
    code_of,
)
from plait.spark.checkpoint.damage import local_path
from plait.spark.checkpoint.stored_state import is_checkpoint
from plait.spark.control.directory import Control, controls_in

_ASKED, _AGREED = "asked.json", "upgrade.json"
_REMOVE = "remove it: it is about a change of the question that can be asked again"


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A changed question that was refused, part by part."""

    code: str
    changes: tuple[QuestionChange, ...]

    @property
    def refused(self) -> bool:
        """Whether the query cannot go on with it."""
        return any(change.verdict == REFUSED for change in self.changes)


@dataclass(frozen=True, slots=True)
class Agreement:
    """The code of a change that somebody has agreed to."""

    code: str


def agreed(control: Control, stored: str, asked: Contract, code: str | None) -> str | None:
    """The contract to go on from with another question; None if the question is the same.

    Raises CheckpointMismatch if nobody has agreed to it.
    """
    found = changes(stored, asked)
    if all(part.verdict == GOES_ON for part in found):
        check_contract(stored, asked)
        return None
    change = RefusedChange(code_of(stored, asked), tuple(found))
    if not change.refused and (change.code == code or is_agreed(control, change)):
        return stored
    remedies = [f"to_df(..., upgrade={change.code!r})"]
    if not (control.temporary or control.remote):
        with suppress(OSError, PlaitError):  # then there is no more than the error
            control.keep(_ASKED, change)
            remedies.insert(0, f"plait query upgrade {Path(control.folder).parents[1]}")
    if change.refused:
        check_contract(stored, asked)
    listed = "; ".join(f"{part}: {part.answer}" for part in found)
    raise CheckpointMismatch(
        f"the question has changed since the checkpoint was written: {listed}",
        remedy=f"to go on with it from the next batch on: {', or '.join(remedies)}",
    )


def refused_changes(checkpoint: str) -> dict[str, tuple[Control, RefusedChange]]:
    """The changes that were refused last, by the name of the join."""
    path = local_path(checkpoint)
    if path is None:
        raise CheckpointMismatch(
            f"{checkpoint} is not in the file system of this machine",
            remedy="agree with the code that to_df names: to_df(..., upgrade=...)",
        )
    if not is_checkpoint(path):
        raise CheckpointMismatch(
            f"{path} is not the checkpoint of a query that has run",
            remedy="name its checkpointLocation",
        )
    found = {
        Path(control.folder).name: (control, change)
        for control in controls_in(path, _ASKED)
        if (change := control.kept_value(_ASKED, RefusedChange, _REMOVE)) is not None
    }
    if not found:
        raise CheckpointMismatch(
            f"no question that has changed was put to {path}",
            remedy="make the changed query with to_df(checkpoint=...), which need not be started",
        )
    return found


def agree(control: Control, change: RefusedChange) -> None:
    """Agree to a change."""
    control.keep(_AGREED, Agreement(change.code))


def is_agreed(control: Control, change: RefusedChange) -> bool:
    """Whether somebody has agreed to this change."""
    if control.remote:  # there the code is given to `to_df`
        return False
    found = control.kept_value(_AGREED, Agreement, _REMOVE)
    return found is not None and found.code == change.code
