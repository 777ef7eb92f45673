"""Types by name."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import SourceError
from plait.local.sources.types import likely_type, parse_type


def test_names_of_types() -> None:
    assert parse_type(" Timestamp ") == pa.timestamp("us")
    assert parse_type("decimal(12,3)") == pa.decimal128(12, 3)


@pytest.mark.parametrize("name", ["dubble", "decimal(3, 5)", "decimal(99, 1)", ""])
def test_unknown_types_list_the_known(name: str) -> None:
    with pytest.raises(SourceError, match=rf"no type {name!r}".replace("(", r"\(")[:12]) as caught:
        parse_type(name)
    assert "known: bool" in caught.value.remedy


def looked_at(column: list[str]) -> pa.DataType | None:
    values = pa.array(column)

    def fits(type_: pa.DataType, a: int, b: int) -> bool:
        try:
            values.slice(a, b - a).cast(type_)
        except pa.ArrowInvalid:
            return False
        return True

    return likely_type(len(column), fits)


@pytest.mark.parametrize(
    ("column", "type_"),
    [
        (["1", "2", "x"], pa.int64()),
        (["1", "2.5", "3", "x"], pa.float64()),
        (["2024-01-01 10:00:00.5", "2024-01-02 10:00:00", "noon"], pa.timestamp("us")),
        (["1"] * 2000 + ["1.5"] * 2000 + ["x"] * 100, pa.float64()),
        (["A", "B", "1"], None),
        (["1", "A"], None),
        (["1"] * 20 + ["A"] * 5, None),
    ],
)
def test_few_misfits_do_not_decide_a_type(column: list[str], type_: pa.DataType | None) -> None:
    assert looked_at(column) == type_
