"""Quote names of streams and columns, so that a text has one meaning only.

A name that is a plain word is written as it is. Every other one (with spaces, dots, quotes or
operators in it, empty, or with letters that only look like those of the Latin alphabet) stands in
backquotes, as in Spark SQL; a backquote within it is doubled. So two names never give one text,
and a name cannot be read as an operator: `a.x + a.y` is a sum, and ``a.`x + a.y` `` a column.
"""

from __future__ import annotations

import re

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"`((?:[^`]|``)*)`")
_TOKEN = re.compile(r"`(?:[^`]|``)*`|[()]|[^\s(),`]+|`")


def quoted(name: str) -> str:
    """Write a name in a text.

    >>> quoted("price"), quoted("x + a.y"), quoted("a`b"), quoted("")
    ('price', '`x + a.y`', '`a``b`', '``')
    """
    return name if _WORD.fullmatch(name) else "`" + name.replace("`", "``") + "`"


def unquoted(token: str) -> str:
    """Read the name from a token of `tokens`.

    >>> unquoted("price"), unquoted("`a``b`")
    ('price', 'a`b')
    """
    found = _QUOTED.fullmatch(token)
    return found[1].replace("``", "`") if found else token


def tokens(text: str) -> list[str]:
    """Split a text into names and parentheses; commas and spaces separate names.

    >>> tokens("((a `b c`), d)")
    ['(', '(', 'a', '`b c`', ')', 'd', ')']
    """
    return _TOKEN.findall(text)


def bare(text: str) -> str:
    """Write a text as it was before names were quoted.

    >>> bare("a.`x y` > 1")
    'a.x y > 1'
    """
    return _QUOTED.sub(lambda found: found[1].replace("``", "`"), text)
