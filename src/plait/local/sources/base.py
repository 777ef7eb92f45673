"""The interface of sources: a schema, and scans in chunks.

*Positions.* Each chunk says how far into the source its rows reach, in a unit of the source's own
(rows or bytes). Positions of one source are comparable between scans, also of different columns:
a first look at the event times alone says something about the rows of a second scan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from plait.local.sources.bad import BadRows

CHUNK_ROWS = 1 << 16
"""Rows per chunk of the sources that can choose."""


class Chunk(NamedTuple):
    """Some rows, and the position in the source just after them."""

    rows: pa.RecordBatch
    position: int


@runtime_checkable
class Source(Protocol):
    """Rows of one schema, in chunks of bounded size."""

    @property
    def name(self) -> str:
        """The name in errors and displays."""

    @property
    def schema(self) -> pa.Schema:
        """The columns of every chunk of a full scan."""

    @property
    def size(self) -> int | None:
        """The position at the end, or None if it is not known beforehand."""

    @property
    def once(self) -> bool:
        """Whether it can be scanned only once."""

    @property
    def bad(self) -> BadRows:
        """The malformed rows that scans have set aside."""

    def scan(self, columns: Sequence[str] | None = None, *, report: bool = True) -> Iterator[Chunk]:
        """Read the rows from the beginning, all columns or some.

        Malformed rows are always left out; `report` also adds them to `bad`.
        """
