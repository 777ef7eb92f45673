"""Encode manifests, which say how arrays make up an engine, as plain data without code.

    plait-engine 1          what it is, and in which format
    LENGTH {...}            JSON: for whom it was written, a table of arrays, the state
    ...                     the bytes of the small arrays, one after the other
    DIGEST                  of all that, to notice damage

The JSON has numbers, texts, lists and dictionaries only; an array is `{"$": 3}`, the third of the
table, which has its type, its shape and where it is: in the bytes behind, or in a file. Which
objects the state becomes is up to the code that reads it (`plait.engine.saved`).

*Correct output.* What is read is what was written, or there is an error: `Unusable` if it is
damaged, of another format, written by another version of the code, for another query or another
state.

*Why no key in the digest.* It is against damage. Against other users there is the folder, which is
private; a process of the same user needs no manifest to do harm.
"""

from __future__ import annotations

import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np

from plait.kernels.jit import Array
from plait.kernels.memory import NotSaved, Saved
from plait.query.query import Query
from plait.query.serde import query_to_dict

FORMAT = 1
_MAGIC = b"plait-engine %d\n"
_DIGEST_BYTES = 20
_ARRAY = "$"
_NUMBERS = "iu"
"""The kinds of arrays that engines have."""

_CODE = ("query", "plan", "kernels", "engine", "tuning.py")

Place = dict[str, Any]
"""The place of an array in a file, in the terms of whoever wrote it."""


class Unusable(Exception):
    """A cached engine cannot be used, and why. It is rebuilt from the state store."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The query, processor and state that an engine belongs to."""

    query: str
    number: int
    token: str

    def to_dict(self) -> dict[str, Any]:
        """The subject, and everything that the format of arrays depends on."""
        return {
            "code": code_digest(),
            "numpy": np.__version__,
            "byteorder": sys.byteorder,
            "query": self.query,
            "number": self.number,
            "token": self.token,
        }


@cache
def code_digest() -> str:
    """A digest of the code that engines consist of."""
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in _CODE:
        for file in _modules(files("plait") / part):
            digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()


def _modules(part: Traversable) -> Iterator[Traversable]:
    if part.is_dir():
        for entry in sorted(part.iterdir(), key=lambda entry: entry.name):
            yield from _modules(entry)
    elif part.name.endswith(".py"):
        yield part


def query_digest(query: Query) -> str:
    """A digest of a query."""
    text = json.dumps(query_to_dict(query), sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def encode(
    subject: Subject, state: Saved, place_of: Callable[[Array], Place | None]
) -> list[bytes]:
    """A manifest, in parts; `place_of` says in which file an array is, None if in none."""
    table: list[dict[str, Any]] = []
    values: list[bytes] = []
    end = 0

    def plain(value: object) -> object:
        nonlocal end
        if value is None or isinstance(value, bool | int | float | str):
            return value
        if isinstance(value, np.integer):
            return int(value)
        if isinstance(value, dict):
            return {key: plain(part) for key, part in value.items()}
        if isinstance(value, list | tuple):
            return [plain(part) for part in value]
        if not isinstance(value, np.ndarray) or value.dtype.kind not in _NUMBERS:
            raise NotSaved(f"a {type(value).__name__}")
        entry: dict[str, Any] = {"type": value.dtype.str, "shape": list(value.shape)}
        place = place_of(value)
        if place is None:
            entry["at"] = end
            values.append(value.tobytes())
            end += value.nbytes
        else:
            entry["in"] = place
        table.append(entry)
        return {_ARRAY: len(table) - 1}

    content = {"for": subject.to_dict(), "state": plain(state), "arrays": table}
    text = json.dumps(content, separators=(",", ":")).encode()
    parts = [_MAGIC % FORMAT, b"%d " % len(text), text, *values]
    digest = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        digest.update(part)
    return [*parts, digest.digest()]


def decode(
    raw: bytes, subject: Subject, array_in: Callable[[Place, tuple[int, ...], np.dtype[Any]], Array]
) -> Saved:
    """The state in a manifest that was written for this very subject.

    `array_in` returns the array that is in a file. Nothing is believed, and no file looked for,
    before the digest agrees.
    """
    magic = _MAGIC % FORMAT
    if not raw.startswith(magic):
        raise Unusable("no manifest of this format")
    body, digest = memoryview(raw)[:-_DIGEST_BYTES], raw[-_DIGEST_BYTES:]
    if hashlib.blake2b(body, digest_size=_DIGEST_BYTES).digest() != digest:
        raise Unusable("a damaged manifest")
    length, _, _ = bytes(body[len(magic) : len(magic) + 20]).partition(b" ")
    start = len(magic) + len(length) + 1
    content = json.loads(bytes(body[start : start + int(length)]))
    values = body[start + int(length) :]
    if content["for"] != subject.to_dict():
        raise Unusable("a manifest for something else")
    arrays = [_array(entry, values, array_in) for entry in content["arrays"]]

    def filled(value: object) -> object:
        if isinstance(value, dict):
            if value.keys() == {_ARRAY}:
                return arrays[value[_ARRAY]]
            return {key: filled(part) for key, part in value.items()}
        return [filled(part) for part in value] if isinstance(value, list) else value

    state = filled(content["state"])
    assert isinstance(state, dict), "a state is a dictionary"
    return state


def _array(
    entry: dict[str, Any],
    values: memoryview,
    array_in: Callable[[Place, tuple[int, ...], np.dtype[Any]], Array],
) -> Array:
    dtype, shape = np.dtype(entry["type"]), tuple(int(n) for n in entry["shape"])
    if dtype.kind not in _NUMBERS or min(shape, default=0) < 0:
        raise Unusable("an array of no known kind")
    if "in" in entry:
        return array_in(entry["in"], shape, dtype)
    return np.frombuffer(values, dtype, math.prod(shape), int(entry["at"])).reshape(shape).copy()
