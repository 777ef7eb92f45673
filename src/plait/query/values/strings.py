"""More functions of strings, as in Spark: parts, padding, replacing and finding.

Positions count characters and begin at 1. Where Arrow has no kernel for it, a function is computed
once for each distinct string of the column (`by_value`).
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from plait.query.values.convert import convert
from plait.query.values.forms import (
    Unfit,
    Value,
    as_text,
    as_whole,
    by_value,
    is_bytes,
    rows,
    spread,
)
from plait.query.values.letters import capitalised

_WORDS = re.compile(r"[^ ]+")


def concat_ws(separator: Value, *values: Value) -> Value:
    """Join the strings that are not null with a separator; other values become strings.

    >>> concat_ws(pa.scalar("-"), pa.array(["a", None]), pa.array(["b", "c"])).to_pylist()
    ['a-b', 'c']
    """
    between = convert(as_text(separator), pa.string())
    count = rows((separator, *values))
    nothing, pieces = pa.scalar(""), []
    before: Value = pa.repeat(pa.scalar(False), count)
    for value in values:
        part = spread(convert(value, pa.string()), count)
        there = pc.is_valid(part)
        # The separator stands between two that are there.
        pieces += [pc.if_else(pc.and_(before, there), between, nothing), pc.fill_null(part, "")]
        before = pc.or_(before, there)
    joined = pc.binary_join_element_wise(*pieces, nothing, nothing) if pieces else nothing
    return pc.if_else(pc.is_valid(between), joined, pa.scalar(None, pa.string()))


def right(value: Value, count: Value) -> Value:
    """Return the last characters of a string, none if the number is not positive."""
    return by_value(
        lambda s, n: s[-n:] if n > 0 else "", pa.string(), as_text(value), as_whole(count)
    )


def octet_length(value: Value) -> Value:
    """The bytes of a string (as UTF-8) or of a binary.

    >>> octet_length(pa.array(["añ"])).to_pylist()
    [3]
    """
    return pc.cast(pc.binary_length(value if is_bytes(value.type) else as_text(value)), pa.int32())


def bit_length(value: Value) -> Value:
    """The bits of a string (as UTF-8) or of a binary."""
    return pc.multiply(octet_length(value), pa.scalar(8, pa.int32()))


def trimmed(side: str, value: Value, characters: Value | None = None) -> Value:
    """Without the characters (spaces, if none are named) at the `left`, the `right` or `both`.

    >>> trimmed("left", pa.array(["xyx"]), pa.scalar("x")).to_pylist()
    ['yx']
    """
    text = as_text(value)
    signs = pa.scalar(" ") if characters is None else as_text(characters)
    if isinstance(signs, pa.Scalar) and not isinstance(text, pa.Scalar):
        if not signs.is_valid:
            return pa.nulls(len(text), text.type)
        kernel = {"left": pc.utf8_ltrim, "right": pc.utf8_rtrim, "both": pc.utf8_trim}[side]
        return kernel(text, characters=signs.as_py()) if signs.as_py() else text
    strip = {"left": str.lstrip, "right": str.rstrip, "both": str.strip}[side]
    return by_value(lambda s, c: strip(s, c) if c else s, pa.string(), text, signs)


def pad(side: str, value: Value, width: Value, filling: Value | None = None) -> Value:
    """A string of exactly `width` characters: filled up at the `left` or `right`, or cut off.

    >>> pad("left", pa.array(["7", "12345"]), pa.scalar(3), pa.scalar("0")).to_pylist()
    ['007', '123']
    """

    def padded(text: str, size: int, fill: str) -> str:
        missing = max(size - len(text), 0) if fill else 0
        added = (fill * (missing // max(len(fill), 1) + 1))[:missing]
        return (added + text if side == "left" else text + added)[: max(size, 0)]

    text, sizes = as_text(value), as_whole(width)
    fill = pa.scalar(" ") if filling is None else as_text(filling)
    simple = isinstance(sizes, pa.Scalar) and isinstance(fill, pa.Scalar)
    if simple and not isinstance(text, pa.Scalar) and sizes.is_valid and fill.is_valid:
        size, sign = sizes.as_py(), fill.as_py()
        if len(sign) == 1 and 0 < size < 2**20:
            kernel = pc.utf8_lpad if side == "left" else pc.utf8_rpad
            longer = kernel(text, width=size, padding=sign)
            return pc.utf8_slice_codeunits(longer, start=0, stop=size)
    return by_value(padded, pa.string(), text, sizes, fill)


def replace(value: Value, old: Value, new: Value | None = None) -> Value:
    """Every occurrence of a string replaced; an empty one occurs nowhere.

    >>> replace(pa.array(["abab"]), pa.scalar("b"), pa.scalar("-")).to_pylist()
    ['a-a-']
    """
    text, sought = as_text(value), as_text(old)
    other = pa.scalar("") if new is None else as_text(new)
    constant = all(isinstance(v, pa.Scalar) and v.is_valid and v.as_py() for v in (sought, other))
    if constant and not isinstance(text, pa.Scalar):
        return pc.replace_substring(text, pattern=sought.as_py(), replacement=other.as_py())
    return by_value(lambda s, a, b: s.replace(a, b) if a else s, pa.string(), text, sought, other)


def translate(value: Value, old: Value, new: Value) -> Value:
    """Characters of `old` replaced by those of `new` in the same place, or left out.

    >>> translate(pa.array(["banana"]), pa.scalar("an"), pa.scalar("o")).to_pylist()
    ['booo']
    """

    def changed(text: str, sought: str, given: str) -> str:
        table: dict[int, str] = {}
        for i, sign in enumerate(sought):
            table.setdefault(ord(sign), given[i : i + 1])
        return text.translate(table)

    return by_value(changed, pa.string(), as_text(value), as_text(old), as_text(new))


def repeat(value: Value, count: Value) -> Value:
    """Repeat a string `times` times."""
    return by_value(lambda s, n: s * max(n, 0), pa.string(), as_text(value), as_whole(count))


def locate(sought: Value, value: Value, start: Value | None = None) -> Value:
    """Where the first string occurs in the second, from `start` on; 0 if it does not.

    >>> locate(pa.scalar("a"), pa.array(["bar", "xyz"])).to_pylist()
    [2, 0]
    """
    part, text = as_text(sought), as_text(value)
    if start is None:
        constant = isinstance(part, pa.Scalar) and part.is_valid
        if constant and pc.all(pc.string_is_ascii(text), min_count=0).as_py():
            found = pc.find_substring(text, pattern=part.as_py())
            return pc.add(pc.cast(found, pa.int32()), pa.scalar(1, pa.int32()))
        return by_value(lambda a, s: s.find(a) + 1, pa.int32(), part, text)
    begin = as_whole(start)
    found = by_value(
        lambda a, s, n: 0 if n < 1 else s.find(a, n - 1) + 1 if a else 1,
        pa.int32(),
        part,
        text,
        pc.fill_null(begin, 0),
    )
    # Without a start it is nowhere, even where there is no string.
    return pc.if_else(pc.is_valid(begin), found, pa.scalar(0, pa.int32()))


def split_part(value: Value, delimiter: Value, index: Value) -> Value:
    """Return the part at an index between delimiters, from the end if negative; empty beyond them.

    >>> split_part(pa.array(["a.b.c"]), pa.scalar("."), pa.scalar(-1)).to_pylist()
    ['c']
    """

    def part(text: str, sign: str, number: int) -> str | None:
        parts = text.split(sign) if sign else [text]
        if number == 0:
            return None
        place = number - 1 if number > 0 else len(parts) + number
        return parts[place] if 0 <= place < len(parts) else ""

    return by_value(part, pa.string(), as_text(value), as_text(delimiter), as_whole(index))


def substring_index(value: Value, delimiter: Value, count: Value) -> Value:
    """Return the text before the delimiter at `count`, or after it from the end if negative.

    >>> substring_index(pa.array(["a.b.c"]), pa.scalar("."), pa.scalar(2)).to_pylist()
    ['a.b']
    """

    def before(text: str, sign: str, number: int) -> str:
        if not sign or number == 0:
            return ""
        at = -1 if number > 0 else len(text) + 1
        for _ in range(abs(number)):
            at = text.find(sign, at + 1) if number > 0 else _last(text, sign, at - 1)
            if at < 0:
                return text
        return text[:at] if number > 0 else text[at + len(sign) :]

    return by_value(before, pa.string(), as_text(value), as_text(delimiter), as_whole(count))


def _last(text: str, sign: str, start: int) -> int:
    """The last occurrence that begins at `start` or before."""
    return text.rfind(sign, 0, max(start + len(sign), 0)) if start >= 0 else -1


def affix(kind: str, value: Value, part: Value) -> Value:
    """Whether the string begins with, ends with or contains another."""
    if is_bytes(value.type):
        raise Unfit("only a string has this function; use CAST(... AS STRING)")
    text, sought = as_text(value), as_text(part)
    if isinstance(sought, pa.Scalar) and sought.is_valid and not isinstance(text, pa.Scalar):
        kernels = {"start": pc.starts_with, "end": pc.ends_with, "in": pc.match_substring}
        return kernels[kind](text, pattern=sought.as_py())
    tests = {"start": str.startswith, "end": str.endswith, "in": str.__contains__}
    return by_value(tests[kind], pa.bool_(), text, sought)


def initcap(value: Value) -> Value:
    """The first letter of each word a capital, the others small; only spaces part words.

    >>> initcap(pa.array(["sPARK sql"])).to_pylist()
    ['Spark Sql']
    """
    return by_value(
        lambda s: _WORDS.sub(lambda word: capitalised(word[0]), s), pa.string(), as_text(value)
    )


def levenshtein(left: Value, right: Value) -> Value:
    """The fewest insertions, deletions and replacements of characters from one to the other."""
    return by_value(_distance, pa.int32(), as_text(left), as_text(right))


def _distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        corner, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, corner + (x != y))
    return row[-1]


def ascii_code(value: Value) -> Value:
    """The number of the first character; 0 for an empty string."""
    return by_value(lambda s: ord(s[0]) if s else 0, pa.int32(), as_text(value))


def character(value: Value) -> Value:
    """The character of a number modulo 256; nothing for a negative one."""
    return by_value(lambda n: "" if n < 0 else chr(n & 255), pa.string(), as_whole(value))


def reverse(value: Value) -> Value:
    """The characters from the last to the first."""
    return pc.utf8_reverse(as_text(value))


def find_in_set(value: Value, listed: Value) -> Value:
    """The place of a string in a list with commas, from 1; 0 if it is not there."""

    def place(text: str, commas: str) -> int:
        parts = commas.split(",")
        return 0 if "," in text or text not in parts else parts.index(text) + 1

    return by_value(place, pa.int32(), as_text(value), as_text(listed))


def overlay(value: Value, new: Value, start: Value, count: Value | None = None) -> Value:
    """The string with `count` characters from `start` on replaced; by default as many as are new.

    >>> overlay(pa.array(["Spark SQL"]), pa.scalar("_"), pa.scalar(6)).to_pylist()
    ['Spark_SQL']
    """

    def placed(text: str, given: str, first: int, many: int) -> str:
        size = many if many >= 0 else len(given)
        before = text[: max(first - 1, 0)]
        after = first + size
        begin = after - 1 if after > 0 else max(len(text) + after, 0) if after < 0 else 0
        return before + given + text[begin:]

    many = pa.scalar(-1) if count is None else as_whole(count)
    return by_value(placed, pa.string(), as_text(value), as_text(new), as_whole(start), many)
