"""How the command line speaks: errors, tables and numbers, in colour only on a terminal."""

from __future__ import annotations

import datetime as dt
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

LONGEST_CELL = 40


@cache
def console(*, stderr: bool = False) -> Console:
    """The terminal; lines are never wrapped or marked up by themselves."""
    from rich.console import Console

    return Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)


def say(text: str = "", style: str | None = None) -> None:
    """Print a line."""
    out = console()
    out.print(encodable(text, out.encoding), style=style)


def show_error(message: str, remedy: str) -> None:
    """Print an error, and on the next line what to do about it."""
    out = console(stderr=True)
    if sys.stdout is not None:
        sys.stdout.flush()
    out.print(f"error: {one_line(message, out.encoding)}", style="bold red")
    if remedy:
        out.print(f"  {one_line(remedy, out.encoding)}")


def encodable(text: str, encoding: str = "utf-8") -> str:
    """The text with escapes in place of what the terminal cannot show, such as half characters.

    >>> encodable("a\\udc80"), encodable("→", "ascii")
    ('a\\\\udc80', '\\\\u2192')
    """
    return text.encode(encoding, "backslashreplace").decode(encoding)


def one_line(text: str, encoding: str = "utf-8") -> str:
    """The text without line breaks and control characters, which a name may have.

    >>> one_line("a\\nb \\x1b[31m")
    'a\\\\nb \\\\x1b[31m'
    """
    kept = (c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return encodable("".join(kept), encoding)


def on_terminal() -> bool:
    """Whether a live display can be shown."""
    return console(stderr=True).is_terminal


def aligned(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,)) -> list[str]:
    """A table as lines: numbers to the right, the columns in `left` to the left.

    >>> for line in aligned([["stream", "rows"], ["trades", "1,000"]]):
    ...     print(line)
    stream   rows
    trades  1,000
    """
    widths = [max(len(row[c]) for row in rows) for c in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(widths[c]) if c in left else cell.rjust(widths[c])
            for c, cell in enumerate(row)
        ).rstrip()
        for row in rows
    ]


def cell(value: object) -> str:
    """A value in a table of results.

    >>> cell(None), cell(0.1), cell("a" * 50)[-3:]
    ('null', '0.1', 'aa…')
    """
    if value is None:
        return "null"
    if isinstance(value, float):
        return f"{value:.10g}"
    if isinstance(value, dt.datetime):
        value = value.replace(tzinfo=None).isoformat(sep=" ", timespec="milliseconds")
    text = str(value).replace("\n", "⏎")
    return text if len(text) <= LONGEST_CELL else text[: LONGEST_CELL - 1] + "…"


def show_json(out: Path | None, value: Callable[[], object]) -> bool:
    """Write a value as JSON where --json says; whether that was standard output."""
    if out is None:
        return False
    text = json.dumps(value(), indent=2)
    if str(out) == "-":
        say(text)
        return True
    from plait.machine.drafts import write_whole, writing

    with writing(out):
        out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out, text + "\n")
    say(f"written: {out}")
    return False
