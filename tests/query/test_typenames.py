"""Arrow types by name where that says all; the rest of it is in test_serde.py."""

from __future__ import annotations

import pyarrow as pa
import pytest

from plait.errors import QueryError
from plait.query.typenames import type_from_data, type_to_data


@pytest.mark.parametrize("zone", ["UTC", "+05:30", "Europe/Berlin", "odd] zone, tz="])
def test_zones(zone: str) -> None:
    type_ = pa.timestamp("us", zone)
    assert type_to_data(type_) == str(type_)
    assert type_from_data(str(type_), "$") == type_


@pytest.mark.parametrize(
    "name", ["", "INT64", "decimal128(39, 0)", "timestamp[m, tz=UTC]", "list<item: int64>"]
)
def test_no_types(name: str) -> None:
    with pytest.raises(QueryError, match=r"^\$\.t is no type"):
        type_from_data(name, "$.t")
