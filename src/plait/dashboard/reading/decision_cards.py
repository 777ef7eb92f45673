"""Turn decisions into cards: who decided what, when and why, and what it was worth.

Each processor decides for itself. So one cause makes many of them decide the same, in the same
batch or soon after each other; such decisions share a card.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from plait.adapt.events import Event
from plait.node.reports.placement import balance_line

_SOON = 8
"""Batches after which the same decision of another processor has a card of its own."""
_OTHER_VERSION = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError)
"""Errors over fields that another version writes differently; such a decision has no card."""
Sort = Literal["change", "asked", "verdict", "short", "groups"]
"""A change of plan, a requested one, whether one paid, a resource that is short, a group move."""


@dataclass(frozen=True, slots=True)
class DecisionCard:
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
    """Whether it paid; None if nobody asked."""
    until: int = 0
    """The last batch; 0 if it is the same."""
    summary: str = ""
    """One sentence, where there are no costs to compare."""

    @property
    def saved(self) -> float | None:
        """The share of the old plan's time that is predicted to be saved.

        >>> DecisionCard("change", 3, "", before=2.0, after=0.5).saved
        0.75
        """
        if self.before is None or self.after is None or not self.before:
            return None
        return 1 - self.after / self.before


def decision_cards(
    found: Iterable[Mapping[str, Any]], balance: Iterable[Event]
) -> Sequence[DecisionCard]:
    """The cards of all decisions, the oldest first.

    >>> one = {"kind": "asked", "batch": 3, "processor": 0, "old": "(a b)", "new": "(b a)"}
    >>> [(c.title, c.processors) for c in decision_cards([one, one | {"processor": 1}], [])]
    [('(b a), as requested', (0, 1))]
    """
    cards: list[DecisionCard] = []
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
    moved = filter(None, map(_groups_card, balance))
    return tuple(sorted([*cards, *moved], key=lambda card: card.batch))


def _goes_on(card: DecisionCard, later: DecisionCard) -> bool:
    """Whether another processor soon decided the same; one that decides it again is news."""
    soon = later.batch - max(card.batch, card.until) <= _SOON
    return soon and not set(card.processors) & set(later.processors)


def _together(one: DecisionCard, other: DecisionCard) -> DecisionCard:
    last = max(one.batch, one.until, other.batch)
    return replace(
        one,
        processors=tuple(sorted({*one.processors, *other.processors})),
        pause=max((p for p in (one.pause, other.pause) if p is not None), default=None),
        until=last if last > one.batch else 0,
    )


def _card(given: Mapping[str, Any]) -> DecisionCard | None:
    try:
        make = _CARDS.get(given["kind"])
        return None if make is None else make(given)
    except _OTHER_VERSION:
        return None


def _asked(given: Mapping[str, Any]) -> DecisionCard:
    new = str(given.get("new", ""))
    reasons = (_migration(given), str(given.get("reason") or ""))
    return DecisionCard(
        sort="asked",
        batch=int(given["batch"]),
        title=f"{new}, as requested",
        processors=(int(given["processor"]),),
        reasons=tuple(filter(None, reasons)),
        old=str(given.get("old", "")),
        new=new,
        pause=float(given.get("pause", 0.0)),
    )


def _judged(given: Mapping[str, Any]) -> DecisionCard:
    paid = bool(given.get("paid"))
    took, hoped = (float(given.get(name, 0.0)) for name in ("measured", "predicted"))
    new, old = _changed(given.get("plan"), given.get("old"))
    return DecisionCard(
        sort="verdict",
        batch=int(given["batch"]),
        title=f"{new} {'paid' if paid else 'did not pay'}",
        processors=(int(given["processor"]),),
        reasons=(str(given.get("reason", "")),),
        good=paid,
        summary=f"It takes {took:.0%} of what {old} would take; {hoped:.0%} was predicted.",
    )


def _unqualified(given: Mapping[str, Any]) -> DecisionCard:
    reasons = tuple(map(str, given.get("reasons", ())))
    return DecisionCard(
        sort="short",
        batch=int(given["batch"]),
        title=f"{given.get('resource', 'something')} is short",
        processors=(int(given["processor"]),),
        reasons=reasons,
        good=False,
        summary=reasons[0],
    )


def _migrated(given: Mapping[str, Any]) -> DecisionCard:
    batch, where = int(given["batch"]), (int(given["processor"]),)
    if given.get("refused"):
        refused = str(given["refused"])
        return DecisionCard("change", batch, "a change of plan was refused", where, (refused,),
                            good=False)  # fmt: skip
    new, old = _changed(given.get("label") or given.get("new"), given.get("old"))
    returned = bool(given.get("returned"))
    reasons = [*given.get("reasons", ()), _migration(given), given.get("reason")]
    return DecisionCard(
        sort="change",
        batch=batch,
        title=f"back to {new}" if returned else new,
        processors=where,
        reasons=tuple(str(reason) for reason in reasons if reason),
        old=old,
        new=new,
        before=_number(given, "before"),
        after=_number(given, "after"),
        pause=_number(given, "pause"),
        good=False if returned else None,
    )


_CARDS: Mapping[str, Callable[[Mapping[str, Any]], DecisionCard]] = {
    "migrated": _migrated, "asked": _asked, "judged": _judged, "unqualified": _unqualified
}  # fmt: skip


def _number(given: Mapping[str, Any], name: str) -> float | None:
    return None if given.get(name) is None else float(given[name])


def _migration(given: Mapping[str, Any]) -> str:
    shared, recomputed = given.get("shared", 0), given.get("recomputed", 0)
    strategy = str(given.get("strategy", "")).replace("-", " ")
    return f"by {strategy}: {shared:,} combined rows shared, {recomputed:,} recomputed"


def _changed(new: object, old: object) -> tuple[str, str]:
    """The labels of two plans as far as they differ: shapes, or the probe orders of one shape.

    >>> _changed("((a b) c)", "(a b c) by a-b-c, b-a-c, c-b-a")
    ('((a b) c)', '(a b c)')
    >>> _changed("(a b c) by a-b-c, b-a-c, c-b-a", "(a b c) by a-c-b, b-a-c, c-a-b")
    ('(a b c) probing a-b-c, c-b-a', 'a-c-b, c-a-b')
    """
    (shape, _, orders), (before, _, others) = (
        str(label or "").partition(" by ") for label in (new, old)
    )
    if shape != before or orders == others or not (orders and others):
        return shape, before
    known, known_before = orders.split(", "), others.split(", ")
    changed = ", ".join(order for order in known if order not in known_before)
    return f"{shape} probing {changed}", ", ".join(o for o in known_before if o not in known)


_GROUP_TITLES = {
    "relocated": "groups moved",
    "reviewed": "a move was reviewed",
    "unbalanced": "a hot spot remains",
}


def _groups_card(event: Event) -> DecisionCard | None:
    """The card of an event of the distribution manager; None if it needs none."""
    if event.kind not in _GROUP_TITLES:
        return None
    try:
        summary = balance_line(event).partition(": ")[2]
    except _OTHER_VERSION:
        return None
    good = {"reviewed": bool(event.data.get("paid")), "unbalanced": False}.get(event.kind)
    reasons = (summary,) if event.kind == "unbalanced" else ()
    title = _GROUP_TITLES[event.kind]
    return DecisionCard("groups", event.batch, title, (), reasons, good=good, summary=summary)
