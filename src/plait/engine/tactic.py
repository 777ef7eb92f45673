"""The contract between the driver and a tactic, a way to find results.

The driver (`plait.engine.driver`) owns the base windows: it stores new tuples, drops old ones, and
turns combinations into rows. A tactic finds the combinations. For each batch the driver calls `cut`
once; for each slice, and in it for each stream in turn, it stores the tuples and calls `probe`;
after the slice `expire`, `cutoffs` and, where rows were dropped, `dropped`; at the end of the batch
`close_batch`, and once more those three. `successor` is asked after rows were dropped.

1. *Slices.* `cut` gives every row of a batch once, of each stream in its order, and with each slice
   a time that no row of a later slice is before.
2. *Complete.* Whatever it yields has one live tuple of every stream, and at least one combination.
3. *Once.* Every result is yielded once: in the `probe` of its last tuple, or later if it waits.
   `fill` takes in tuples whose results are known: it finds nothing, and later probes see them.
4. *Waiting.* Tuples may be held back beyond a call only while `waiting` is true; `finish` yields
   whatever they still make, and then nothing waits.
5. *Windows.* It reads base windows, and may add indexes when it is made. It never stores in them,
   drops from them or drops an index while it is at work.
6. *Cutoffs.* Rows of a stream before its cutoff are dropped. No cutoff is later than what the
   watermarks allow; it is earlier where tuples that wait, or combinations, need the rows.
7. *Expiry.* After `expire` no combined state begins with a combination that nothing to come can
   join: memory follows the windows and not the stream.

Positions are valid until the driver stores or drops the next rows, so what is kept for later is
kept as ids. The tests assert the contract around every engine they run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from plait.engine.counters import OperatorCounters
from plait.engine.intake.ingest import Arrivals
from plait.engine.intake.slices import Slice
from plait.engine.states import CombinedState, Tuples
from plait.kernels.jit import Positions
from plait.kernels.memory import Saved
from plait.plan.migration import Migration
from plait.plan.routed import Plan

if TYPE_CHECKING:
    from plait.engine.tactics.operators import Operator


class Tactic(Protocol):
    """Finds the combinations that new tuples complete."""

    def cut(self, arrivals: Mapping[int, Arrivals]) -> Sequence[tuple[int, Slice]]:
        """Begin a batch: divide it into slices."""

    def probe(self, stream: int, positions: Positions) -> Iterator[Tuples]:
        """Find what new tuples complete; they were just stored, the earliest first."""

    def fill(self, stream: int, positions: Positions) -> None:
        """Take in stored tuples whose results were found before."""

    def expire(self, watermarks: Sequence[int]) -> None:
        """Drop the combinations that nothing to come can join."""

    def cutoffs(self, watermarks: Sequence[int]) -> Sequence[int]:
        """Return the time before which rows may be dropped, for each stream; change nothing."""

    def dropped(self, stream: int, rows: int) -> None:
        """Note that the oldest rows of a window were dropped."""

    def close_batch(self) -> Iterator[Tuples]:
        """Find the combinations that may not wait for the next batch."""

    def finish(self) -> Iterator[Tuples]:
        """Find the combinations of tuples that still wait."""

    def successor(self) -> Tactic | None:
        """Return the tactic that replaces this one, if this one has finished."""

    @property
    def plan(self) -> Plan:
        """The plan that runs, or that a migration leads to."""

    @property
    def waiting(self) -> bool:
        """Whether tuples are held back."""

    @property
    def migration(self) -> Migration | None:
        """The migration that it carries out, if any."""

    @property
    def operators(self) -> Sequence[Operator]:
        """The joins of the plan, parents first; a router has none."""

    @property
    def combined(self) -> Sequence[CombinedState]:
        """The states of combinations."""

    @property
    def counters(self) -> list[OperatorCounters]:
        """The counters of every join; a router counts as one."""

    @property
    def nbytes(self) -> int:
        """Bytes allocated beside the base windows."""

    def to_state(self) -> Saved:
        """Describe its state beside windows and plan, between two batches; or raise `NotSaved`."""

    def set_state(self, saved: Saved) -> None:
        """Go on from another tactic of the same plan, on windows that were restored."""
