"""Sizes that affect speed and memory, but never results.

A constant that switches behaviour at 32,768 rows hides its mistakes from every small test. So all
such sizes are fields of one value, which is handed down from whoever hosts an engine to the kernels
below it, and the laws draw them at random, down to 1 (`plait_lab.laws.strategies.tunings`). A test
looks for numbers in the modules that are not among them (`tests/test_tuning.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Tuning:
    """The sizes; the benchmarks chose the defaults.

    >>> Tuning(slice_rows=1).slice_rows
    1
    >>> Tuning(buckets=3)
    Traceback (most recent call last):
    ValueError: buckets is 3, but must be a power of two
    """

    # -- kernels
    ring_rows: int = 64
    """Capacity of the smallest ring, in rows."""
    ring_slack: int = 16
    """A full ring grows by 1/`ring_slack` of its rows."""
    first_id: int = 0
    """The id of the first row of a window, and the number of a router's first block; both wrap
    around."""
    buckets: int = 64
    """Buckets of the smallest index; a power of two."""
    walkers: int = 32
    """Chains that a probe walks at the same time."""
    linked_rows: int = 128
    """Rows that are linked into their chains at a time."""
    passed_rows: int = 4096
    """Rows passed while linking after which an index is rebuilt in the order of time, ..."""
    passed_per_row: int = 8
    """... and the least number of them per row of the window."""
    sweep_rows: int = 1 << 30
    """Rows that are linked before dropped rows are swept out of the buckets."""
    span_rows: int = 4
    """Rows that share a span, on average, when combinations are put into the order of time."""
    intern_slots: int = 1024
    """Slots of the smallest table of interned keys; a power of two."""
    heap_bytes: int = 1024
    """Bytes that a new heap of strings has room for."""
    forget_keys: int = 4096
    """The number of interned keys from which unused ones are forgotten."""

    # -- engine
    slice_rows: int = 8192
    """The least average rows per slice of a batch: below this a slice costs more in calls than it
    saves in cache misses."""
    slices_per_window: int = 4
    """The most slices into which a window is cut."""
    portion_rows: int = 1 << 15
    """Pairs that a probe returns at once: enough to vectorise, few enough for the cache.
    Columns of more than some 100 kB are also given back to the system and fetched again each
    time."""
    compact_rows: int = 256
    """Combinations stored between two searches for dead ones."""
    string_bytes: int = 2**31 - 1
    """The most bytes of strings in one Arrow array: offsets have 32 bits."""
    teddy_slices: int = 2
    """The size of slices for Teddies' metaqueues, as a multiple of a tree's slices."""
    router_indexes: int = 6
    """The most composite indexes of a router per window."""
    router_streams: int = 10
    """The most streams of a router for which every history is enumerated in advance."""
    frontier_blocks: int = 16
    """Initial room of a router for blocks under way."""
    eddy_queue: int = 1024
    """Initial room of Eddies for tuples under way."""
    waiting_packets: int = 4
    """Packets that wait in a metaqueue before it is processed."""

    # -- the adaptive loop
    large_slices: int = 4
    """Slices from which on a batch is joined in pieces, between which the plan may change."""
    pieces: int = 16
    """The most pieces of a batch."""
    pieces_per_window: int = 2
    """The most pieces into which a window is cut."""
    piece_rows: int = 1024
    """The fewest rows of a piece where memory is short."""

    # -- sites
    frontiers_per_window: int = 4
    """How often a site tells another one how far a stream has come while a window passes, at least;
    it is also told with whatever else is sent."""
    abandoned_plans: int = 64
    """Abandoned plans that a site remembers, to ignore late requests for them."""

    resend_steps: int = 32
    """Steps without a new acknowledgement after which a site sends a packet again."""

    # -- processors
    groups: int = 128
    """Partition groups of a single key class."""
    packet_rows: int = 1 << 18
    """Rows that a pack task collects before it sends them."""
    result_rows: int = 1 << 17
    """Results that leave a processor at a time: handing over a batch has its price, whatever its
    size."""
    gathered_bytes: int = 1 << 26
    """Batches are not put together beyond this, however few their rows: offsets of strings have
    32 bits."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value < (0 if field.name == "first_id" else 1):
                raise ValueError(f"{field.name} is {value}, but must be positive")
        for name in ("buckets", "intern_slots"):
            value = getattr(self, name)
            if value & (value - 1):
                raise ValueError(f"{name} is {value}, but must be a power of two")


USUAL = Tuning()
"""The defaults."""
