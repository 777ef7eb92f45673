"""What a running plan counts: the raw material of statistics and cost models."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class StepCounters:
    """One probe of one input's probe order."""

    probes: int = 0
    visited: int = 0
    matches: int = 0


@dataclass(slots=True)
class InputCounters:
    """One input of a join: what came in, what it probed, and the state that keeps it."""

    arrivals: int = 0
    inserts: int = 0
    deletes: int = 0
    steps: list[StepCounters] = field(default_factory=list)


@dataclass(slots=True)
class OperatorCounters:
    """One join of the plan, named by its shape; `inputs` are in the order of its children."""

    operator: str
    inputs: list[InputCounters]
    outputs: int = 0


@dataclass(frozen=True, slots=True)
class StateSize:
    """How much a state holds now.

    `bytes` is what is allocated, spare room and indexes included; `row_bytes` is what the columns
    of one row take by themselves, without the bytes of strings.
    """

    streams: tuple[str, ...]
    rows: int
    bytes: int
    row_bytes: int
    indexes: int
