"""Orders to sites on Spark: what somebody wants of the plan while it runs, as files.

An order is a file in the mailbox, written once and never changed. Every application reads the
orders as a stream, so Spark's log says which batch brings which order, and a repeated batch hears
the same ones. An order says that another plan is wanted, or that it is wanted no longer. What comes
of it is up to the sites: they change their plan in turns (`plait.sites.protocol.turns`), by
messages in the packets between them, whoever has wanted that. Their reports say how far they are.

*What is no order.* People leave files in folders. Spark only lists what is named like an order
(`PATTERN`); the sites read it themselves, and only from a regular file, so nothing can block them.
What is not named so, or cannot be read, is left alone: it stops no site. `strays` names it to
whoever looks at the progress, and whoever waits for an order that is damaged is told at once.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from plait.codec import from_tagged, to_tagged
from plait.errors import SourceError
from plait.sites.protocol.messages import WantPlan, Wish, Withdraw

_KINDS: tuple[type[WantPlan] | type[Withdraw], ...] = (WantPlan, Withdraw)

WAKE = ".wake"
"""How the names of files end that only wake the sites (`site_waker`)."""
PATTERN = "[0-9]*{-[01].json,.wake}"
"""The names of all these, as a pattern of Spark's."""
_NAME = re.compile(r"([0-9]{1,18})-([01])\.json")
_REMEDY = "remove it, and order it again if it was meant"


@dataclass(frozen=True, slots=True)
class SiteOrder:
    """What all sites are told.

    >>> SiteOrder.from_json(SiteOrder(Withdraw(1)).to_json())
    SiteOrder(wish=Withdraw(request=1))
    """

    wish: Wish

    @property
    def place(self) -> tuple[int, int]:
        """Wishes are heard in their order, and withdrawn after they were made."""
        return self.wish.request, _KINDS.index(type(self.wish))

    def to_json(self) -> str:
        """For a file."""
        return json.dumps(to_tagged(self.wish, "order"))

    @classmethod
    def from_json(cls, text: str) -> SiteOrder:
        """The inverse of `to_json`."""
        try:
            return cls(from_tagged(_KINDS, json.loads(text), "order"))
        except (ValueError, SourceError) as error:
            raise SourceError(f"it is no order to sites: {error}", remedy=_REMEDY) from error


def read_order(path: Path) -> SiteOrder:
    """The order in a file. What is none is a SourceError that names the file."""
    try:
        named, within = _NAME.fullmatch(path.name), _NAME.fullmatch(path.parent.name)
        if named is None or within is not None:
            raise SourceError("it is not named like an order", remedy=_REMEDY)
        order = SiteOrder.from_json(_text(path))
        if order.place != (int(named[1]), int(named[2])):
            raise SourceError("it has another number than its name", remedy=_REMEDY)
        return order
    except (OSError, ValueError, SourceError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error).partition(";")[0]
        raise SourceError(f"{path} is not followed: {why}", remedy=_REMEDY) from error


def _text(path: Path) -> str:
    """What a regular file contains; a pipe or a link is not opened, so nobody waits for it."""
    if path.is_symlink():
        raise SourceError("it is a link", remedy=_REMEDY)
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(file, encoding="utf-8") as opened:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            raise SourceError("it is no regular file", remedy=_REMEDY)
        return opened.read()


def strays(folder: Path) -> list[str]:
    """What is in the folder of orders and is not followed, each with the reason."""
    found = []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if not path.name.startswith(("_", ".")) and path.suffix != WAKE:  # no drafts
            try:
                read_order(path)
            except SourceError as error:
                found.append(str(error))
    return found


def want(folder: Path, made: Callable[[int], WantPlan]) -> WantPlan:
    """Order a plan under the next number that nobody has taken."""
    number = 0
    while True:
        taken = [int(named[1]) for named in map(_NAME.fullmatch, os.listdir(folder)) if named]
        number = 1 + max([number, *taken])
        wish = made(number)
        if _written(folder, SiteOrder(wish)):
            return wish


def withdraw(folder: Path, request: int) -> None:
    """Order to do without a plan that was wanted."""
    _written(folder, SiteOrder(Withdraw(request)))


def order_path(folder: Path, wish: Wish) -> Path:
    """The file of an order."""
    number, kind = SiteOrder(wish).place
    return folder / f"{number:06d}-{kind}.json"


def _written(folder: Path, order: SiteOrder) -> bool:
    """Write an order at once; whether it was not there before."""
    draft = folder / f"_{os.getpid()}-{os.urandom(4).hex()}"
    try:
        draft.write_text(order.to_json())
        os.link(draft, order_path(folder, order.wish))
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True
