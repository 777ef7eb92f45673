"""Tunings drawn at random: what happens at 32,768 rows by default happens here at one or two.

Each size is small, or the default, so that some switches are thrown all the time and others never.
Shrinks towards the defaults.
"""

from __future__ import annotations

from dataclasses import fields
from random import Random

from hypothesis import strategies as st

from plait.tuning import USUAL, Tuning

_SMALL = (1, 1, 2, 3, 5, 16)
_AWKWARD: dict[str, tuple[int, ...]] = {
    "first_id": (0xFFFF_FFFF, 0xFFFF_FFF0, 0x7FFF_FFFF),  # ids wrap around
    "buckets": (1, 2, 8),
    "intern_slots": (1, 2, 8),
    "string_bytes": (256, 1024),  # a single result must fit
    "gathered_bytes": (1, 2000, 20_000),
    # Thousands of results, one at a time, take seconds: one is drawn, but not often.
    "portion_rows": (1, 64, 64, 256, 256),
    "result_rows": (1, 64, 64, 256, 256),
}
"""Values that differ from the usual small ones."""

NAMES = tuple(field.name for field in fields(Tuning))


def _values(name: str) -> tuple[int, ...]:
    return (getattr(USUAL, name), *_AWKWARD.get(name, _SMALL))


TUNINGS: st.SearchStrategy[Tuning] = st.builds(
    Tuning, **{name: st.sampled_from(_values(name)) for name in NAMES}
)
"""For Hypothesis."""


_PER_CALL = (
    "slice_rows",
    "portion_rows",
    "piece_rows",
    "packet_rows",
    "result_rows",
    "linked_rows",
    "walkers",
)
_CALLS = 2000
"""Sizes that say how many calls an input is worked off in; a million calls would take hours."""


def drawn_tuning(random: Random, rows: int = 1) -> Tuning:
    """For campaigns that draw everything from one seed; `rows` is how large the input is.

    >>> drawn_tuning(Random(1)) == drawn_tuning(Random(1))
    True
    """
    drawn = {name: random.choice(_values(name)) for name in NAMES}
    for name in _PER_CALL:
        drawn[name] = max(drawn[name], rows // _CALLS)
    if rows > _CALLS:  # a column of some bytes per row
        drawn["string_bytes"] = max(drawn["string_bytes"], 64 * rows // _CALLS)
        drawn["gathered_bytes"] = max(drawn["gathered_bytes"], 64 * rows // _CALLS)
    return Tuning(**drawn)
