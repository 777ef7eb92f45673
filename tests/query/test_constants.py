"""Constants that JSON has no value for; the rest of it is in test_serde.py."""

from __future__ import annotations

import datetime as dt
import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import QueryError
from plait.query.constants import constant_from_data, constant_to_data

CONSTANTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.text(),
    st.binary(),
    st.floats(allow_nan=False),
    st.decimals(allow_nan=False, allow_infinity=False),
    st.dates(),
    st.times(),
    st.datetimes(),
    st.datetimes(
        dt.datetime(1800, 1, 1),
        dt.datetime(2200, 1, 1),
        timezones=st.timezones(),
        allow_imaginary=False,
    ),
    st.timedeltas(),
)


@given(CONSTANTS)
def test_round_trip(value: object) -> None:
    read = constant_from_data(json.loads(json.dumps(constant_to_data(value))), "$")
    assert type(read) is type(value)
    assert str(read) == str(value)
    assert read == value


def test_two_kinds_in_one() -> None:
    with pytest.raises(QueryError, match=r"\$ has an unknown field 'bytes'"):
        constant_from_data({"decimal": "1", "bytes": ""}, "$")
    assert constant_from_data({"decimal": "1"}, "$") == Decimal(1)
