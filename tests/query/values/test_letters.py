"""Letters that Unicode got since the version that Python 3.11 knows."""

from __future__ import annotations

import pyarrow as pa

from plait.query.values.strings import initcap
from plait.query.values.text import lower, upper


def test_letters_newer_than_python() -> None:
    small, capital = "ɤ-\U00010d70-\u1c8a-é", "\ua7cb-\U00010d50-\u1c89-É"
    assert upper(pa.array([small, capital])).to_pylist() == [capital] * 2
    assert lower(pa.array([small, capital])).to_pylist() == [small] * 2


def test_words_begin_with_capitals() -> None:
    given = pa.array(["ɤ\ua7cb é", "\ua7cbɤ Éa", "straße ǆ"])
    assert initcap(given).to_pylist() == ["\ua7cbɤ É", "\ua7cbɤ Éa", "Straße ǅ"]
