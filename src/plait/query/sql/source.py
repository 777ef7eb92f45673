"""The text of a query: its tokens, its syntax tree, and positions in it."""

from __future__ import annotations

import bisect
import functools
import itertools
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ClassVar, NoReturn, ParamSpec, TypeVar

import sqlglot
from sqlglot import Token, TokenType, exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, TokenError
from sqlglot.parsers.spark import SparkParser

from plait.errors import QueryError, UnsupportedSql
from plait.query.dialect import PLAIN, Dialect


class SparkCalls(Spark):
    """Spark's dialect, in which a call of a function is its name and its arguments, as written."""

    class Parser(SparkParser):
        """The parser without sqlglot's own meaning of functions."""

        FUNCTIONS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {}
        FUNCTION_PARSERS: ClassVar[dict[str, Callable[..., exp.Expr]]] = {
            name: SparkParser.FUNCTION_PARSERS[name]
            for name in (
                *("CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTR", "SUBSTRING"),
                "TRIM",
            )
        }
        """Those whose arguments have a syntax of their own."""


DIALECT = SparkCalls

P = ParamSpec("P")
R = TypeVar("R")


def refusing_endless_nesting(function: Callable[P, R]) -> Callable[P, R]:
    """Wrap a function to raise a Plait error where Python's stack would overflow."""

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            raise UnsupportedSql(
                "an expression of hundreds of levels is not supported",
                line=1,
                column=1,
                remedy="split it, or use IN for long lists",
            ) from None

    return guarded


class SqlText:
    """A text in Spark's dialect of SQL.

    >>> source = SqlText("a.x =\\n b.y")
    >>> source.position(7)
    (2, 2)
    """

    def __init__(self, text: str, *, lead: str = "", dialect: Dialect = PLAIN) -> None:
        """`lead` goes before the text when it is parsed; positions count without it."""
        self.text = text
        self.dialect = dialect
        self.lead = lead
        self.tokens = self._tokenize()
        self._starts = [token.start for token in self.tokens]

    def _tokenize(self) -> list[Token]:
        try:
            return list(sqlglot.tokenize(self.lead + self.text, dialect=DIALECT))
        except TokenError as error:
            # The number after the line is an offset in the whole text.
            found = re.search(r"Missing (.+) from \d+:(\d+)", str(error.__cause__))
            if found is None:
                message, offset = "this text does not end", len(self.text.rstrip())
            else:
                message = f"a {found[1]} without its end"
                offset = int(found[2]) - len(self.lead)
            line, column = self.position(min(offset, len(self.text)))
            raise UnsupportedSql(
                f"syntax error: {message}", line=line, column=column, remedy="close it"
            ) from None

    def position(self, offset: int) -> tuple[int, int]:
        """Return line and column, both from 1, of an offset in the text."""
        before = self.text[: max(offset, 0)]
        return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1

    def parse(self, text: str | None = None) -> list[exp.Expr]:
        """Parse the statements of the text, or of `text` in its place (with the same positions)."""
        try:
            parsed = sqlglot.parse(self.lead + (self.text if text is None else text), DIALECT)
        except ParseError as error:
            detail = error.errors[0] if error.errors else {}
            description = str(detail.get("description") or error)
            before = len(str(detail.get("start_context") or ""))
            at = self._offset_of(detail.get("line"), detail.get("col"), detail.get("highlight"))
            line, column = self.position(at if at is not None else before)
            near = str(detail.get("highlight") or "")
            raise UnsupportedSql(
                f"syntax error{f' near {near!r}' if near else ''}: {_plain(description)}",
                line=line,
                column=column,
                remedy="the text is not SQL as Spark reads it",
            ) from None
        except (IndexError, AttributeError, TypeError, ValueError) as error:
            # sqlglot stumbles over some texts that are no SQL at all.
            raise UnsupportedSql(
                f"syntax error: {error}", line=1, column=1, remedy="the text is not SQL"
            ) from None
        return [statement for statement in parsed if statement is not None]

    def _offset_of(self, line: object, column: object, highlight: object) -> int | None:
        if not (isinstance(line, int) and isinstance(column, int)):
            return None
        lines = (self.lead + self.text).split("\n")[: line - 1]
        end = sum(len(text) + 1 for text in lines) + column
        return max(end - len(str(highlight or "")) - len(self.lead), 0)

    def offset(self, node: exp.Expr) -> int:
        """Find where a node begins: its own mark, or the first of the marks within it."""
        opening = _OPENING.get(type(node), ())
        if isinstance(node, exp.Func) and "start" not in node.meta:
            opening += tuple(node.sql_names())
        marks = _marks(node, "start")
        if marks:
            first = min(marks)
            index = bisect.bisect_left(self._starts, first)
            before = self.tokens[max(index - 4, 0) : index]
            words = [t.start for t in before if t.text.upper() in opening]
            return (words[-1] if words else first) - len(self.lead)
        after = self._end_before(node)
        names = (*opening, node.sql(dialect=DIALECT).split(" ")[0].upper(), node.key.upper())
        for token in self.tokens:
            if token.start >= after and token.text.upper() in names:
                return token.start - len(self.lead)
        return max(after - len(self.lead), 0)

    def _end_before(self, node: exp.Expr) -> int:
        """Find where the part before the node in its parents ends."""
        parent = node.parent
        while isinstance(parent, exp.Expr):
            earlier: list[int] = []
            for child in parent.iter_expressions():
                if child is node:
                    break
                earlier += _marks(child, "end")
            if earlier:
                return max(earlier) + 1
            node, parent = parent, parent.parent
        return 0

    def keyword(self, *words: str) -> int | None:
        """Find one of the keywords outside parentheses, or None."""
        for token in self.outside():
            if token.text.upper().split(" ")[0] in words:
                return token.start - len(self.lead)
        return None

    def outside(self) -> Iterator[Token]:
        """List the tokens outside parentheses."""
        depth = 0
        for token in self.tokens:
            if token.token_type == TokenType.L_PAREN:
                depth += 1
            elif token.token_type == TokenType.R_PAREN:
                depth -= 1
            elif depth == 0:
                yield token

    def adjacent(self, texts: Sequence[str]) -> Iterator[str]:
        """Join string literals that are written side by side.

        The tree does not keep their places. Without a space between them, the two quotes in the
        middle are a quote.
        """
        for i in range(len(self.tokens) - len(texts) + 1):
            run = self.tokens[i : i + len(texts)]
            if [t.text for t in run] == list(texts):
                joined = run[0].text
                for before, token in itertools.pairwise(run):
                    quote = (self.lead + self.text)[token.start]
                    joined += (quote if before.end + 1 == token.start else "") + token.text
                yield joined

    def token_at(self, offset: int) -> int:
        """Find the token that begins at an offset."""
        return max(bisect.bisect_right(self._starts, offset + len(self.lead)) - 1, 0)

    def refuse(
        self,
        what: str,
        where: exp.Expr | int,
        *,
        verdict: str = "is not supported",
        remedy: str = "",
    ) -> NoReturn:
        """Raise UnsupportedSql at a position."""
        offset = where if isinstance(where, int) else self.offset(where)
        line, column = self.position(offset)
        raise UnsupportedSql(f"{what} {verdict}", line=line, column=column, remedy=remedy)

    @contextmanager
    def placing(self, where: exp.Expr | int) -> Iterator[None]:
        """Add the position to errors raised within, keeping their type."""
        try:
            yield
        except UnsupportedSql:
            raise
        except QueryError as error:
            if getattr(error, "placed", False):
                raise
            offset = where if isinstance(where, int) else self.offset(where)
            line, column = self.position(offset)
            located = type(error)(
                f"line {line}, column {column}: {error.message}", remedy=error.remedy
            )
            located.placed = True  # type: ignore[attr-defined]  # read above, nowhere else
            raise located from None


_OPENING: dict[type[exp.Expr], tuple[str, ...]] = {
    exp.Case: ("CASE",),
    exp.Cast: ("CAST", "TRY_CAST"),
    exp.TryCast: ("CAST", "TRY_CAST"),
    exp.Exists: ("EXISTS",),
    exp.Hint: ("/*+",),
    exp.Interval: ("INTERVAL",),
    exp.Lateral: ("LATERAL",),
    exp.Not: ("NOT",),
    exp.Parameter: ("@", "$", "{"),
    exp.Placeholder: ("?", ":"),
    exp.QueryTransform: ("TRANSFORM",),
    exp.Select: ("SELECT",),
    exp.Subquery: ("(",),
    exp.Tuple: ("(",),
    exp.Unnest: ("UNNEST",),
    exp.Values: ("VALUES",),
}
"""The first words of nodes whose position sqlglot does not mark."""


def _marks(node: exp.Expr, which: str) -> list[int]:
    return [int(n.meta[which]) for n in node.walk() if which in n.meta]


def _plain(description: str) -> str:
    """Remove class names from sqlglot's messages."""
    description = re.sub(r"<Token .*?SENTINEL.*?>", "the end", description)
    description = re.sub(r"<Token .*?text: (.*?), line.*?>", r"'\1'", description)
    missing = re.search(r"Required keyword: '\w+' missing for <class '[\w.]*\.(\w+)'>", description)
    if missing:
        return f"something is missing in {missing[1].upper()}"
    return description.split("\n")[0].removesuffix(".")
