"""Agreeing that a query goes on from its checkpoint with another question.

`to_df` refuses a question that has changed, and says what the change would mean and what it is
called: its code. It goes on once somebody has agreed to this very change, by `plait upgrade` on the
command line or by the code in `to_df(upgrade=...)`. Any other change is refused again.

    asked.json       the change that was refused last, part by part
    upgrade.json     the code of the change that was agreed to
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plait.errors import CheckpointDamaged, CheckpointMismatch, PlaitError
from plait.machine.regular import read_below
from plait.machine.sealed import sealed, unsealed
from plait.machine.stores import LARGEST
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


@dataclass(frozen=True, slots=True)
class RefusedChange:
    """A question that was put to a checkpoint and was refused."""

    code: str
    changes: tuple[QuestionChange, ...]

    @property
    def refused(self) -> bool:
        """Whether the query cannot go on with it."""
        return any(change.verdict == REFUSED for change in self.changes)


def agreed(control: Control, stored: str, asked: Contract, code: str | None) -> str | None:
    """The contract to go on from with another question; None if the question is the same.

    Raises CheckpointMismatch if nobody has agreed to it.
    """
    found = changes(stored, asked)
    if all(change.verdict == GOES_ON for change in found):
        check_contract(stored, asked)
        return None
    wish = RefusedChange(code_of(stored, asked), tuple(found))
    if not wish.refused and wish.code in (code, _read(control, _AGREED).get("code")):
        return stored
    remedies = [f"to_df(..., upgrade={wish.code!r})"]
    if not (control.temporary or control.remote):
        with suppress(OSError, PlaitError):  # then there is no more than the error
            control.keep(_ASKED, _to_json(wish))
            remedies.insert(0, f"plait upgrade {Path(control.folder).parents[1]}")
    if wish.refused:
        check_contract(stored, asked)
    listed = "; ".join(f"{change}: {change.answer}" for change in found)
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
    found = {Path(c.folder).name: (c, _wish(c)) for c in controls_in(path, _ASKED)}
    if not found:
        raise CheckpointMismatch(
            f"no question that has changed was put to {path}",
            remedy="make the changed query with to_df(checkpoint=...), which need not be started",
        )
    return found


def _wish(control: Control) -> RefusedChange:
    given = _read(control, _ASKED)
    try:
        listed = [QuestionChange(*map(str, change)) for change in given["changes"]]
        return RefusedChange(str(given["code"]), tuple(listed))
    except (KeyError, TypeError) as error:
        raise _damaged(Path(control.folder, _ASKED), error) from error


def agree(control: Control, wish: RefusedChange) -> None:
    """Agree to a change."""
    control.keep(_AGREED, sealed({"code": wish.code}))


def is_agreed(control: Control, wish: RefusedChange) -> bool:
    """Whether somebody has agreed to this change."""
    return _read(control, _AGREED).get("code") == wish.code


def _to_json(wish: RefusedChange) -> str:
    return sealed({"code": wish.code, "changes": [list(change) for change in wish.changes]})


def _read(control: Control, name: str) -> Mapping[str, Any]:
    if control.remote:  # there the code is given to `to_df`
        return {}
    path = Path(control.folder, name)
    try:
        return unsealed(read_below(path.parent, path.name, LARGEST).decode("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, ValueError, PlaitError) as error:
        raise _damaged(path, error) from error


def _damaged(path: Path, error: BaseException) -> CheckpointDamaged:
    return CheckpointDamaged(
        f"{path} cannot be read: {str(error).partition(';')[0]}",
        remedy="remove it: it is about a change of the question that can be asked again",
    )
