"""Orders to sites on Spark: what somebody wants of the plan while it runs, as files.

An order is a file in the mailbox, written once and never changed. Every application reads the
orders as a stream, so Spark's log says which batch brings which order, and a repeated batch hears
the same ones. An order says that another plan is wanted, or that it is wanted no longer. What comes
of it is up to the sites: they change their plan in turns (`plait.protocol.site_turns`), by messages
in the packets between them, whoever has wanted that. Their reports say how far they are.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plait.errors import SourceError
from plait.protocol.durable import from_plain, to_plain
from plait.protocol.site_messages import WantPlan, Wish, Withdraw

_KINDS: tuple[type[WantPlan] | type[Withdraw], ...] = (WantPlan, Withdraw)


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
        return json.dumps({"order": type(self.wish).__name__, **to_plain(self.wish)})

    @classmethod
    def from_json(cls, text: str) -> SiteOrder:
        """The inverse of `to_json`."""
        try:
            given: dict[str, Any] = json.loads(text)
            kind = {kind.__name__: kind for kind in _KINDS}[given.pop("order")]
            return cls(from_plain(kind, given))
        except (ValueError, TypeError, KeyError, AttributeError, SourceError) as error:
            raise SourceError(
                f"an order to sites cannot be read: {error}", remedy="put its file back from a copy"
            ) from error


def want(folder: Path, made: Callable[[int], WantPlan]) -> WantPlan:
    """Order a plan under the next number that nobody has taken."""
    number = 0
    while True:
        taken = [int(path.name.partition("-")[0]) for path in folder.glob("[0-9]*.json")]
        number = 1 + max([number, *taken])
        wish = made(number)
        if _written(folder, SiteOrder(wish)):
            return wish


def withdraw(folder: Path, request: int) -> None:
    """Order to do without a plan that was wanted."""
    _written(folder, SiteOrder(Withdraw(request)))


def _written(folder: Path, order: SiteOrder) -> bool:
    """Write an order at once; whether it was not there before."""
    number, kind = order.place
    draft = folder / f"_{os.getpid()}-{os.urandom(4).hex()}"
    try:
        draft.write_text(order.to_json())
        os.link(draft, folder / f"{number:06d}-{kind}.json")
    except FileExistsError:
        return False
    finally:
        draft.unlink(missing_ok=True)
    return True
