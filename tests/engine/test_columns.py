"""Payload columns against plain lists: every Arrow type comes out of a window as it went in."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from plait.engine import columns
from plait.engine.columns import (
    BytesColumn,
    FixedColumn,
    TooManyBytes,
    byte_strings,
    fixed_array,
    fixed_values,
    payload_column,
    validity,
)
from plait.kernels.gather import copy_bytes
from plait.kernels.jit import Bytes, Ints, Positions
from plait.kernels.ring import Ring, first_positions
from plait.tuning import USUAL, Tuning

INTEGERS = (0, 1, -1, None, 5, 127, -128)
COUNTS = (0, 1, None, 5, 127)
FLOATS = (0.0, -0.0, 1.5, None, float("nan"), float("inf"), float("-inf"))
DECIMALS = (Decimal("0.00"), Decimal("-1.25"), None, Decimal("123.45"), Decimal("-999.99"))
TEXTS = ("", "a", None, "ab", "é\0z", "a long string that fits no word at all", "b")
BLOBS = (b"", b"a", None, b"\0\xff", b"a longer string of bytes than a word holds")

VALUES: dict[pa.DataType, Sequence[object]] = {
    pa.int8(): INTEGERS,
    pa.int16(): (*INTEGERS, 2**15 - 1, -(2**15)),
    pa.int32(): (*INTEGERS, 2**31 - 1, -(2**31)),
    pa.int64(): (*INTEGERS, 2**63 - 1, -(2**63)),
    pa.uint8(): (*COUNTS, 255),
    pa.uint16(): (*COUNTS, 2**16 - 1),
    pa.uint32(): (*COUNTS, 2**32 - 1),
    pa.uint64(): (*COUNTS, 2**64 - 1),
    pa.float16(): FLOATS,
    pa.float32(): FLOATS,
    pa.float64(): (*FLOATS, 5e-324, 1.7976931348623157e308),
    pa.bool_(): (True, False, None, False, False),
    pa.date32(): INTEGERS,
    pa.date64(): (0, None, 86_400_000, -86_400_000),
    pa.time32("s"): COUNTS,
    pa.time32("ms"): COUNTS,
    pa.time64("us"): COUNTS,
    pa.time64("ns"): (*COUNTS, 86_399_999_999_000),
    pa.timestamp("s"): INTEGERS,
    pa.timestamp("ms", "UTC"): INTEGERS,
    pa.timestamp("us", "Asia/Tokyo"): INTEGERS,
    pa.timestamp("ns"): (1_000, None, -2_000),
    pa.duration("s"): INTEGERS,
    pa.duration("us"): INTEGERS,
    pa.month_day_nano_interval(): ((1, 2, 3), None, (-1, 0, -(2**40)), (0, 0, 0)),
    pa.decimal32(5, 2): DECIMALS,
    pa.decimal64(5, 2): DECIMALS,
    pa.decimal128(5, 2): DECIMALS,
    pa.decimal128(38, 0): (Decimal(10**38 - 1), None, Decimal(-(10**38) + 1), Decimal(7)),
    pa.decimal256(50, 2): DECIMALS,
    pa.string(): TEXTS,
    pa.large_string(): TEXTS,
    pa.binary(): BLOBS,
    pa.large_binary(): BLOBS,
    pa.binary(3): (b"abc", None, b"\0\0\0", b"\xff\0\xff"),
    pa.null(): (None,),
    pa.list_(pa.int32()): ([1, 2], [], None, [None], [3]),
    pa.large_list(pa.string()): (["a", ""], [], None, [None, "b"]),
    pa.list_(pa.int8(), 2): ([1, 2], None, [3, None]),
    pa.list_view(pa.int64()): ([1, 2], [], None, [3]),
    pa.struct([("x", pa.int64()), ("y", pa.string())]): (
        {"x": 1, "y": "a"},
        None,
        {"x": None, "y": ""},
    ),
    pa.list_(pa.struct([("x", pa.list_(pa.bool_()))])): ([{"x": [True]}], None, [], [{"x": None}]),
    pa.map_(pa.string(), pa.int64()): ([("a", 1)], [], None, [("b", None), ("c", 2)]),
    pa.dictionary(pa.int8(), pa.string()): ("a", None, "b", "a"),
}
EVERY_TYPE = pytest.mark.parametrize("type_", VALUES, ids=str)


def array(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    return pa.array([], type_) if not values else pa.array(list(values), type_)


def shown(values: pa.Array) -> list[str]:
    """The values, so that NaN equals NaN and -0.0 does not equal 0.0."""
    return list(map(repr, values.to_pylist()))


class Model:
    """A payload column in its ring, as a base window uses it, and the list it stands for."""

    def __init__(
        self, type_: pa.DataType, first_id: int = 0, longest: int = USUAL.string_bytes
    ) -> None:
        self.type = type_
        self.ring = Ring(tuning=Tuning(first_id=first_id, string_bytes=longest))
        self.column = payload_column(self.ring, "c", type_)
        self.values: list[object] = []

    def write(self, values: pa.Array) -> None:
        self.ring.reserve(len(values))
        self.column.write(values, self.ring.extend(len(values)))
        self.values += shown(values)

    def drop(self, n: int) -> None:
        self.ring.drop(n)
        self.ring.shrink()
        self.column.drop()
        self.values = self.values[n:]

    def check(self, order: Sequence[int]) -> None:
        places = first_positions(self.ring.header, 0, len(self.ring))
        positions: Positions = places[np.array(order, np.int64)]
        gathered = self.column.gather(positions)
        gathered.validate(full=True)
        assert gathered.type == self.type
        assert shown(gathered) == [self.values[i] for i in order]

    def check_all(self) -> None:
        n = len(self.values)
        self.check(range(n))
        self.check([i for i in (n - 1, 0, 0, n // 2, n // 2) if 0 <= i < n])


def run_of(values: Sequence[object], type_: pa.DataType, n: int, start: int) -> pa.Array:
    """`n` values from the `start`-th on, over and over, as a slice of a longer array."""
    cycle = [values[(start + i) % len(values)] for i in range(-3, n + 2)]
    return array(cycle, type_).slice(3, n)


@EVERY_TYPE
def test_values_come_out_as_they_went_in_while_the_ring_grows_turns_and_shrinks(
    type_: pa.DataType,
) -> None:
    model = Model(type_, 0xFFFF_FFD0)
    model.check_all()
    steps = [(3, 0), (50, 20), (1, 0), (40, 30), (30, 44), (0, 0), (300, 2), (5, 320), (60, 10)]
    for start, (added, dropped) in enumerate(steps):
        model.write(run_of(VALUES[type_], type_, added, start))
        model.check_all()
        model.drop(dropped)
        model.check_all()


@EVERY_TYPE
def test_nulls_that_come_late_and_nulls_only(type_: pa.DataType) -> None:
    known = [v for v in VALUES[type_] if v is not None] or [None]
    model = Model(type_)
    for values in (known * 3, [None] * 4, known * 30, [None]):
        model.write(array(values, type_))
    model.check_all()
    model.drop(len(known) * 3 + 2)
    model.write(array(known, type_))
    model.check_all()


@EVERY_TYPE
def test_a_column_without_rows(type_: pa.DataType) -> None:
    model = Model(type_)
    model.check([])
    model.write(array([], type_))
    model.check([])
    model.write(array([VALUES[type_][0]], type_))
    model.drop(1)
    model.check([])


def test_an_extension_type_keeps_its_name() -> None:
    values = pa.array([b"0" * 16, None, b"1" * 16], pa.binary(16)).cast(pa.uuid())
    model = Model(pa.uuid())
    model.write(values)
    model.write(values.slice(1))
    model.drop(1)
    model.check_all()


@pytest.mark.parametrize(
    "type_", [pa.string(), pa.binary(), pa.list_(pa.int64()), pa.large_string()], ids=str
)
def test_memory_stays_flat_while_rows_come_and_go(type_: pa.DataType) -> None:
    rows = [["x"] * 50, ["y"] * 10, [], None] * 25
    if not pa.types.is_list(type_):
        strings = pa.array([None if r is None else "".join(r) for r in rows]).cast(type_)
    else:
        strings = pa.array([None if r is None else [len(r)] * 8 for r in rows], type_)
    model, sizes = Model(type_), []
    for _ in range(300):
        model.write(strings)
        if len(model.values) > 500:
            model.drop(100)
        sizes.append(model.column.nbytes + model.ring.nbytes)
    assert max(sizes) == max(sizes[:50]) < 150_000
    model.check_all()


def test_arrays_are_let_go_when_their_last_row_is_dropped() -> None:
    model = Model(pa.list_(pa.int8()))
    for _ in range(3):
        model.write(array([[1]] * 10, model.type))
    sizes = [model.column.nbytes]
    for dropped in (9, 1, 10, 10):
        model.drop(dropped)
        sizes.append(model.column.nbytes)
    full = sizes[0]
    assert sizes == [full, full, full * 2 // 3, full // 3, 0]


@pytest.mark.slow
@pytest.mark.parametrize("length", [1, 10, 100, 341, 1000])
def test_the_heap_has_room_for_what_is_written(
    length: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kernels check no bounds: writing beyond the heap destroys the memory of others."""

    def checked(data: Bytes, starts: Ints, lengths: Ints, target: Bytes, where: int) -> Ints:
        assert where + lengths.sum() <= len(target), "beyond the heap"
        return copy_bytes(data, starts, lengths, target, where)

    monkeypatch.setattr(columns, "copy_bytes", checked)
    for live in (1, 3, 1000 // length + 1, 1300 // length + 1):
        model = Model(pa.string())
        for i in range(2 * live + 3):
            model.write(array([chr(97 + i % 26) * length], pa.string()))
            if i >= live:
                model.drop(1)
        model.check_all()


def test_one_string_larger_than_everything_before_it() -> None:
    model = Model(pa.string())
    for text in ("a", "b" * 5000, "c", "d" * 50_000, "", "e"):
        model.write(array([text], pa.string()))
        model.check_all()
    model.drop(4)
    model.write(array(["f" * 70_000], pa.string()))
    model.check_all()


def test_a_null_may_have_bytes() -> None:
    """Arrow leaves open what lies under a null."""
    offsets = pa.py_buffer(np.array([0, 2, 5, 6], np.int32))
    data, bitmap = pa.py_buffer(b"abXYZc"), pa.py_buffer(bytes([0b101]))
    values = pa.Array.from_buffers(pa.string(), 3, [bitmap, offsets, data])
    assert values.to_pylist() == ["ab", None, "c"]
    model = Model(pa.string())
    model.write(values)
    model.check_all()


def test_strings_beyond_one_array_must_be_gathered_in_parts() -> None:
    for type_ in (pa.string(), pa.binary(), pa.large_string(), pa.large_binary()):
        model = Model(type_, longest=10)
        model.write(pa.array(["12345", "67890", "x"]).cast(type_))
        model.check([0, 1])
        if type_ in (pa.large_string(), pa.large_binary()):
            model.check([0, 1, 2, 0, 1, 2])
            continue
        for order in ([0, 1, 2], [0, 0, 2]):
            with pytest.raises(TooManyBytes):
                model.check(order)


FIXED = [t for t in VALUES if isinstance(payload_column(Ring(), "c", t), FixedColumn)]


def test_what_is_kept_in_one_gather() -> None:
    """Values of a fixed width of up to 16 bytes, decimals of the usual width among them."""
    assert pa.decimal128(5, 2) in FIXED
    assert pa.month_day_nano_interval() in FIXED
    assert all(t in FIXED for t in VALUES if pa.types.is_primitive(t))


@pytest.mark.parametrize("type_", FIXED, ids=str)
def test_fixed_values_and_fixed_arrays_are_inverse(type_: pa.DataType) -> None:
    values = run_of(VALUES[type_], type_, 20, 2)
    again = fixed_array(type_, fixed_values(values), validity(values))
    assert shown(again) == shown(values)
    again.validate(full=True)


def test_validity_is_none_without_nulls() -> None:
    values = pa.array([None, 1, 2])
    assert validity(values.slice(1)) is None
    found = validity(values)
    assert found is not None
    assert found.tolist() == [0, 1, 1]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_byte_strings_are_where_arrow_says(type_: pa.DataType) -> None:
    strings = pa.array(["", "ab", None, "c", "é"]).cast(type_)
    for values in (strings, strings.slice(1, 3), pa.nulls(3, type_)):
        data, starts, lengths = byte_strings(values)
        found = [data[s : s + n].tobytes() for s, n in zip(starts, lengths, strict=True)]
        wanted = [v.encode() if isinstance(v, str) else v or b"" for v in values.to_pylist()]
        assert found == wanted
    assert len(byte_strings(array([], type_))[1]) == 0


def test_the_heap_of_a_small_string_column_is_never_overrun() -> None:
    ring = Ring()
    column = BytesColumn(ring, "s", pa.string())
    for letter, sizes in zip("abcd", ([250] * 4, [300], [340, 1], [2000]), strict=True):
        values = [letter * size for size in sizes]
        ring.reserve(len(sizes))
        runs = ring.extend(len(sizes))
        column.write(pa.array(values), runs)
        saved = column.to_state()
        assert saved["end"] - saved["base"] <= column.nbytes
        places = [p for run in runs for p in range(run.start, run.stop)]
        assert column.gather(np.array(places, np.int32)).to_pylist() == values
        ring.drop(len(sizes) - 1)
