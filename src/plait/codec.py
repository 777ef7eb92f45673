"""Encode dataclasses as plain JSON types, and decode them again.

The annotations of the fields are the format:

    dataclass                   an object, one member per field
    tuple, list, NamedTuple     a list
    frozenset                   a sorted list
    dict[str, ...]              an object; also dict[int, ...], whose names are the numbers
    Mapping[...]                a list of [key, value]: keys may be of any type
    ... | None, Literal, str, int, float, bool, Any

Both forms of a mapping are read, whichever is written. `stored` gives a field another name, or
keeps it out of what is stored.

What is decoded is checked against the annotations. Damage is a SourceError that names the place
(`moves[1].groups[0]`), not a strange value.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from plait.errors import SourceError

T = TypeVar("T")
Read = Callable[[Any], Any]
Write = Callable[[Any], Any]

_STORED = "stored"
_LARGE = 2**1000
"""Beyond this, sums of whole numbers would be no floats."""


def stored(name: str | None) -> dict[str, str | None]:
    """Metadata of a field that is stored under another name, or, with None, not at all.

    It is used as in `field(metadata=stored("adapt"))`.
    """
    return {_STORED: name}


def to_plain(value: object) -> Any:
    """Encode a dataclass in lists, dicts, numbers and strings.

    >>> from plait.groups.moves.places import Place
    >>> to_plain(Place((0, 2), spread=1))
    {'processors': [0, 2], 'spread': 1, 'since': 0}
    """
    if is_dataclass(value):
        kind: Any = type(value)
        return {name: write(getattr(value, f.name)) for name, f, write in _layout(kind)}
    if isinstance(value, tuple | list):
        return [to_plain(part) for part in value]
    if isinstance(value, frozenset):
        return sorted(to_plain(part) for part in value)
    if isinstance(value, Mapping):
        return [[to_plain(key), to_plain(part)] for key, part in value.items()]
    return value


def _members(value: object) -> Any:
    """Encode mappings as objects, also those within."""
    if isinstance(value, Mapping):
        return {key: _members(part) for key, part in value.items()}
    if isinstance(value, tuple | list):
        return [_members(part) for part in value]
    return to_plain(value)


def from_plain(kind: type[T], data: object, *, any_version: bool = False) -> T:
    """Decode what `to_plain` returned; anything else is a SourceError.

    With `any_version`, an earlier or later version may have written it: fields that are missing
    have their defaults, and unknown ones are left out. Numbers must then be finite, so that they
    can be added up.

    >>> from plait.groups.moves.places import Place
    >>> from_plain(Place, {"processors": [0, 2], "spread": 1, "since": 0})
    Place(processors=(0, 2), spread=1, since=0)
    >>> from_plain(Place, {"processors": [0], "spread": 1})
    Traceback (most recent call last):
    plait.errors.SourceError: a Place lacks the field 'since'
    >>> from_plain(Place, {"processors": [0], "heat": 1}, any_version=True)
    Place(processors=(0,), spread=None, since=0)
    >>> from_plain(Place, {"processors": [0, "x"]}, any_version=True)
    Traceback (most recent call last):
    plait.errors.SourceError: processors[1] cannot be 'x'
    """
    hint: Any = kind
    try:
        read: T = _reader(hint, any_version)(data)
    except _Damage as damage:
        raise SourceError(damage.described()) from None
    return read


def to_tagged(value: object, tag: str) -> dict[str, Any]:
    """Encode one of several dataclasses, with the name of its class under `tag`."""
    return {tag: type(value).__name__, **to_plain(value)}


def from_tagged(kinds: Iterable[type[T]], data: object, tag: str) -> T:
    """Decode what `to_tagged` returned, as one of these dataclasses."""
    known = {kind.__name__: kind for kind in kinds}
    name = data.get(tag) if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or name not in known:
        raise SourceError(f"{name!r} is no {tag} that this version knows")
    return from_plain(known[name], {key: part for key, part in data.items() if key != tag})


class _Damage(Exception):
    """A value that does not fit; the place is completed on the way up."""

    def __init__(self, value: object, said: str = "", known: str = "") -> None:
        super().__init__()
        self.value, self.said, self.known, self.place = value, said, known, ""

    def within(self, outer: str) -> _Damage:
        separator = "." if self.place and not self.place.startswith("[") else ""
        self.place = f"{outer}{separator}{self.place}"
        return self

    def described(self) -> str:
        if not self.said:
            known = f" (known: {self.known})" if self.known else ""
            return f"{self.place or 'it'} cannot be {reprlib.repr(self.value)}{known}"
        return f"{self.place}: {self.said}" if self.place else self.said


@cache
def _layout(kind: type) -> tuple[tuple[str, Field[Any], Write], ...]:
    """The fields that are stored: their names there, and how they are written."""
    hints = get_type_hints(kind)
    named = ((f.metadata.get(_STORED, f.name), f) for f in fields(kind))
    return tuple((name, f, _writer(hints[f.name])) for name, f in named if name is not None)


def _writer(hint: Any) -> Write:
    if _is_plain(hint):
        return lambda value: value
    return _members if _has_objects(hint) else to_plain


def _is_plain(hint: Any) -> bool:
    """Whether such values are plain already, so that nothing is copied."""
    if get_origin(hint) in (dict, list, Union, UnionType):
        return all(map(_is_plain, get_args(hint)))
    return hint in (Any, str, int, float, bool, NoneType) or get_origin(hint) is Literal


def _has_objects(hint: Any) -> bool:
    return get_origin(hint) is dict or any(map(_has_objects, get_args(hint)))


@cache
def _reader(hint: Any, any_version: bool) -> Read:
    origin, inner = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return _object(hint, any_version)
    if origin in (Union, UnionType):
        kinds = [part for part in inner if part is not NoneType]
        if all(get_origin(part) is Literal for part in kinds):
            words = tuple(word for part in kinds for word in get_args(part))
            return _either([_one_of(words)], NoneType in inner)
        return _either([_reader(part, any_version) for part in kinds], NoneType in inner)
    if isinstance(hint, type) and issubclass(hint, tuple) and hasattr(hint, "_fields"):
        row = _row([_reader(part, any_version) for part in get_type_hints(hint).values()])
        return lambda data: hint(*row(data))
    if origin in (tuple, list, frozenset):
        if origin is tuple and inner[-1] is not Ellipsis:
            return _row([_reader(part, any_version) for part in inner])
        return _items(origin, _reader(inner[0], any_version))
    if origin in (dict, Mapping):
        return _pairs(inner[0] is int, *(_reader(part, any_version) for part in inner))
    if origin is Literal:
        return _one_of(inner)
    if hint is float:
        return _finite if any_version else _float
    if hint is int:
        return _checked(_is_whole)
    if hint is bool and any_version:  # sums of them are numbers
        return _checked(lambda data: isinstance(data, bool) or _is_whole(data))
    if hint is Any or hint is object:
        return lambda data: data
    return _checked(lambda data: type(data) is hint)


def _checked(fits: Callable[[Any], bool]) -> Read:
    def read(data: Any) -> Any:
        if not fits(data):
            raise _Damage(data)
        return data

    return read


def _one_of(known: tuple[Any, ...]) -> Read:
    def read(data: Any) -> Any:
        if not any(type(data) is type(one) and data == one for one in known):
            raise _Damage(data, known=", ".join(map(str, known)))
        return data

    return read


def _is_whole(data: object) -> bool:
    return type(data) is int and -_LARGE < data < _LARGE


def _float(data: Any) -> float:
    if type(data) is float:
        return data
    if not _is_whole(data):
        raise _Damage(data)
    return float(data)


def _finite(data: Any) -> float:
    if not math.isfinite(found := _float(data)):
        raise _Damage(data)
    return found


def _either(readers: Sequence[Read], optional: bool) -> Read:
    """Read as the first of several types that fits."""
    *others, last = readers

    def read(data: Any) -> Any:
        if data is None and optional:
            return None
        for one in others:
            with suppress(_Damage):
                return one(data)
        return last(data)

    return read


def _row(readers: Sequence[Read]) -> Read:
    """Read a list of a known length."""

    def read(data: Any) -> tuple[Any, ...]:
        if not isinstance(data, list | tuple) or len(data) != len(readers):
            raise _Damage(data)
        return tuple(_placed(one, data[n], n) for n, one in enumerate(readers))

    return read


def _items(kind: type, inner: Read) -> Read:
    def read(data: Any) -> Any:
        if not isinstance(data, list | tuple):
            raise _Damage(data)
        return kind(_placed(inner, part, n) for n, part in enumerate(data))

    return read


def _placed(read: Read, data: Any, place: object) -> Any:
    try:
        return read(data)
    except _Damage as damage:
        raise damage.within(f"[{place!r}]") from None


def _pairs(numbered: bool, key: Read, inner: Read) -> Read:
    """Read a mapping from an object or from a list of pairs."""
    pair = _row([key, inner])

    def named(name: Any) -> Any:
        # The names in an object of JSON are texts.
        is_number = numbered and type(name) is str and name.isdecimal() and len(name) < 20
        return int(name) if is_number else key(name)

    def read(data: Any) -> dict[Any, Any]:
        if isinstance(data, Mapping):
            return {named(k): _placed(inner, part, k) for k, part in data.items()}
        if not isinstance(data, list | tuple):
            raise _Damage(data)
        return dict(_placed(pair, part, n) for n, part in enumerate(data))

    return read


def _object(kind: Any, any_version: bool) -> Read:
    def read(data: Any) -> Any:
        if not isinstance(data, Mapping):
            raise _Damage(data, f"{reprlib.repr(data)} is no {kind.__name__}")
        # Looked up now: a dataclass may have fields of its own type.
        layout, needed = _readers(kind, any_version)
        if missing := sorted(needed - data.keys()):
            raise _Damage(data, f"a {kind.__name__} lacks the field {missing[0]!r}")
        found = {}
        for name, part in data.items():
            if name in layout:
                field, inner = layout[name]
                try:
                    found[field] = inner(part)
                except _Damage as damage:
                    raise damage.within(name) from None
            elif not any_version:
                raise _Damage(data, f"a {kind.__name__} has no field {name!r}")
        return kind(**found)

    return read


@cache
def _readers(kind: type, any_version: bool) -> tuple[dict[str, tuple[str, Read]], frozenset[str]]:
    """How the fields of a dataclass are read, by stored name, and the names that must be there."""
    hints, layout = get_type_hints(kind), _layout(kind)
    found = {name: (f.name, _reader(hints[f.name], any_version)) for name, f, _ in layout}
    needed = (
        name
        for name, f, _ in layout
        if not any_version or (f.default is MISSING and f.default_factory is MISSING)
    )
    return found, frozenset(needed)
