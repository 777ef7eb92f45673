"""What is durable of a site beside its header: segments of rows and packets, as changes by step.

Segments are numbered within lanes (`plait.node.durable.store`):

- `WINDOW`: rows of a window, one segment for each stamp, until no head can meet them;
- `WAITING`: composite tuples that wait for a window to be complete;
- `OUTBOX`: packets that were not acknowledged so far;
- `EARLY`: packets that came before their turn;
- `HELD`: heads that wait until it is known which plan they follow;
- `OUTBOX_MESSAGES`, `EARLY_MESSAGES`: the same as `OUTBOX` and `EARLY`, for messages about plans.
"""

from __future__ import annotations

from collections.abc import Callable

from plait.node.durable.store import Store

WINDOW, WAITING, OUTBOX, EARLY, HELD, OUTBOX_MESSAGES, EARLY_MESSAGES = range(7)


class SegmentChanges:
    """The segments that a step adds and removes; `save` writes them all, or `forget` drops them.

    >>> changes = SegmentChanges()
    >>> changes.add(1, 0, 5, b"rows")
    >>> changes.remove(1, 0)
    >>> changes.pending
    0
    """

    def __init__(self) -> None:
        self._added: dict[tuple[int, int], tuple[int, bytes | Callable[[], bytes]]] = {}
        self._removed: set[tuple[int, int]] = set()

    @property
    def pending(self) -> int:
        """How many segments are to be written or removed."""
        return len(self._added) + len(self._removed)

    def add(self, segment: int, lane: int, newest: int, body: bytes | Callable[[], bytes]) -> None:
        """A new segment; a body that is a function is called if it is written."""
        self._added[segment, lane] = (newest, body)

    def remove(self, segment: int, lane: int) -> None:
        """A segment that is needed no longer."""
        if self._added.pop((segment, lane), None) is None:
            self._removed.add((segment, lane))

    def save(self, store: Store, header: str) -> None:
        """Write the changes and the header; they become durable when the host commits."""
        for segment, lane in sorted(self._removed):
            store.remove_segment(segment, lane)
        for (segment, lane), (newest, body) in self._added.items():
            raw = body if isinstance(body, bytes) else body()
            store.write_segment(segment, lane, newest, raw)
        store.write_header(header)
        self.forget()

    def forget(self) -> None:
        """The changes are not to be written."""
        self._added, self._removed = {}, set()
