from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plait.errors import SourceError
from plait.machine.sealed import sealed, unsealed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NAMES = st.text().filter(lambda name: name != "checksum")


@given(st.dictionaries(NAMES, VALUES, max_size=4))
def test_everything_comes_back(fields: dict[str, object]) -> None:
    assert unsealed(sealed(fields)) == fields


def test_a_text_without_a_checksum_is_taken_as_it_is() -> None:
    assert unsealed('{"a": 1}') == {"a": 1}


@pytest.mark.parametrize("text", ["", " ", "{", "1", "[]", '{"a": 1, "checksum": "0"}'])
def test_anything_else_is_named(text: str) -> None:
    with pytest.raises(SourceError, match=r"empty|no JSON|not an object|checksum"):
        unsealed(text)
