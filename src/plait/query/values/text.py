"""Functions of strings, as in Spark; a position counts characters, the first is 1."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.convert import convert
from plait.query.values.forms import Unfit, Value, as_text, by_row, is_bytes
from plait.query.values.letters import lower_case, upper_case
from plait.query.values.unify import unify


def lower(value: Value) -> Value:
    """Small letters."""
    return _letters(as_text(value), pc.ascii_lower, lower_case)


def upper(value: Value) -> Value:
    """Capital letters; a letter may become several.

    >>> upper(pa.array(["groß"])).to_pylist()
    ['GROSS']
    """
    return _letters(as_text(value), pc.ascii_upper, upper_case)


def _letters(text: Value, fast: Callable[[Value], Value], full: Callable[[str], str]) -> Value:
    # Arrow maps letters beyond ASCII one for one; Spark does not.
    if isinstance(text, pa.Scalar):
        return _letters(pa.repeat(text, 1), fast, full)[0]
    plain = pc.all(pc.string_is_ascii(text), min_count=0).as_py()
    return fast(text) if plain else by_row(full, text.type, text)


def length(value: Value) -> Value:
    """Characters of a string, bytes of a binary.

    >>> length(pa.array(["añ", "", None])).to_pylist()
    [2, 0, None]
    """
    counted = pc.binary_length(value) if is_bytes(value.type) else pc.utf8_length(as_text(value))
    return pc.cast(counted, pa.int64())


def concat(values: Sequence[Value]) -> Value:
    """The strings one after the other, null if one is null; other values become strings first."""
    if any(is_bytes(v.type) for v in values) and all(
        is_bytes(v.type) or pt.is_null(v.type) for v in values
    ):
        common = unify([v.type for v in values])
        empty = pa.scalar(b"", common)
    else:
        values = [convert(v, pa.string()) if not _is_large(v) else v for v in values]
        common = unify([v.type for v in values])
        empty = pa.scalar("", common)
    parts = [convert(v, common) for v in values]
    return pc.binary_join_element_wise(*parts, empty, null_handling="emit_null")


def _is_large(value: Value) -> bool:
    return bool(pt.is_large_string(value.type))


def substring(value: Value, start: Value, count: Value | None = None) -> Value:
    """`count` characters from the 1-based `start`; a negative one counts from the end.

    >>> substring(pa.array(["stream"]), pa.scalar(-3), pa.scalar(2)).to_pylist()
    ['ea']
    """
    text = as_text(value)
    for number in (start, count):
        if number is not None and not (pt.is_integer(number.type) or pt.is_null(number.type)):
            raise Unfit("the start and the length are integers; use CAST(... AS BIGINT)")
    fixed = [n for n in (start, count) if n is None or isinstance(n, pa.Scalar)]
    if len(fixed) == 2 and all(n is None or n.is_valid for n in fixed):
        first, many = start.as_py(), None if count is None else count.as_py()
        begin = max(first - 1, 0) if first >= 0 else first
        end = None if many is None else begin + many
        if many is not None and many <= 0:
            return pc.if_else(pc.is_valid(text), pa.scalar("", text.type), text)
        if end is not None and (end > 2**31 or (first < 0 <= end)):
            end = None
        if abs(begin) < 2**31:
            return pc.utf8_slice_codeunits(text, start=begin, stop=end)
    every = (text, start) if count is None else (text, start, count)
    return by_row(_substring, text.type, *every)


def _substring(text: str, start: int, count: int | None = None) -> str:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = len(text) if count is None else begin + count
    return text[max(begin, 0) : max(end, 0)]


def like(value: Value, pattern: Value, escape: Value | None = None) -> Value:
    r"""Whether the string is of the form of the pattern: `%` any characters, `_` any one.

    The character `escape` (a backslash, if none is named) makes the next one ordinary.

    >>> like(pa.array(["AAPL", "MSFT"]), pa.scalar("A%")).to_pylist()
    [True, False]
    """
    text = as_text(value)
    if not isinstance(pattern, pa.Scalar) or not (
        pt.is_null(pattern.type) or isinstance(pattern.as_py(), str | None)
    ):
        raise Unfit("the pattern of LIKE is a string literal; write it in quotes")
    if not pattern.is_valid:
        return pa.scalar(None, pa.bool_())
    pieces = like_pieces(pattern.as_py(), "\\" if escape is None else escape.as_py())
    words = [piece for piece in pieces if isinstance(piece, str)]
    shape = ["word" if isinstance(piece, str) else piece for piece in pieces]
    if shape in ([], ["word"]):
        return pc.equal(text, pa.scalar("".join(words), text.type))
    if shape == ["word", ANY]:
        return pc.starts_with(text, pattern=words[0])
    if shape == [ANY, "word"]:
        return pc.ends_with(text, pattern=words[0])
    if shape == [ANY, "word", ANY]:
        return pc.match_substring(text, pattern=words[0])
    # RE2 reads this escape of every character as the character itself.
    regex = "".join(
        ".*" if p is ANY else "." if p is ONE else "".join(f"\\x{{{ord(c):x}}}" for c in p)
        for p in pieces
    )
    return pc.match_substring_regex(text, pattern=rf"\A(?s:{regex})\z")


class _Wildcard:
    def __init__(self, sign: str) -> None:
        self.sign = sign


ANY, ONE = _Wildcard("%"), _Wildcard("_")


def like_pieces(pattern: str, escape: object = "\\") -> list[Any]:
    r"""A LIKE pattern as literal words and the wildcards ANY and ONE.

    >>> [getattr(p, "sign", p) for p in like_pieces(r"a\%b%_c")]
    ['a%b', '%', '_', 'c']
    """
    if not isinstance(escape, str) or len(escape) != 1:
        raise Unfit("the escape of LIKE is one character in quotes")
    pieces: list[Any] = []
    signs = iter(pattern)
    for given in signs:
        sign = given
        if sign == escape:
            sign = next(signs, "")
            if sign not in ("%", "_", escape):
                name = "a backslash" if escape == "\\" else escape
                raise Unfit(f"in LIKE, {name} goes before %, _ or {escape}; write it twice")
        elif sign == "%":
            if not (pieces and pieces[-1] is ANY):
                pieces.append(ANY)
            continue
        elif sign == "_":
            pieces.append(ONE)
            continue
        if pieces and isinstance(pieces[-1], str):
            pieces[-1] += sign
        else:
            pieces.append(sign)
    return pieces
