"""Reading plain data, as JSON gives it: every refusal names the place (`$.streams[0].name`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence

from plait.errors import PlaitError, did_you_mean


class Reader:
    """Reads plain data; raises `error` for data that is not valid.

    >>> from plait.errors import QueryError
    >>> Reader(QueryError).whole({"delay": True}["delay"], "$.delay")
    Traceback (most recent call last):
    plait.errors.QueryError: $.delay is true, not a whole number
    """

    def __init__(self, error: type[PlaitError]) -> None:
        self._error = error

    def version(self, value: object, known: int, what: str) -> None:
        """Refuse data of another version; before anything else, as its fields may be others."""
        if isinstance(value, Mapping) and "version" in value:
            version = value["version"]
            if type(version) is not int or version != known:
                raise self._error(
                    f"$.version is {shown(version)}; this release reads version {known}",
                    remedy=f"write the {what} again with this release",
                )

    def fields(self, value: object, path: str, names: Sequence[str]) -> Mapping[str, object]:
        """An object with exactly these fields."""
        found = self.mapping(value, path)
        if missing := [name for name in names if name not in found]:
            raise self._error(f"{path} lacks the field {missing[0]!r}")
        if unknown := [name for name in found if name not in names]:
            raise self._error(
                f"{path} has an unknown field {unknown[0]!r}",
                remedy=did_you_mean(str(unknown[0]), names),
            )
        return found

    def mapping(self, value: object, path: str) -> Mapping[str, object]:
        """An object."""
        if not isinstance(value, Mapping):
            raise self._error(f"{path} is {shown(value)}, not an object")
        return value

    def items(self, value: object, path: str) -> list[tuple[object, str]]:
        """The elements of a list, each with its place."""
        if not isinstance(value, list | tuple):
            raise self._error(f"{path} is {shown(value)}, not a list")
        return [(item, f"{path}[{n}]") for n, item in enumerate(value)]

    def text(self, value: object, path: str, what: str = "a text") -> str:
        """A string."""
        if not isinstance(value, str):
            raise self._error(f"{path} is {shown(value)}, not {what}")
        return value

    def whole(self, value: object, path: str, what: str = "a whole number") -> int:
        """An integer."""
        # bool is an int to Python, but not to a reader of JSON.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._error(f"{path} is {shown(value)}, not {what}")
        return value

    def whole64(self, value: object, path: str) -> int:
        """An integer of 64 bits, as columns and counters have them."""
        found = self.whole(value, path)
        if not -(2**63) <= found < 2**63:
            raise self._error(f"{path} is {shown(value)}, not a whole number of 64 bits")
        return found

    def number(self, value: object, path: str) -> float:
        """A finite number, not negative."""
        if isinstance(value, int | float) and not isinstance(value, bool):
            try:
                found = float(value)
            except OverflowError:
                found = math.inf
            if 0 <= found < math.inf:
                if found != value:
                    raise self._error(f"{path} is {shown(value)}, more digits than a double has")
                return found
        raise self._error(f"{path} is {shown(value)}, not a number >= 0")


def shown(value: object) -> str:
    """A value as it would be written, shortened for an error."""
    try:
        text = json.dumps(value, ensure_ascii=False, default=repr)
    except (RecursionError, TypeError, ValueError):
        # Nested too deeply, with keys that JSON does not have, or within itself.
        text = f"a {type(value).__name__} that cannot be shown"
    return text if len(text) <= 40 else f"{text[:37]}..."
