"""Names of files for whatever people call things."""

from __future__ import annotations

import hashlib

LONGEST_NAME = 120
"""Bytes of a stream's name in the name of a file; most systems allow 255 for all of it."""


def file_name(title: str, longest: int = LONGEST_NAME) -> str:
    """A name for a file in a directory, another one for every other title.

    Letters, digits, `_`, `-`, blanks and dots stay, except a dot at the beginning; all else becomes
    its bytes in hexadecimal, also `%` itself, so that the title can be read back. What is too long
    ends in `%~` and a hash, which no shorter title has.

    >>> file_name("trades"), file_name("../x"), file_name("a%b"), file_name("/é")
    ('trades', '%2E.%2Fx', 'a%25b', '%2Fé')
    """
    encoded = "".join(
        c if c.isalnum() or c in "_- " or (c == "." and i) else _hexadecimal(c)
        for i, c in enumerate(title)
    )
    if len(encoded.encode()) <= longest and title:
        return encoded
    whole = hashlib.sha256(title.encode("utf-8", "surrogatepass")).hexdigest()
    kept = encoded.encode()[: max(longest - len(whole) - 2, 0)].decode(errors="ignore")
    return f"{kept.rpartition('%')[0] if '%' in kept[-2:] else kept}%~{whole}"


def _hexadecimal(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
