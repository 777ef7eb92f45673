r"""Regular expressions, where those of Java, of Python and of RE2 mean the same.

Spark matches with `java.util.regex`. A pattern is read here piece by piece; what Java, Python and
RE2 agree about, or what can be said in the words of each, is translated, and everything else is
refused by name. Accepted are characters and their escapes, `.`, sets such as `[^a-z\d_]`, `\d \w
\s` and their opposites, groups, `|`, quantifiers (greedy and lazy), `^`, `$`, `\A`, `\z`, and
`(?i)` at the beginning.

*Where they differ.* Java ends lines not only at `\n`, which matters to `.` and `$`; its `\d`, `\w`,
`\s` and `(?i)` know ASCII only; after an empty match it goes on half a character later. Whether a
string matches at all is asked of RE2, which reads a column at once, where its lines cannot end
otherwise; what a match contains is asked of Python, which searches as Java does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from plait.query.values.forms import Unfit, Value, as_text, as_whole, by_value

_LINE_ENDS = "\n\r\u0085\u2028\u2029"
_ANY = f"[^{_LINE_ENDS}]"
_DOLLAR = r"(?:(?=(?:\r\n|[\r\u0085\u2028\u2029])?\Z)|(?<!\r)(?=\n\Z))"
_NAMED = {
    "d": "0-9",
    "w": "a-zA-Z0-9_",
    "s": r"\x20\t\n\x0b\x0c\r",
}
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_REMEDY = "compute it with Spark before the join, in a column"
_MOST_REPEATS = 1000
"""The most repetitions in RE2."""


@dataclass(frozen=True, slots=True)
class JavaPattern:
    """A Java pattern, translated for Python and for RE2.

    `lines` says whether the ends of lines matter, `folded` whether `(?i)` stands before it,
    `captures` how many groups it has, `nested` whether one of them is repeated, and `empty` whether
    it may match nothing.
    """

    python: re.Pattern[str]
    re2: str
    lines: bool
    folded: bool
    captures: int
    nested: bool
    empty: bool


class _Reader:
    """One pass over a pattern: `alternatives` reads up to a closing parenthesis."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines = False
        self.folded = False
        self.captures = 0
        self.nested = False
        self.empty = False

    def refuse(self, what: str) -> Unfit:
        return Unfit(f"{what} in the pattern {self.text!r} is not read as Java reads it; {_REMEDY}")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def take(self, sign: str) -> bool:
        if self.text.startswith(sign, self.at):
            self.at += len(sign)
            return True
        return False

    def whole(self) -> tuple[str, str]:
        self.folded = self.take("(?i)")
        python, re2, self.empty = self.alternatives()
        if self.at < len(self.text):
            raise self.refuse("')' without '('")
        if self.folded and not self.text.isascii():
            raise self.refuse("(?i) with letters beyond ASCII")
        return python, re2

    def alternatives(self) -> tuple[str, str, bool]:
        """Python's and RE2's words for what stands here, and whether it may match nothing, at any
        place.
        """
        python, re2, empty = self.sequence()
        while self.take("|"):
            more, other, nothing = self.sequence()
            python, re2, empty = f"{python}|{more}", f"{re2}|{other}", empty or nothing
        return python, re2, empty

    def sequence(self) -> tuple[str, str, bool]:
        python, re2, empty = "", "", True
        while self.peek() not in ("", "|", ")"):
            one, other, nothing = self.repeated()
            python, re2, empty = python + one, re2 + other, empty and nothing
        return python, re2, empty

    def repeated(self) -> tuple[str, str, bool]:
        before = self.captures
        python, re2, empty, repeatable = self.atom()
        found = re.compile(r"(?:[*+?]|\{(\d+)(,(\d*))?\})\??").match(self.text, self.at)
        if found is None:
            return python, re2, empty
        if not repeatable:
            raise self.refuse(f"{found[0]} after nothing that can be repeated")
        if empty:
            raise self.refuse(f"{found[0]} after something that may be empty")
        if any(int(n) > _MOST_REPEATS for n in (found[1], found[3]) if n):
            raise self.refuse(f"more than {_MOST_REPEATS} repetitions")
        self.at = found.end()
        if self.peek() in ("*", "+", "?", "{"):
            raise self.refuse(f"{self.peek()} after {found[0]}")
        self.nested |= self.captures > before and found[0] != "?"
        nothing = found[0][0] in "*?" or (found[1] is not None and int(found[1]) == 0)
        return python + found[0], re2 + found[0], nothing

    def atom(self) -> tuple[str, str, bool, bool]:
        sign = self.peek()
        self.at += 1
        if sign == "(":
            return self.group()
        if sign == "[":
            members = self.members()
            return members, members, False, True
        if sign == ".":
            self.lines = True
            return _ANY, _ANY, False, True
        if sign == "^":
            return r"\A", r"\A", False, False
        if sign == "$":
            self.lines = True
            return _DOLLAR, r"\z", False, False
        if sign == "\\":
            return self.escape()
        if sign in "*+?{":
            raise self.refuse(f"{sign} after nothing that can be repeated")
        return _exactly(sign), _exactly(sign), False, True

    def group(self) -> tuple[str, str, bool, bool]:
        if self.take("?:"):
            opening = "(?:"
        elif self.peek() == "?":
            raise self.refuse(f"({self.text[self.at : self.at + 2]}...)")
        else:
            opening = "("
            self.captures += 1
        python, re2, empty = self.alternatives()
        if not self.take(")"):
            raise self.refuse("'(' without ')'")
        return f"{opening}{python})", f"{opening}{re2})", empty, True

    def escape(self) -> tuple[str, str, bool, bool]:
        sign = self.peek()
        self.at += 1
        if sign.lower() in _NAMED:
            named = f"[{'^' if sign.isupper() else ''}{_NAMED[sign.lower()]}]"
            return named, named, False, True
        if sign == "A":
            return r"\A", r"\A", False, False
        if sign == "z":
            return r"\Z", r"\z", False, False
        one = _exactly(self.literal(sign))
        return one, one, False, True

    def literal(self, sign: str) -> str:
        """The character that a backslash and this sign stand for."""
        if sign in _CONTROL:
            return _CONTROL[sign]
        if not sign or (sign.isascii() and sign.isalnum()):
            raise self.refuse(f"\\{sign}")
        return sign

    def members(self) -> str:
        """The inside of [...], in the same words for both."""
        inside = "^" if self.take("^") else ""
        if self.peek() in ("]", "&"):
            raise self.refuse(f"[{inside}{self.peek()}...]")
        while not self.take("]"):
            low = self.member()
            if self.peek() == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self.member()
                if len(low) != 1 or len(high) != 1 or ord(low) > ord(high):
                    raise self.refuse("such a range in [...]")
                inside += f"{_inside(low)}-{_inside(high)}"
            else:
                inside += low if len(low) > 1 else _inside(low)
        return f"[{inside}]"

    def member(self) -> str:
        """One character, or the characters of \\d, \\w or \\s."""
        sign = self.peek()
        self.at += 1
        if sign == "":
            raise self.refuse("'[' without ']'")
        if sign == "[" or (sign == "&" and self.peek() == "&"):
            raise self.refuse(f"{sign} within [...]")
        if sign != "\\":
            return sign
        sign = self.peek()
        self.at += 1
        return _NAMED[sign] if sign in _NAMED else self.literal(sign)


def _exactly(sign: str) -> str:
    return sign if sign.isascii() and sign.isalnum() else _inside(sign)


def _inside(sign: str) -> str:
    r"""One character as Python and RE2 both read it: both know \x7f, and plain ones beyond."""
    return sign if ord(sign) > 127 else f"\\x{ord(sign):02x}"


@lru_cache(maxsize=256)
def java_pattern(text: str) -> JavaPattern:
    r"""Translate a Java pattern, or raise Unfit where its meaning would differ.

    >>> java_pattern(r"(a|b)+\.$").re2
    '(a|b)+\\x2e\\z'
    """
    reader = _Reader(text)
    python, re2 = reader.whole()
    flags = re.ASCII | (re.IGNORECASE if reader.folded else 0)
    prefix = "(?i)" if reader.folded else ""
    return JavaPattern(
        re.compile(python, flags),
        prefix + re2,
        reader.lines,
        reader.folded,
        reader.captures,
        reader.nested,
        reader.empty,
    )


def _constant_pattern(value: Value) -> JavaPattern | None:
    if pt.is_null(value.type):
        return None
    text = as_text(value)
    if not isinstance(text, pa.Scalar):
        raise Unfit("the pattern is a string literal; write it in quotes")
    return java_pattern(text.as_py()) if text.is_valid else None


def _searched(pattern: Value) -> JavaPattern | None:
    """A pattern of which the groups matter."""
    java = _constant_pattern(pattern)
    if java is not None and java.nested:
        raise Unfit(f"a repeated group in {java.re2!r} may end differently; {_REMEDY}")
    return java


def _repeatedly(pattern: Value) -> JavaPattern | None:
    """A pattern that is sought again and again."""
    java = _searched(pattern)
    if java is not None and java.empty:
        # Java then goes on in the middle of a character that has 32 bits in UTF-16.
        raise Unfit(f"the pattern {java.re2!r} may match nothing; {_REMEDY}")
    return java


def rlike(value: Value, pattern: Value) -> Value:
    """Whether the pattern matches somewhere in the string.

    >>> rlike(pa.array(["AAPL", "MSFT"]), pa.scalar("^A+")).to_pylist()
    [True, False]
    """
    text, java = as_text(value), _constant_pattern(pattern)
    if java is None:
        return pa.nulls(len(text), pa.bool_())
    ends = java.lines and pc.any(pc.match_substring_regex(text, f"[{_LINE_ENDS}]")).as_py()
    wide = java.folded and not pc.all(pc.string_is_ascii(text), min_count=0).as_py()
    if ends or wide:
        return by_value(lambda s: java.python.search(s) is not None, pa.bool_(), text)
    return pc.match_substring_regex(text, pattern=java.re2)


def regexp_extract(value: Value, pattern: Value, group: Value | None = None) -> Value:
    r"""Extract a group of the first match (group 1 by default), empty without a match.

    >>> regexp_extract(pa.array(["100-200"]), pa.scalar(r"(\d+)-(\d+)"), pa.scalar(2)).to_pylist()
    ['200']
    """
    text, java = as_text(value), _searched(pattern)
    number = pa.scalar(1) if group is None else as_whole(group)
    if java is None or not number.is_valid:
        return pa.nulls(len(text), pa.string())
    if not isinstance(number, pa.Scalar) or not 0 <= number.as_py() <= java.captures:
        raise Unfit(f"the pattern has the groups 0 to {java.captures}; name one of them")
    index = number.as_py()

    def extracted(subject: str) -> str:
        found = java.python.search(subject)
        return (found[index] or "") if found else ""

    return by_value(extracted, pa.string(), text)


def regexp_substr(value: Value, pattern: Value) -> Value:
    """Return the first match, null without one."""
    text, java = as_text(value), _searched(pattern)
    if java is None:
        return pa.nulls(len(text), pa.string())

    def first(subject: str) -> str | None:
        found = java.python.search(subject)
        return found[0] if found else None

    return by_value(first, pa.string(), text)


def regexp_count(value: Value, pattern: Value) -> Value:
    """Count the matches."""
    text, java = as_text(value), _repeatedly(pattern)
    if java is None:
        return pa.nulls(len(text), pa.int32())
    return by_value(lambda s: sum(1 for _ in _matches(java, s)), pa.int32(), text)


def regexp_replace(value: Value, pattern: Value, replacement: Value) -> Value:
    r"""Every match replaced; `$1` in the replacement is the first group.

    >>> regexp_replace(pa.array(["a1b22"]), pa.scalar(r"(\d+)"), pa.scalar("<$1>")).to_pylist()
    ['a<1>b<22>']
    """
    text, java, other = as_text(value), _repeatedly(pattern), as_text(replacement)
    if not isinstance(other, pa.Scalar):
        raise Unfit("the replacement is a string literal; write it in quotes")
    if java is None or not other.is_valid:
        return pa.nulls(len(text), pa.string())
    expand = _expansion(other.as_py(), java.captures)

    def replaced(subject: str) -> str:
        parts, last = [], 0
        for found in _matches(java, subject):
            parts += [subject[last : found.start()], expand(found)]
            last = found.end()
        return "".join(parts) + subject[last:]

    return by_value(replaced, pa.string(), text)


def _matches(java: JavaPattern, text: str) -> Iterator[re.Match[str]]:
    """All matches, as Java finds them: after an empty one it goes on one character later."""
    at = 0
    while at <= len(text) and (found := java.python.search(text, at)):
        yield found
        at = found.end() + (found.end() == found.start())


def _expansion(text: str, captures: int) -> Callable[[re.Match[str]], str]:
    """Expand a replacement text for a match."""
    pieces: list[str | int] = []
    at = 0
    while at < len(text):
        sign = text[at]
        following = text[at + 1 : at + 2]
        if sign == "\\" and following:
            pieces.append(following)
            at += 2
        elif sign == "$" and following.isdecimal() and following.isascii():
            number, at = int(following), at + 2
            while text[at : at + 1].isdecimal() and number * 10 + int(text[at]) <= captures:
                number, at = number * 10 + int(text[at]), at + 1
            if number > captures:
                raise Unfit(f"the pattern has no group {number}; write \\$ for a dollar sign")
            pieces.append(number)
        elif sign in "\\$":
            raise Unfit(rf"{sign} alone in a replacement means nothing; write \{sign}")
        else:
            pieces.append(sign)
            at += 1
    return lambda found: "".join(p if isinstance(p, str) else found[p] or "" for p in pieces)
