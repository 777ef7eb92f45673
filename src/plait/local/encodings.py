"""Decode views and run-end encoded columns, whose rows Arrow cannot select.

Arrow has no kernel that picks values out of views and run-end encoded arrays. As whole columns
these are decoded where rows enter. Within lists, structs and maps they are refused: a result would
have to have another type than its column.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.engine.intake.codes import stored_type
from plait.errors import SourceError
from plait.query.query import Query


def decoded_batch(rows: pa.RecordBatch) -> pa.RecordBatch:
    """The rows without views and run-end encoding; dictionaries stay as they are.

    >>> views = pa.RecordBatch.from_arrays([pa.array(["a", "b"], pa.string_view())], names=["s"])
    >>> decoded_batch(views).schema.field("s").type
    DataType(string)
    """
    columns = [decoded(column) for column in rows.columns]
    return pa.RecordBatch.from_arrays(columns, names=rows.schema.names)


def decoded(values: pa.Array) -> pa.Array:
    """The values without view or run-end encoding, also of what is encoded again."""
    type_ = values.type
    if pt.is_run_end_encoded(type_):
        runs = pa.RunEndEncodedArray.from_arrays(values.run_ends, decoded(values.values))
        return _run_end_decoded(runs.slice(values.offset, len(values)))
    if pt.is_dictionary(type_):
        words = decoded(values.dictionary)
        if words.type == type_.value_type:
            return values
        return pa.DictionaryArray.from_arrays(values.indices, words)
    if pt.is_string_view(type_) or pt.is_binary_view(type_):
        return values.cast(stored_type(type_))
    return values


def _run_end_decoded(runs: pa.RunEndEncodedArray) -> pa.Array:
    if not pt.is_dictionary(runs.type.value_type):
        return pc.run_end_decode(runs)
    words = runs.values
    numbers = pa.RunEndEncodedArray.from_arrays(runs.run_ends, words.indices)
    indices = pc.run_end_decode(numbers.slice(runs.offset, len(runs)))
    return pa.DictionaryArray.from_arrays(indices, words.dictionary)


def check_columns(query: Query) -> None:
    """Refuse columns that cannot be put in order, by name."""
    for stream in query.streams:
        for field in stream.fields:
            if not _movable(stored_type(field.type)):
                raise SourceError(
                    f"{stream.name}.{field.name} is of type {field.type}, whose values Arrow cannot"
                    " put in order",
                    remedy="cast it to a type without views and run ends, or leave it out",
                )


def _movable(type_: pa.DataType) -> bool:
    """Whether Arrow can select values from several arrays of the type; try it."""
    try:
        nothing = pa.nulls(2, type_)
        pa.chunked_array([nothing, nothing]).take(pa.array([3, 0])).filter(pa.array([True, False]))
        pa.concat_arrays([nothing, nothing])
    except pa.ArrowException:
        return False
    return True
