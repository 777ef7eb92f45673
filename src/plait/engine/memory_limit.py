"""The memory limit of a running plan."""

from __future__ import annotations

from plait.engine.tactic import Tactic
from plait.engine.windows import Windows
from plait.errors import MemoryExceeded


def check_memory(windows: Windows, tactic: Tactic, limit: int | None, elsewhere: int = 0) -> None:
    """Raise MemoryExceeded, naming the largest state, if all states exceed the limit."""
    if limit is None:
        return
    total = windows.nbytes + tactic.nbytes + elsewhere
    if total > limit:
        largest = max(windows.sizes(tactic.combined), key=lambda size: size.bytes)
        raise MemoryExceeded("⋈".join(largest.streams), largest.bytes, total, limit)
