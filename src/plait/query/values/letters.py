"""Capital and small letters as Spark knows them: by Unicode 17, whatever version Python has.

Python 3.11 knows Unicode 14. The letters below got a counterpart since then; all others are
Python's matter. `tests/spark/test_letters.py` compares every character with Spark.
"""

from __future__ import annotations

_CAPITALS = {
    0x019B: 0xA7DC, 0x0264: 0xA7CB, 0x1C8A: 0x1C89, 0xA7CD: 0xA7CC, 0xA7CF: 0xA7CE, 0xA7D3: 0xA7D2,
    0xA7D5: 0xA7D4, 0xA7DB: 0xA7DA,
    **{0x10D70 + i: 0x10D50 + i for i in range(22)},
    **{0x16EBB + i: 0x16EA0 + i for i in range(25)},
}  # fmt: skip
_SMALL = {capital: small for small, capital in _CAPITALS.items()}


def upper_case(text: str) -> str:
    """The text in capital letters; a letter may become several.

    >>> upper_case("groß")
    'GROSS'
    """
    return text.upper().translate(_CAPITALS)


def lower_case(text: str) -> str:
    """The text in small letters."""
    return text.lower().translate(_SMALL)


def capitalised(word: str) -> str:
    """The first letter as at the beginning of a title, the others small.

    >>> capitalised("ǆÄ")
    'ǅä'
    """
    first = ord(word[0])
    if first in _CAPITALS or first in _SMALL:
        return chr(_CAPITALS.get(first, first)) + lower_case(word[1:])
    return word.capitalize().translate(_SMALL)
