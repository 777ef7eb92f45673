"""Codes against the meaning of the values: equal codes exactly where equal values are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
import pytest

from plait.engine.intake.codes import CodeBook, plain_array, stored_type
from plait.query.keys import common_type

Meanings = Mapping[pa.DataType, Sequence[tuple[object, object]]]
"""For each type of a family: values as Arrow takes them, and what they mean."""

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def _integers() -> Meanings:
    types = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]
    types += [pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]
    found = {}
    for t in types:
        low = 0 if pt.is_unsigned_integer(t) else -(2 ** (t.bit_width - 1))
        high = low + 2**t.bit_width - 1
        numbers = {0, 1, 2, low, high, high - 1, 127, 128, 255, 2**31, 2**32 - 1, 2**63, -1, -128}
        found[t] = [(n, n) for n in sorted(numbers) if low <= n <= high]
    found[pa.dictionary(pa.int8(), pa.int16())] = [(1, 1), (-128, -128), (255, 255)]
    return found


def _exact_numbers() -> Meanings:
    found: dict[pa.DataType, list[tuple[object, object]]] = {
        t: [(n, Fraction(n)) for n in (0, 1, -1, 10, 100, -128)]
        for t in (pa.int8(), pa.int32(), pa.int64())
    }
    found[pa.uint64()] = [(n, Fraction(n)) for n in (0, 1, 10, 2**64 - 1)]
    texts = ("0", "1", "-1", "0.1", "-0.1", "10", "1.01", "100", "0.001")
    for t in (
        pa.decimal128(5, 0), pa.decimal128(5, 1), pa.decimal128(9, 3), pa.decimal32(6, 2),
        pa.decimal64(12, 3), pa.decimal256(20, 1),
    ):  # fmt: skip
        numbers = [Decimal(text) for text in texts]
        fitting = [n for n in numbers if Fraction(n) * 10**t.scale % 1 == 0]
        found[t] = [(n, Fraction(n)) for n in fitting]
    return found


def _floats() -> Meanings:
    plain = [(0.0, 0), (-0.0, 0), (1.5, Fraction(3, 2)), (float("inf"), "inf")]
    plain += [(float("-inf"), "-inf"), (float("nan"), "nan"), (-1.5, Fraction(-3, 2))]
    near = [(0.1, "double 0.1"), (1 + 2**-40, "1 + 2^-40"), (1.0, 1)]
    return {
        pa.float16(): [*plain, (1.0, 1)],
        pa.float32(): [*plain, (1.0, 1), (2**-30, Fraction(1, 2**30))],
        pa.float64(): [*plain, *near, (2**-30, Fraction(1, 2**30))],
    }


def _strings() -> Meanings:
    texts = ["", "a", "b", "a\0", "\0", "é", "e\u0301", "A", "aa", "a" * 100, "a" * 99 + "b"]
    values = [(text, text) for text in texts]
    types = (
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    )
    return dict.fromkeys(types, values)


def _binaries() -> Meanings:
    threes: list[tuple[object, object]] = [(b, b) for b in (b"abc", b"ab\0", b"\xff\xff\xff")]
    values: list[tuple[object, object]] = [*((b, b) for b in (b"", b"a", b"ab")), *threes]
    return {
        **dict.fromkeys((pa.binary(), pa.large_binary(), pa.binary_view()), values),
        pa.binary(3): threes,
    }


def _instants(zone: str | None) -> Meanings:
    """Year 1 and year 9999 are beyond what nanoseconds reach."""
    found: dict[pa.DataType, list[tuple[object, object]]] = {}
    for unit, per_second in _PER_SECOND.items():
        seconds = [0, 1, -1, 1_700_000_000]
        if unit != "ns":
            seconds += [-62_135_596_800, 253_402_300_799]
        counts = [s * per_second for s in seconds] + [1, -1, 1001]
        found[pa.timestamp(unit, zone)] = [
            (n, Fraction(n, per_second)) for n in dict.fromkeys(counts)
        ]
    return found


def _zoned() -> Meanings:
    mixed = dict(_instants("UTC"))
    mixed[pa.timestamp("us", "Asia/Tokyo")] = mixed[pa.timestamp("us", "UTC")]
    return mixed


def _durations() -> Meanings:
    return {
        pa.duration(unit): [
            (n, Fraction(n, per)) for n in (0, 1, -1, 1000, 1001, 10**6, 10**9, 10**12)
        ]
        for unit, per in _PER_SECOND.items()
    }


def _times_of_day() -> Meanings:
    types = (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))
    return {
        t: [(n, Fraction(n, _PER_SECOND[t.unit])) for n in (0, 1, 1000, 1001, 3600, 86_399)]
        for t in types
    }


def _dates() -> Meanings:
    day = 86_400_000
    days = (0, 1, -1, 20_000, -700_000)
    return {
        pa.date32(): [(n, n) for n in days],
        pa.date64(): [(n * day, n) for n in days],
    }


FAMILIES: dict[str, Meanings] = {
    "integers": _integers(),
    "exact numbers": _exact_numbers(),
    "floats": _floats(),
    "strings": _strings(),
    "binaries": _binaries(),
    "timestamps": _instants(None),
    "timestamps with a zone": _zoned(),
    "durations": _durations(),
    "times of day": _times_of_day(),
    "dates": _dates(),
    "booleans": {pa.bool_(): [(True, True), (False, False)]},
}
PAIRS = [
    pytest.param(family, left, right, id=f"{left}-{right}")
    for name, family in FAMILIES.items()
    for left, right in combinations_with_replacement(family, 2)
]


def column(type_: pa.DataType, values: Sequence[object]) -> pa.Array:
    """The values as Arrow, a slice of something longer."""
    plain = type_.value_type if pt.is_dictionary(type_) else type_
    made = pa.array([values[0], *values, values[0]], plain)
    return (made.dictionary_encode() if pt.is_dictionary(type_) else made).slice(1, len(values))


def joined(book: CodeBook, left: pa.Array, right: pa.Array) -> list[list[bool]]:
    """Which of the left values join which of the right ones."""
    (a, known_a), (b, known_b) = book.encode(left), book.encode(right)
    assert a.dtype == b.dtype == np.int64
    equal = a[:, None] == b[None, :]
    if known_a is not None:
        equal &= known_a.astype(bool)[:, None]
    if known_b is not None:
        equal &= known_b.astype(bool)[None, :]
    found: list[list[bool]] = equal.tolist()
    return found


@pytest.mark.parametrize("hash_bits", [64, 0])
@pytest.mark.parametrize(("family", "left", "right"), PAIRS)
def test_oracle_equal_codes_exactly_where_equal_values(
    family: Meanings, left: pa.DataType, right: pa.DataType, hash_bits: int
) -> None:
    common = common_type([left, right])
    assert common is not None
    book = CodeBook(common, hash_bits)
    a, b = family[left], family[right]
    found = joined(book, column(left, [v for v, _ in a]), column(right, [v for v, _ in b]))
    assert found == [[x == y for _, y in b] for _, x in a]
    assert any(map(any, found)), "the family has no value in common"


@pytest.mark.parametrize("type_", [t for f in FAMILIES.values() for t in f], ids=str)
def test_null_equals_nothing(type_: pa.DataType) -> None:
    family = next(f for f in FAMILIES.values() if type_ in f)
    common = common_type([type_, type_])
    assert common is not None
    value = family[type_][0][0]
    book = CodeBook(common)
    some = column(type_, [value, None, value, None])
    yes, no = [True, False, True, False], [False] * 4
    assert joined(book, some, some) == [yes, no, yes, no]
    only = column(type_, [None, None])
    assert joined(book, only, some) == [no, no]


@pytest.mark.parametrize("type_", [t for f in FAMILIES.values() for t in f], ids=str)
def test_no_values_have_no_codes(type_: pa.DataType) -> None:
    common = common_type([type_, type_])
    assert common is not None
    codes, known = CodeBook(common).encode(pa.array([], type_))
    assert (len(codes), known) == (0, None)


@pytest.mark.filterwarnings("error")
def test_every_nan_is_the_same_value() -> None:
    bits = [0x7FF8000000000000, 0x7FF0000000000001, -1, -(2**51), 0x7FFFFFFFFFFFFFFF]
    nans = pa.array(np.array(bits, np.int64).view(np.float64))
    singles = pa.array(np.array([0x7FC00000, 0x7F800001, -1], np.int32).view(np.float32))
    book = CodeBook(pa.float64())
    assert all(map(all, joined(book, nans, singles)))
    assert not any(map(any, joined(book, nans, pa.array([float("inf"), 0.0]))))


def test_a_timestamp_beyond_nanoseconds_is_null_in_a_class_of_nanoseconds() -> None:
    book = CodeBook(pa.timestamp("ns"))
    _, known = book.encode(pa.array([0, 253_402_300_799, None], pa.timestamp("s")))
    assert known is not None
    assert known.tolist() == [1, 0, 0]


def test_a_null_within_a_dictionary_is_null() -> None:
    words = pa.DictionaryArray.from_arrays(pa.array([0, 1, None, 0]), pa.array(["a", None]))
    _, known = CodeBook(pa.large_string()).encode(words)
    assert known is not None
    assert known.tolist() == [1, 0, 0, 1]


def test_run_ends_are_decoded() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3, 6], ["a", None, "b"])
    assert plain_array(runs).to_pylist() == ["a", "a", None, "b", "b", "b"]
    plain = pa.array(["a", "b"])
    found = joined(CodeBook(pa.large_string()), runs, plain)
    assert [sum(column) for column in zip(*found, strict=True)] == [2, 3]
    assert plain_array(runs.slice(1, 3)).to_pylist() == ["a", None, "b"]


def test_encodings_are_not_part_of_the_stored_type() -> None:
    assert stored_type(pa.dictionary(pa.int8(), pa.large_string())) == pa.large_string()
    assert stored_type(pa.run_end_encoded(pa.int16(), pa.int8())) == pa.int8()
    assert stored_type(pa.string_view()) == pa.string()
    assert stored_type(pa.dictionary(pa.int8(), pa.binary_view())) == pa.binary()
    assert stored_type(pa.list_(pa.int8())) == pa.list_(pa.int8())


def test_only_interned_values_are_ever_forgotten() -> None:
    numbers, words = CodeBook(pa.int64()), CodeBook(pa.large_string())
    assert not numbers.crowded
    assert numbers.nbytes == 0
    numbers.forget([])
    texts = pa.array([str(i) for i in range(5000)])
    codes, _ = words.encode(texts)
    assert words.crowded
    grown = words.nbytes
    words.forget([codes[:10], codes[5:20]])
    assert words.nbytes < grown
    again, _ = words.encode(texts)
    assert again[:20].tolist() == codes[:20].tolist()
    assert not set(again[20:].tolist()) & set(codes.tolist())
