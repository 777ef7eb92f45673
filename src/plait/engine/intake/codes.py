"""Codes: 64-bit integers that are equal exactly when the values of a key class are.

Fixed-width values are their own codes once they are normalised: integers, dates and times as they
are, floats with one NaN and one zero. Strings, binaries and decimals are interned.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.engine.columns import byte_strings, fixed_values, validity
from plait.kernels.hashing import hash_integers, hash_strings, make_secret
from plait.kernels.intern import Interner
from plait.kernels.jit import Bytes, Ints
from plait.kernels.memory import HEAP, Memory, Saved
from plait.kernels.unkeyed import unkeyed_integers, unkeyed_strings
from plait.query.keys import plain
from plait.tuning import USUAL, Tuning

_NAN_BITS = np.array([np.nan]).view(np.int64)[0]


class CodeBook:
    """The codes of one key class, whose values are compared in `type_`."""

    def __init__(
        self,
        type_: pa.DataType,
        hash_bits: int = 64,
        memory: Memory = HEAP,
        tuning: Tuning = USUAL,
        seed: int = 0,
    ) -> None:
        self.type = type_
        interned = pt.is_large_string(type_) or pt.is_large_binary(type_) or pt.is_decimal(type_)
        self._interner = Interner(hash_bits, memory, tuning, seed) if interned else None

    def encode(self, values: pa.Array) -> tuple[Ints, Bytes | None]:
        """Return codes, and one byte per value that is 0 where it is null (None without nulls).

        A value that does not fit the common type (a timestamp beyond the range of nanoseconds)
        equals nothing there, like null.
        """
        values = plain_array(values)
        if values.type != self.type:
            values = _cast_or_null(values, self.type)
        valid = validity(values)
        if self._interner is None:
            return _bits(values), valid
        if pt.is_decimal(self.type):
            words = np.ascontiguousarray(fixed_values(values)).view(np.uint8).reshape(-1)
            starts = np.arange(len(values), dtype=np.int64) * 16
            lengths = np.full(len(values), 16, np.int64)
        else:
            words, starts, lengths = byte_strings(values)
        if valid is not None:
            lengths = np.where(valid, lengths, 0)
        return self._interner.encode(words, starts, lengths), valid

    @property
    def crowded(self) -> bool:
        """Whether many codes may be unused."""
        return self._interner is not None and self._interner.crowded

    def forget(self, in_use: Iterable[Ints]) -> None:
        """Free the memory of values whose codes are not in use."""
        if self._interner is not None:
            self._interner.forget(in_use)

    def to_state(self) -> Saved:
        """Describe the interned values, if values are interned."""
        return {} if self._interner is None else self._interner.to_state()

    def set_state(self, saved: Saved) -> None:
        """Take over the values of another code book."""
        if self._interner is not None:
            self._interner.set_state(saved)

    @property
    def nbytes(self) -> int:
        """Bytes of interned values."""
        return 0 if self._interner is None else self._interner.nbytes


def stored_type(type_: pa.DataType) -> pa.DataType:
    """The type in which values are stored: without dictionary, run-end or view encoding."""
    type_ = plain(type_)
    if pt.is_string_view(type_):
        return pa.string()
    return pa.binary() if pt.is_binary_view(type_) else type_


def plain_array(values: pa.Array) -> pa.Array:
    """Decode dictionary, run-end and view encodings."""
    type_ = stored_type(values.type)
    if pt.is_run_end_encoded(values.type):
        values = pc.run_end_decode(values)
    return values if values.type == type_ else values.cast(type_)


def _cast_or_null(values: pa.Array, type_: pa.DataType) -> pa.Array:
    try:
        return values.cast(type_)
    except pa.ArrowInvalid:
        back = values.cast(type_, safe=False)
        same = pc.equal(back.cast(values.type, safe=False), values)
        return pc.if_else(same, back, pa.scalar(None, type_))


def comparable(values: pa.Array, type_: pa.DataType) -> npt.NDArray[np.bool_] | None:
    """Mark the values that can equal something in the type of their key class; None if all can.

    Null equals nothing, nor does a value that does not fit that type.
    """
    values = plain_array(values)
    if pt.is_timestamp(type_) and values.type != type_:
        values = _cast_or_null(values, type_)
    return None if values.null_count == 0 else np.asarray(values.is_valid())


def same_keys(left: pa.Array, right: pa.Array, type_: pa.DataType) -> npt.NDArray[np.bool_]:
    """Mark where two columns of a key class agree; neither has nulls."""
    left, right = (
        values if values.type == type_ else _cast_or_null(values, type_)
        for values in (plain_array(left), plain_array(right))
    )
    if pt.is_large_string(type_) or pt.is_large_binary(type_) or pt.is_decimal(type_):
        return np.asarray(pc.equal(left, right), np.bool_)
    return np.equal(_bits(left), _bits(right))


def _bits(values: pa.Array) -> Ints:
    if pt.is_floating(values.type):
        with np.errstate(invalid="ignore"):  # signalling NaNs are NaNs
            floats = np.array(fixed_values(values)).view(np.float64) + 0.0
        bits = floats.view(np.int64)
        bits[np.isnan(floats)] = _NAN_BITS
        return bits
    return fixed_values(values).astype(np.int64, copy=False)


def hash_values(values: pa.Array, type_: pa.DataType, seed: int | None) -> npt.NDArray[np.uint64]:
    """Hash each value of a key class, the same on every machine and in every run.

    Without a seed it is the hash of checkpoints from before there were seeds.
    """
    values = plain_array(values)
    if values.type != type_:
        values = _cast_or_null(values, type_)
    if pt.is_decimal(type_):
        words = np.ascontiguousarray(fixed_values(values)).view(np.uint8).reshape(-1)
        starts = np.arange(len(values), dtype=np.int64) * 16
        strings = words, starts, np.full(len(values), 16, np.int64)
    elif pt.is_large_string(type_) or pt.is_large_binary(type_):
        strings = byte_strings(values)
    elif seed is None:
        return unkeyed_integers(_bits(values))
    else:
        return hash_integers(_bits(values), make_secret(seed))
    return unkeyed_strings(*strings) if seed is None else hash_strings(*strings, make_secret(seed))
