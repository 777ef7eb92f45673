"""Control directories as accidents and attackers leave them."""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, TypeVar

from plait.machine.sealed import sealed

Found = TypeVar("Found")
DEEP = "[" * 100_000
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 3, 10**30, 10**400, 1.5, float("inf"), float("nan"), "", "x", "\u0000<b>",
    [], [3], ["x", None], {}, {"a": 1}, {"a": {"b": []}}, [[[]]],
)  # fmt: skip
"""What may stand anywhere in JSON."""


def within(seconds: float, call: Callable[[], Found]) -> Found:
    """What a call returns, which must not wait for ever."""
    found: list[Found] = []
    raised: list[BaseException] = []

    def run() -> None:
        try:
            found.append(call())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "it waits"
    if raised:
        raise raised[0]
    return found[0]


def _socket(path: Path) -> None:
    folder = os.open(path.parent, os.O_RDONLY)  # by the handle, because paths of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)


def _huge(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 40)


def spoilers(secret: Path) -> dict[str, Callable[[Path], None]]:
    """Ways to put something else in the place of a file; `secret` must never be written to."""
    return {
        "a link": lambda path: path.symlink_to(secret),
        "a link to nothing": lambda path: path.symlink_to(secret.with_name("nowhere")),
        "a FIFO": os.mkfifo,
        "a folder": Path.mkdir,
        "a socket": _socket,
        "huge": _huge,
        "nothing": lambda path: None,
        "empty": Path.touch,
        "no UTF-8": lambda path: _write(path, b"\xff\xfe\n"),
        "deep": lambda path: _write(path, DEEP.encode() + b"\n"),
        "a number": lambda path: _write(path, b"3\n"),
        "a list": lambda path: _write(path, b"[3]\n"),
        "a text": lambda path: _write(path, b'"x"\n'),
        "an object": lambda path: _write(path, b'{"first": "x"}\n'),
    }


def _write(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)


def spoil(path: Path, how: Callable[[Path], None]) -> None:
    """Put something else in the place of a file."""
    path.unlink()
    how(path)


def mutate(path: Path, random: Random) -> None:
    """Exchange some value in a file of JSON, or in a line of one; a checksum is right again."""
    lines = path.read_text(encoding="utf-8").splitlines()
    which = random.randrange(max(0, len(lines) - 8), len(lines))
    given = json.loads(lines[which])
    checksum = isinstance(given, dict) and given.pop("checksum", None)
    places = list(_places(given))
    if places:
        holder, key = random.choice(places)
        holder[key] = random.choice(VALUES)
    lines[which] = sealed(given) if checksum else json.dumps(given)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])
