"""How values get into the forms that operators expect."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from plait.query.values.forms import decoded, ints, rows, spread


@pytest.mark.parametrize(
    "encoded",
    [
        pa.array(["a", None, "a"]).dictionary_encode(),
        pc.run_end_encode(pa.array(["a", None, "a"])),
        pa.array(["a", None, "a"], pa.string_view()),
        pa.chunked_array([["a", None], ["a"]]),
        pa.array(["a", None, "a"]),
    ],
)
def test_encodings_are_undone(encoded: pa.Array) -> None:
    assert decoded(encoded).equals(pa.array(["a", None, "a"]))


def test_other_encodings() -> None:
    assert decoded(pa.array([b"ab"], pa.binary(2))).type == pa.binary()
    assert decoded(pa.array([b"ab"], pa.binary_view())).type == pa.binary()
    assert decoded(pa.array([1], pa.int32()).cast(pa.decimal64(12, 2))).type == pa.decimal128(12, 2)
    assert decoded(pa.scalar("a", pa.dictionary(pa.int8(), pa.string()))).type == pa.string()


def test_scalars_are_spread_only_on_demand() -> None:
    column = pa.array([1, 2])
    assert spread(column, 2) is column
    assert spread(pa.scalar(5), 2).to_pylist() == [5, 5]
    assert rows([pa.scalar(1), column]) == 2
    assert rows([pa.scalar(1)]) == 1
    assert ints(pa.array([7, None], pa.timestamp("us"))).tolist() == [7, 0]
