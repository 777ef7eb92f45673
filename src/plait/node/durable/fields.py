"""Check plain data against the fields of a dataclass, before it is believed.

JSON that others wrote may have any type anywhere. What fits the annotations of a dataclass can be
added up, compared and shown without surprises: numbers are finite and can be floats, and texts,
lists and objects are what they should be, down to what they hold.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from plait.query.reading import shown

Check = Callable[[object], bool]
_LARGE = 2**1000
"""Beyond this, sums would be no floats."""


def wrong_field(kind: type, given: Mapping[str, Any]) -> str | None:
    """What is wrong with the first value that does not fit its field; others' fields are left out.

    >>> from plait.node.reports.history import Past
    >>> wrong_field(Past, {"results": 3, "rows": {"a": 1}, "heat": "?"})
    >>> print(wrong_field(Past, {"results": 3, "rows": {"a": "many"}}))
    its field 'rows' is a dict: {"a": "many"}
    """
    checks = _checks(kind)
    for name, value in given.items():
        if name in checks and not checks[name](value):
            return f"its field {name!r} is a {type(value).__name__}: {shown(value)}"
    return None


@cache
def _checks(kind: type) -> dict[str, Check]:
    return {name: _check(hint) for name, hint in get_type_hints(kind).items()}


def _check(hint: Any) -> Check:
    if hint is bool:  # sums of them are numbers
        return lambda value: isinstance(value, bool) or _is_whole(value)
    simple = {int: _is_whole, float: _is_number, str: lambda value: isinstance(value, str)}
    if hint in simple:
        return simple[hint]
    origin, held = get_origin(hint), get_args(hint)
    if origin is Literal:  # another version may know more words
        return simple[str]
    if origin in (dict, Mapping):
        inner = _check(held[1])
        return lambda value: isinstance(value, dict) and all(map(inner, value.values()))
    if origin in (list, Sequence):
        inner = _check(held[0])
        return lambda value: isinstance(value, list | tuple) and all(map(inner, value))
    return lambda value: True  # whoever takes it apart checks it


def _is_whole(value: object) -> bool:
    return type(value) is int and -_LARGE < value < _LARGE


def _is_number(value: object) -> bool:
    return _is_whole(value) or (type(value) is float and math.isfinite(value))
