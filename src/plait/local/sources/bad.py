"""Set malformed rows aside with the reason, up to a limit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from plait.errors import TooManyBadRows

DEFAULT_LIMIT = 1000
LONGEST_TEXT = 200
"""Characters of a malformed row that are kept."""

_SHOWN = 3


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: where it stands, why, and how it begins."""

    file: str
    line: int
    reason: str
    text: str


class BadRows:
    """The malformed rows of one source, up to a limit.

    >>> bad = BadRows(limit=1)
    >>> bad.add("t.csv", 7, "2 fields instead of 3", b"1,2")
    >>> len(bad), bad.rows[0].text
    (1, '1,2')
    >>> bad.add("t.csv", 9, "4 fields instead of 3", b"1,2,3,4")
    Traceback (most recent call last):
    ...
    plait.errors.TooManyBadRows: t.csv has more than 1 malformed row, among them line 7: 2 fields
    instead of 3; line 9: 4 fields instead of 3; mend the file, or allow more with --max-bad-rows
    (in Python: max_bad_rows)
    """

    def __init__(self, limit: int = DEFAULT_LIMIT) -> None:
        self.limit = limit
        self.rows: list[BadRow] = []
        self._places: set[tuple[str, int]] = set()

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, file: str, line: int, reason: str, text: bytes | str) -> None:
        """Set a row aside, or raise TooManyBadRows; a row that was set aside before counts once."""
        if (file, line) not in self._places:
            self._places.add((file, line))
            self.rows.append(BadRow(file, line, _shown(reason), _shown(text)))
        if len(self.rows) > self.limit:
            raise self._too_many(file)

    def _too_many(self, file: str) -> TooManyBadRows:
        here = [row for row in self.rows if row.file == file] or self.rows
        reasons = "; ".join(f"line {row.line}: {row.reason}" for row in here[:_SHOWN])
        how_many = "a malformed row" if self.limit == 0 else f"more than {self.limit} malformed row"
        plural = "s" if self.limit > 1 else ""
        among = ", " if self.limit == 0 else ", among them "
        return TooManyBadRows(
            f"{file} has {how_many}{plural}{among}{reasons}",
            remedy="mend the file, or allow more with --max-bad-rows (in Python: max_bad_rows)",
        )


def _shown(text: bytes | str) -> str:
    """The beginning of a text as Unicode, whatever its bytes or code points."""
    if isinstance(text, str):
        text = text[: LONGEST_TEXT + 1].encode("utf-8", "backslashreplace")
    found = text[: 4 * LONGEST_TEXT + 4].decode("utf-8", "backslashreplace").rstrip("\r\n")
    return found if len(found) <= LONGEST_TEXT else found[: LONGEST_TEXT - 1] + "…"


BAD_ROWS_SCHEMA = pa.schema(
    [
        ("stream", pa.string()),
        ("file", pa.string()),
        ("line", pa.int64()),
        ("reason", pa.string()),
        ("text", pa.string()),
    ]
)


def bad_rows_batch(stream: str, rows: Sequence[BadRow]) -> pa.RecordBatch:
    """Malformed rows of a stream as a table, to be written out.

    >>> bad_rows_batch("trades", [BadRow("t.csv", 7, "2 fields instead of 3", "1,2")]).num_rows
    1
    """
    columns = [[stream] * len(rows)]
    columns += [[getattr(row, name) for row in rows] for name in BAD_ROWS_SCHEMA.names[1:]]
    return pa.RecordBatch.from_arrays(
        [pa.array(c, f.type) for c, f in zip(columns, BAD_ROWS_SCHEMA, strict=True)],
        schema=BAD_ROWS_SCHEMA,
    )
