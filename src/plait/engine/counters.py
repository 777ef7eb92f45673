"""Counters of a running plan, from which statistics and costs are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class StepCounters:
    """One probe of one input's probe order."""

    probes: int = 0
    visited: int = 0
    matches: int = 0

    def to_state(self) -> list[int]:
        """The numbers."""
        return [self.probes, self.visited, self.matches]

    def set_state(self, saved: Sequence[int]) -> None:
        """Go on from the numbers of another one."""
        self.probes, self.visited, self.matches = map(int, saved)


@dataclass(slots=True)
class InputCounters:
    """Counts for one input of a join: arrivals, probes, and changes of its state."""

    arrivals: int = 0
    inserts: int = 0
    deletes: int = 0
    steps: list[StepCounters] = field(default_factory=list)

    def to_state(self) -> list[int]:
        """The numbers, without those of the steps."""
        return [self.arrivals, self.inserts, self.deletes]

    def set_state(self, saved: Sequence[int]) -> None:
        """Go on from the numbers of another one; the steps have their own."""
        self.arrivals, self.inserts, self.deletes = map(int, saved)


@dataclass(slots=True)
class OperatorCounters:
    """Counts for one join of the plan, named by its shape; `inputs` follow its children."""

    operator: str
    inputs: list[InputCounters]
    outputs: int = 0

    def to_state(self) -> list[list[int]]:
        """All numbers of the join: its own, then for each input its own and those of its steps."""
        inputs = [[i.to_state(), *(step.to_state() for step in i.steps)] for i in self.inputs]
        return [[self.outputs], *(numbers for of_input in inputs for numbers in of_input)]

    def set_state(self, saved: Sequence[Sequence[int]]) -> None:
        """Go on from the numbers of another join of the same shape."""
        own, *rest = saved
        (self.outputs,) = map(int, own)
        counters: list[InputCounters | StepCounters] = []
        for of_input in self.inputs:
            counters += [of_input, *of_input.steps]
        for counter, numbers in zip(counters, rest, strict=True):
            counter.set_state(numbers)


@dataclass(frozen=True, slots=True)
class StateSize:
    """The size of a state now.

    `bytes` counts allocated memory, with spare room and indexes; `row_bytes` counts the columns of
    one row, without the bytes of strings.
    """

    streams: tuple[str, ...]
    rows: int
    bytes: int
    row_bytes: int
    indexes: int
