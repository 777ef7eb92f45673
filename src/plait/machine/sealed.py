"""JSON objects with a checksum, for small files that other processes read.

A file may be cut off, changed by a failing disk, or come from another version. The checksum tells
the first two from the third, whose fields it does not know. A text without one was written before
there were checksums, and is taken as it is.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from typing import Any

from plait.errors import SourceError

_CHECKSUM = "checksum"


def sealed(fields: Mapping[str, Any]) -> str:
    """An object as one line of JSON with its checksum.

    >>> unsealed(sealed({"number": 3, "plan": None}))
    {'number': 3, 'plan': None}
    """
    return json.dumps({**fields, _CHECKSUM: _sum(fields)})


def unsealed(text: str) -> dict[str, Any]:
    """The object in what `sealed` returned, or SourceError.

    >>> unsealed(sealed({"number": 3}).replace("3", "4", 1))
    Traceback (most recent call last):
    plait.errors.SourceError: its checksum is wrong: it was damaged
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SourceError(f"it is no JSON: {error}" if text.strip() else "it is empty") from None
    if not isinstance(found, dict):
        raise SourceError(f"it is a {type(found).__name__}, not an object of JSON")
    expected = found.pop(_CHECKSUM, None)
    try:
        damaged = expected is not None and expected != _sum(found)
    except RecursionError:
        raise SourceError("it is nested too deeply") from None
    if damaged:
        raise SourceError("its checksum is wrong: it was damaged")
    return found


def _sum(fields: Mapping[str, Any]) -> str:
    """JSON brings numbers, texts and the order of names back as they were, so this is stable."""
    return f"{zlib.crc32(json.dumps(fields).encode()):08x}"
