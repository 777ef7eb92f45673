"""The plain forms that operators work on, and conversions into them.

A value is an Arrow array, or a scalar that stands for the same value in every row: literals are
spread over the rows only where an operator needs it. Encodings (dictionary, run-end, views) are
undone first, so that every operator sees one form per kind of value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.keys import plain

Value = Any
"""`pa.Array | pa.Scalar`; pyarrow has no types of its own for a checker to use."""

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

UNITS = ("s", "ms", "us", "ns")
PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY = 86_400


class Unfit(Exception):
    """An operator has no meaning for values of these types; the message says what would help."""


def decoded(value: Value) -> Value:
    """The same values without dictionary, run-end or view encoding.

    >>> decoded(pa.array(["a", "a"]).dictionary_encode()).type
    DataType(string)
    """
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    type_ = value.type
    if isinstance(value, pa.Scalar) and type_ != plain(type_):
        return decoded(pa.array([value.as_py()], plain(type_)))[0]
    if pt.is_dictionary(type_):
        return decoded(value.dictionary_decode())
    if pt.is_run_end_encoded(type_):
        return decoded(pc.run_end_decode(value))
    if pt.is_string_view(type_):
        return pc.cast(value, pa.string())
    if pt.is_binary_view(type_) or pt.is_fixed_size_binary(type_):
        return pc.cast(value, pa.binary())
    if pt.is_decimal(type_) and type_.bit_width < 128:
        return pc.cast(value, pa.decimal128(type_.precision, type_.scale))
    return value


def spread(value: Value, length: int) -> pa.Array:
    """Make an array of `length` rows: repeat a scalar, return an array unchanged."""
    return pa.repeat(value, length) if isinstance(value, pa.Scalar) else value


def rows(values: Sequence[Value]) -> int:
    """Return the length of the first array among the values; 1 without an array."""
    return next((len(v) for v in values if not isinstance(v, pa.Scalar)), 1)


def ints(value: Value) -> Ints:
    """Return the numbers of an integer or temporal array of 64 bits, undefined in null rows."""
    if value.null_count:
        value = pc.fill_null(value.cast(pa.int64()), 0)
    return np.asarray(value.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)


def floats(value: Value) -> Floats:
    """The numbers behind an array of doubles; null rows hold NaN."""
    return np.asarray(value.to_numpy(zero_copy_only=False), dtype=np.float64)


def masked(numbers: npt.NDArray[Any], type_: pa.DataType, *nulls: Bools | pa.Array) -> pa.Array:
    """An array of these numbers, null wherever one of `nulls` is true, or a null array is null."""
    mask = _any_of(nulls)
    return pa.array(numbers, mask=mask).cast(type_)  # without a mask nothing is copied


def _any_of(nulls: Sequence[Bools | pa.Array]) -> Bools | None:
    """True where one of `nulls` is true, or a null array is null; None if that is nowhere."""
    found: Bools | None = None
    for part in nulls:
        if isinstance(part, np.ndarray):
            mask = part
        elif part.null_count:
            mask = missing(part)
        else:
            continue
        found = mask if found is None else found | mask
    return found


def missing(value: pa.Array) -> Bools:
    """True where the value is null."""
    if not value.null_count:
        return np.zeros(len(value), dtype=np.bool_)
    return np.asarray(value.is_null().to_numpy(zero_copy_only=False), dtype=np.bool_)


def unscaled(value: pa.Array) -> Ints | None:
    """The integers behind a decimal128 array, 0 in null rows, if all fit into 64 bits."""
    if not pt.is_decimal128(value.type):
        return None
    if not len(value):
        return np.zeros(0, dtype=np.int64)
    end = value.offset + len(value)
    words = np.frombuffer(value.buffers()[1], dtype=np.int64, count=2 * end).reshape(-1, 2)
    words = words[value.offset :]
    low = np.where(missing(value), 0, words[:, 0])
    high = np.where(missing(value), 0, words[:, 1])
    return low if bool((high == low >> 63).all()) else None


def from_unscaled(numbers: Ints, type_: pa.DataType, *nulls: Bools | pa.Array) -> pa.Array:
    """The decimal128 array of these integers, null where one of `nulls` is, or it does not fit."""
    mask = _any_of(nulls)
    mask = np.zeros(len(numbers), dtype=np.bool_) if mask is None else mask
    if type_.precision < 19:
        mask = mask | (np.abs(numbers) >= 10**type_.precision)
    words = np.stack([numbers, numbers >> 63], axis=1)
    valid = pa.array(~mask).buffers()[1]
    return pa.Array.from_buffers(type_, len(numbers), [valid, pa.py_buffer(words)])


def by_row(function: Callable[..., Any], type_: pa.DataType, *values: Value) -> pa.Array:
    """`function` on each row as Python values: exact and slow; null if one of the values is."""
    count = rows(values)
    columns = [spread(v, count).to_pylist() for v in values]
    return pa.array(
        [None if None in row else function(*row) for row in zip(*columns, strict=True)], type_
    )


def by_value(function: Callable[..., Any], type_: pa.DataType, *values: Value) -> pa.Array:
    """As `by_row`, but once for each distinct value where one column meets constants.

    >>> by_value(lambda s, n: s * n, pa.string(), pa.array(["a", None, "a"]), pa.scalar(2))[2]
    <pyarrow.StringScalar: 'aa'>
    """
    arrays = [i for i, v in enumerate(values) if not isinstance(v, pa.Scalar)]
    if len(arrays) != 1:
        return by_row(function, type_, *values)
    encoded = pc.dictionary_encode(values[arrays[0]])
    distinct = [encoded.dictionary if i == arrays[0] else v for i, v in enumerate(values)]
    return by_row(function, type_, *distinct).take(encoded.indices)


def is_text(type_: pa.DataType) -> bool:
    """Whether the type is a string in any encoding."""
    return bool(pt.is_string(type_) or pt.is_large_string(type_) or pt.is_string_view(type_))


def is_bytes(type_: pa.DataType) -> bool:
    """Whether the type is a binary string in any encoding."""
    return bool(
        pt.is_binary(type_)
        or pt.is_large_binary(type_)
        or pt.is_binary_view(type_)
        or pt.is_fixed_size_binary(type_)
    )


def is_number(type_: pa.DataType) -> bool:
    """Whether the type is an integer, a float or a decimal."""
    return bool(pt.is_integer(type_) or pt.is_floating(type_) or pt.is_decimal(type_))


def as_boolean(value: Value) -> Value:
    """The value as a truth value; NULL without a type is a null truth value."""
    if pt.is_null(value.type):
        return pc.cast(value, pa.bool_())
    if not pt.is_boolean(value.type):
        raise Unfit("only a condition is true or false; compare it with something")
    return value


def as_text(value: Value) -> Value:
    """The value as a string; NULL without a type is a null string."""
    if pt.is_null(value.type):
        return pc.cast(value, pa.string())
    if not is_text(value.type):
        raise Unfit("only a string has this function; use CAST(... AS STRING)")
    return value


def as_whole(value: Value) -> Value:
    """The value as an integer of 64 bits; NULL without a type is a null integer."""
    if pt.is_null(value.type) or pt.is_integer(value.type):
        return pc.cast(value, pa.int64())
    raise Unfit("this takes an integer; use CAST(... AS BIGINT)")
