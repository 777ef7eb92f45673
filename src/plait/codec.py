"""Encode dataclasses as plain JSON types, and decode them again.

What is decoded is checked against the types of the fields: damage is an error, not a strange value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from plait.errors import SourceError

T = TypeVar("T")


def to_plain(value: object) -> Any:
    """Encode a dataclass in lists, dicts, numbers and strings.

    >>> from plait.groups.moves.places import Place
    >>> to_plain(Place((0, 2), spread=1))
    {'processors': [0, 2], 'spread': 1, 'since': 0}
    """
    if is_dataclass(value):
        return {f.name: to_plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, tuple):
        return [to_plain(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(to_plain(part) for part in value)
    if isinstance(value, Mapping):
        return [[to_plain(key), to_plain(part)] for key, part in value.items()]
    return value


def from_plain(kind: type[T], data: object) -> T:
    """The inverse of `to_plain`; what is no such value is a SourceError.

    >>> from plait.groups.moves.places import Place
    >>> from_plain(Place, {"processors": [0, 2], "spread": 1, "since": 0})
    Place(processors=(0, 2), spread=1, since=0)
    >>> from_plain(Place, {"processors": [0], "spread": 1})
    Traceback (most recent call last):
    plait.errors.SourceError: a Place lacks the field 'since'
    """
    read: T = _read(kind, data, kind.__name__)
    return read


def _read(kind: Any, data: Any, where: str) -> Any:
    origin, inner = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _read_fields(kind, data)
    if origin in (Union, UnionType):
        if data is None and NoneType in inner:
            return None
        (only,) = (k for k in inner if k is not NoneType)
        return _read(only, data, where)
    if origin is tuple and isinstance(data, list | tuple):
        if inner[-1] is Ellipsis:
            return tuple(_read(inner[0], part, where) for part in data)
        if len(inner) == len(data):
            return tuple(_read(k, part, where) for k, part in zip(inner, data, strict=True))
    if origin is frozenset and isinstance(data, list):
        return frozenset(_read(inner[0], part, where) for part in data)
    if origin is Mapping and isinstance(data, list):
        key_kind, kind_of_value = inner
        return {
            _read(key_kind, key, where): _read(kind_of_value, part, where) for key, part in data
        }
    if origin is Literal and data in inner:
        return data
    if kind is float and type(data) in (int, float):
        return float(data)
    if kind is object or (origin is None and type(data) is kind):
        return data
    raise SourceError(f"{where} cannot be {data!r}")


def _read_fields(kind: Any, data: Any) -> Any:
    if not isinstance(data, dict):
        raise SourceError(f"{data!r} is no {kind.__name__}")
    hints = _hints(kind)
    if missing := sorted(hints.keys() - data.keys()):
        raise SourceError(f"a {kind.__name__} lacks the field {missing[0]!r}")
    if unknown := sorted(data.keys() - hints.keys()):
        raise SourceError(f"a {kind.__name__} has no field {unknown[0]!r}")
    read = {name: _read(hint, data[name], name) for name, hint in hints.items()}
    return kind(**read)


@cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)
