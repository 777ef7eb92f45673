"""Locks on a control directory: of several processes, one does a thing."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from plait.errors import MoveError
from plait.hosts.spark.control import Control


class Lock:
    """A lock on a control directory, which one process can hold; `does` says what for.

    The system releases it when the process ends, however that happens.
    """

    def __init__(
        self,
        control: Control,
        name: str = "manager.lock",
        does: str = "moves the partition groups of",
    ) -> None:
        self._path = Path(control.folder, name)
        self._does = does
        self._handle = -1

    def take(self) -> None:
        """Take it, or keep it; MoveError if another process has it."""
        if self._handle >= 0:
            return
        # Open for reading only: it must not keep a disk from being made read-only.
        handle = os.open(self._path, os.O_RDONLY | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            raise MoveError(
                f"another process {self._does} {self._path.parent}",
                remedy="let one driver alone run a query",
            ) from None
        self._handle = handle

    def release(self) -> None:
        """Let another process have it."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1
