"""A batch of the demo, wherever it ran: its figures, and its changes of plan and moves as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plait.adapt.events import Event

_BAR, _LONGEST = "█", 24
_PARTS = "▏▎▍▌▋▊▉"
_NAMED = 6
"""Groups that are named one by one."""


@dataclass(frozen=True, slots=True)
class DemoBatch:
    """The figures of one batch of one run."""

    number: int
    rows: int
    results: int
    late: int
    seconds: float
    routed: tuple[int, ...]
    """Rows that came to each processor."""
    loads: tuple[float, ...] = ()
    """CPU seconds that the batch took each processor."""
    changes: tuple[str, ...] = ()
    """Changes of plan in this batch, each with its reason."""
    moves: tuple[str, ...] = ()
    """What was decided about partition groups since the last batch, and what became of it."""

    @property
    def divided(self) -> str:
        """Show how rows and work were divided among the processors; empty if there is one."""
        if len(self.routed) < 2:
            return ""
        return f"{_shares(self.routed):<15}{_shares(self.loads)}"


def _shares(parts: Sequence[float]) -> str:
    total = sum(parts) or 1
    return " : ".join(f"{part / total:4.0%}" for part in parts)


RunBatch = Callable[[int], DemoBatch]
"""Run the batch of that number, and return its figures."""


def changes_of(events: Iterable[Event]) -> tuple[str, ...]:
    """Tell each decision to change the plan in a sentence; equal ones once.

    >>> decision = {"kind": "move", "plan": "((a b) c)", "current": {"cpu": 0.5},
    ...             "cost": {"cpu": 0.1}, "reasons": ["it is cheaper", "staying has cost 2 s"]}
    >>> changes_of([Event("compared", 3, 0, {"decision": decision})])
    ('The plan becomes ((a b) c), which takes 80 % less CPU: staying has cost 2 s.',)
    """
    found: dict[str, str] = {}
    for event in events:
        decision = event.data.get("decision", {}) if event.kind == "compared" else {}
        if decision.get("kind") == "move":
            less = 1 - decision["cost"]["cpu"] / max(decision["current"]["cpu"], 1e-12)
            found.setdefault(
                decision["plan"],
                f"The plan becomes {decision['plan']}, which takes {less * 100:.0f} % less CPU: "
                f"{decision['reasons'][-1]}.",
            )
        elif event.kind == "judged" and not event.data["paid"]:
            found.setdefault("back", f"The old plan comes back: {event.data['reason']}.")
    return tuple(found.values())


def moves_of(events: Iterable[Event], streams: Sequence[str] = ()) -> tuple[str, ...]:
    """Tell each decision to move partition groups with its reason, and each completed move.

    `streams` are the names of the streams, in the order of the query.

    >>> move = {"groups": [3, 5], "senders": [0], "receivers": [1], "protocol": "MSLB"}
    >>> why = "processor 0 has a load of 0.8, the mean is 0.4; 2 of its groups go to processor 1"
    >>> decided = {"decision": {"moves": [move], "reasons": [why]}}
    >>> for text in moves_of([Event("weighed", 7, 0, decided)]):
    ...     print(text)
    Processor 0 has a load of 0.8, the mean is 0.4; 2 of its groups go to processor 1: 3, 5.
    >>> moves_of([Event("relocated", 9, 0, {"done": True, "move": move})])
    ('2 partition groups have moved from processor 0 to processor 1, by MSLB.',)
    """
    found: list[str] = []
    for event in events:
        if event.kind == "relocated" and event.data["done"]:
            found.append(_moved(event.data["move"]))
        elif event.kind == "weighed" and event.data["decision"]["moves"]:
            found.append(_decided(event.data["decision"], streams))
    return tuple(found)


def has_moved(text: str) -> bool:
    """Whether a text of `moves_of` says that a move was carried out."""
    return " has been " in text or " have been " in text or " moved from " in text


def _decided(decision: Mapping[str, Any], streams: Sequence[str]) -> str:
    """Why groups move, and which."""
    why = next((r for r in decision["reasons"] if " go" in r or "divided" in r), "")
    for number, name in enumerate(streams):
        why = why.replace(f"the rows of stream {number} ", f"its {name} ")
    groups = [g for move in decision["moves"] for g in move["groups"]]
    which = ", ".join(map(str, groups[:_NAMED]))
    more = f" and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    return f"{why[:1].upper()}{why[1:]}" + (f": {which}{more}." if len(groups) > 1 else ".")


def _moved(move: Mapping[str, Any]) -> str:
    groups, receivers, by = move["groups"], move["receivers"], f"by {move['protocol']}"
    one = len(groups) == 1
    many = f"Partition group {groups[0]} has" if one else f"{len(groups)} partition groups have"
    if len(receivers) > 1:
        return f"{many} been spread over processors {' and '.join(map(str, receivers))}, {by}."
    return f"{many} moved from processor {move['senders'][0]} to processor {receivers[0]}, {by}."


def bar(seconds: float, longest: float) -> str:
    """Draw a bar for a number of seconds, at most 24 characters long.

    >>> bar(1.0, 2.0), bar(0.0, 2.0)
    ('████████████', '▏')
    """
    eighths = round(8 * _LONGEST * min(1.0, seconds / longest)) if longest else 0
    whole, rest = divmod(eighths, 8)
    return _BAR * whole + (_PARTS[rest - 1] if rest else "") or _PARTS[0]


def median(batches: Sequence[DemoBatch]) -> float:
    """Return the median time of batches in seconds; 0 if there are none."""
    ordered = sorted(batch.seconds for batch in batches)
    return ordered[len(ordered) // 2] if ordered else 0.0
