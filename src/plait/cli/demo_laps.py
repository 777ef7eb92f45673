"""What the demo tells of a batch, whoever ran it: figures, changes of plan and moves, as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from plait.adapt.events import Event

_BAR, _LONGEST = "█", 24
_PARTS = "▏▎▍▌▋▊▉"


@dataclass(frozen=True, slots=True)
class Lap:
    """One batch of one run."""

    number: int
    rows: int
    results: int
    late: int
    seconds: float
    routed: tuple[int, ...]
    """Rows that came to each processor."""
    changes: tuple[str, ...] = ()
    """Changes of plan in this batch, each with its reason."""
    moves: tuple[str, ...] = ()
    """Partition groups that went elsewhere since the last batch."""

    @property
    def shares(self) -> str:
        """How the rows were divided among processors; empty if there is one."""
        total = sum(self.routed) or 1
        return " : ".join(f"{n / total:.0%}" for n in self.routed) if len(self.routed) > 1 else ""


Turn = Callable[[int], Lap]
"""Runs the batch of that number, and tells about it."""


def changes_of(events: Iterable[Event]) -> tuple[str, ...]:
    """The decisions to change the plan, in a sentence each; those that are alike once.

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


def moves_of(events: Iterable[Event]) -> tuple[str, ...]:
    """The moves of partition groups that were carried out.

    >>> move = {"groups": [3, 5], "senders": [0], "receivers": [1], "protocol": "MSLB"}
    >>> moves_of([Event("relocated", 9, 0, {"done": True, "move": move})])
    ('2 partition groups have moved from processor 0 to processor 1, by MSLB.',)
    """
    return tuple(
        _moved(event.data["move"])
        for event in events
        if event.kind == "relocated" and event.data["done"]
    )


def _moved(move: dict[str, list[int]]) -> str:
    groups, receivers = move["groups"], move["receivers"]
    one = len(groups) == 1
    many = f"Partition group {groups[0]} has" if one else f"{len(groups)} partition groups have"
    by = f"by {move['protocol']}"
    if len(receivers) > 1:
        every = " and ".join(map(str, receivers))
        return f"{many} become too hot for one processor: spread over processors {every}, {by}."
    return f"{many} moved from processor {move['senders'][0]} to processor {receivers[0]}, {by}."


def bar(seconds: float, longest: float) -> str:
    """A bar as long as the seconds, of at most 24 characters.

    >>> bar(1.0, 2.0), bar(0.0, 2.0)
    ('████████████', '▏')
    """
    eighths = round(8 * _LONGEST * min(1.0, seconds / longest)) if longest else 0
    whole, rest = divmod(eighths, 8)
    return _BAR * whole + (_PARTS[rest - 1] if rest else "") or _PARTS[0]


def median(laps: Sequence[Lap]) -> float:
    """Seconds of the batch in the middle; 0 of none."""
    ordered = sorted(lap.seconds for lap in laps)
    return ordered[len(ordered) // 2] if ordered else 0.0
