"""Every decision as a card: who decided what, when and why, and what it was worth.

Processors decide for themselves, so one cause makes many of them decide the same, in the same batch
or one soon after the other; those become one card.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from plait.adapt.events import Event
from plait.node.reports.placement import balance_line

_SOON = 8
"""Batches after which the same decision of another processor is told by itself."""
_OTHER_VERSION = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""What is raised over fields that another version writes in another way."""
Sort = Literal["change", "asked", "verdict", "short", "groups"]
"""A change of plan, one that somebody asked for, whether one paid, a lack, a move of groups."""


@dataclass(frozen=True, slots=True)
class Decided:
    """One card."""

    sort: Sort
    batch: int
    """The first one, if several processors decided the same one after the other."""
    title: str
    processors: tuple[int, ...] = ()
    reasons: tuple[str, ...] = ()
    old: str = ""
    new: str = ""
    before: float | None = None
    """CPU seconds per second that the old plan was predicted to take."""
    after: float | None = None
    """The same of the new plan."""
    pause: float | None = None
    good: bool | None = None
    """Whether it paid, where that is the question."""
    until: int = 0
    """The last batch; 0 if it is the same."""
    summary: str = ""
    """What there is to say in one sentence, beside costs."""

    @property
    def saved(self) -> float | None:
        """The share of the old plan's time that is predicted to be saved.

        >>> Decided("change", 3, "", before=2.0, after=0.5).saved
        0.75
        """
        if self.before is None or self.after is None or not self.before:
            return None
        return 1 - self.after / self.before


def decided(found: Iterable[Mapping[str, Any]], balance: Iterable[Event]) -> Sequence[Decided]:
    """The cards of all decisions, the oldest first.

    >>> one = {"kind": "asked", "batch": 3, "processor": 0, "old": "(a b)", "new": "(b a)"}
    >>> [(c.title, c.processors) for c in decided([one, one | {"processor": 1}], [])]
    [('(b a), as was asked', (0, 1))]
    """
    cards: list[Decided] = []
    newest: dict[tuple[object, ...], int] = {}
    begun: set[tuple[str, ...]] = set()
    for decision in found:
        if str(decision.get("kind")) in ("migrated", "asked"):
            key = tuple(str(decision.get(name)) for name in ("processor", "start", "new"))
            if key in begun and decision.get("start") is not None:
                continue  # a parallel track that is still under way
            begun.add(key)
        card = _card(decision)
        if card is None:
            continue
        same = (card.sort, card.title, card.old, card.new)
        at = newest.get(same)
        if at is not None and _goes_on(cards[at], card):
            cards[at] = _together(cards[at], card)
        else:
            newest[same] = len(cards)
            cards.append(card)
    moved = filter(None, (_moved(e) for e in balance if e.kind != "weighed"))
    return tuple(sorted([*cards, *moved], key=lambda card: card.batch))


def _goes_on(card: Decided, later: Decided) -> bool:
    """Whether another processor soon decided the same; one that decides it again is news."""
    soon = later.batch - max(card.batch, card.until) <= _SOON
    return soon and not set(card.processors) & set(later.processors)


def _together(one: Decided, other: Decided) -> Decided:
    last = max(one.batch, one.until, other.batch)
    return replace(
        one,
        processors=tuple(sorted({*one.processors, *other.processors})),
        pause=max((p for p in (one.pause, other.pause) if p is not None), default=None),
        until=last if last > one.batch else 0,
    )


def _card(given: Mapping[str, Any]) -> Decided | None:
    try:
        batch, where = int(given["batch"]), (int(given["processor"]),)
        old = str(given.get("old", ""))
        if given["kind"] == "migrated":
            return _change(given, batch, where, old)
        if given["kind"] == "asked":
            new = str(given.get("new", ""))
            how = _how(given)
            why = (how, str(given["reason"])) if given.get("reason") else (how,)
            pause = float(given.get("pause", 0.0))
            return Decided(
                "asked", batch, f"{new}, as was asked", where, why, old, new, pause=pause
            )
        if given["kind"] == "judged":
            paid = bool(given.get("paid"))
            title = f"{_shape(given.get('plan'))} {'paid' if paid else 'did not pay'}"
            said = (str(given.get("reason", "")),)
            took, hoped = (float(given.get(n, 0.0)) for n in ("measured", "predicted"))
            summary = f"It takes {took:.0%} of what {_shape(old)} would; {hoped:.0%} was predicted."
            return Decided("verdict", batch, title, where, said, good=paid, summary=summary)
        if given["kind"] == "unqualified":
            title = f"{given.get('resource', 'something')} is short"
            reasons = tuple(map(str, given.get("reasons", ())))
            return Decided("short", batch, title, where, reasons, good=False, summary=reasons[0])
    except _OTHER_VERSION:
        pass
    return None


def _change(given: Mapping[str, Any], batch: int, where: tuple[int, ...], old: str) -> Decided:
    if given.get("refused"):
        title = "a change of plan was refused"
        return Decided("change", batch, title, where, (str(given["refused"]),), good=False)
    new = str(given.get("new", ""))
    back = bool(given.get("returned"))
    title = f"back to {new}" if back else new
    if new == _shape(old):
        title += " in another order"
    reasons = [*map(str, given.get("reasons", ())), _how(given)]
    if given.get("reason"):
        reasons.append(str(given["reason"]))
    numbers = [given.get(name) for name in ("before", "after", "pause")]
    before, after, pause = (None if n is None else float(n) for n in numbers)
    return Decided(
        "change", batch, title, where, tuple(reasons), _shape(old), new, before, after, pause,
        False if back else None,
    )  # fmt: skip


def _how(given: Mapping[str, Any]) -> str:
    shared, recomputed = given.get("shared", 0), given.get("recomputed", 0)
    way = str(given.get("strategy", "")).replace("-", " ")
    return f"by {way}: {shared:,} combined rows shared, {recomputed:,} computed anew"


def _shape(label: object) -> str:
    """A plan without the ways of its tuples."""
    return str(label or "").partition(" by ")[0]


def _moved(event: Event) -> Decided | None:
    if event.kind not in ("relocated", "reviewed", "unbalanced"):
        return None
    try:
        said = balance_line(event).partition(": ")[2]
    except _OTHER_VERSION:
        return None
    good = bool(event.data.get("paid")) if event.kind == "reviewed" else None
    if event.kind == "unbalanced":
        title = "a hot spot remains"
        return Decided("groups", event.batch, title, (), (said,), good=False, summary=said)
    title = {"relocated": "groups moved", "reviewed": "a move was reviewed"}[event.kind]
    return Decided("groups", event.batch, title, (), (), good=good, summary=said)
