"""Values that could not be read as rows, on their way beside the rows that could.

Whoever parses the messages of a source may mark a row as no row at all: the column `MARK`, which is
null in proper rows, tells the place of the message, its value as it came, and what is wrong with
it. Such rows are never admitted, whatever their other columns say: they are counted, and set aside
for those who want to see them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

MALFORMED = "malformed"
"""Why such a row is set aside; beside the reasons in `plait.engine.intake.admission`."""
MARK = "_malformed"
"""The column that marks them."""
MARK_TYPE = pa.struct(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
        ("problem", pa.string()),
    ]
)
PLACE = tuple(field.name for field in MARK_TYPE if field.name != "problem")
"""The columns that messages have themselves."""


def apart(rows: pa.RecordBatch) -> tuple[pa.RecordBatch, pa.RecordBatch | None]:
    """The proper rows without their last column, which is the mark; the marks of the others.

    >>> bad = {"topic": "t", "partition": 0, "offset": 7, "value": b"?", "problem": "no JSON"}
    >>> marks = pa.array([None, bad], MARK_TYPE)
    >>> proper, found = apart(pa.record_batch([pa.array([1, None]), marks], ["k", MARK]))
    >>> proper.to_pylist(), found.to_pylist() == [bad]
    ([{'k': 1}], True)
    """
    last = rows.num_columns - 1
    marks, rows = rows.column(last), rows.select(range(last))
    if marks.null_count == len(marks):
        return rows, None
    is_proper = pc.is_null(marks)
    found = marks.filter(pc.invert(is_proper))
    return rows.filter(is_proper), pa.RecordBatch.from_arrays(
        found.flatten(), [f.name for f in MARK_TYPE]
    )
