"""The CPU and memory that a plan may use."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from plait.errors import BudgetError
from plait.optimize.model import Cost

Resource = Literal["cpu", "memory"]
Unit = Literal["bytes", "tuples"]

_SIZES = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY = {"ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*")


def parse_bytes(amount: str | float) -> float:
    """Parse an amount of memory in bytes.

    >>> parse_bytes("2 GB"), parse_bytes("512 KiB"), parse_bytes(100)
    (2000000000.0, 524288.0, 100.0)
    """
    if isinstance(amount, str):
        found = _AMOUNT.fullmatch(amount)
        unit = found[2].lower().removesuffix("bytes").removesuffix("b") if found else "?"
        factor = _SIZES.get(unit) or _BINARY.get(unit)
        if found is None or factor is None:
            raise BudgetError(
                f"{amount!r} is not an amount of memory",
                remedy="write for example '2 GB' or '512 MiB'",
            )
        amount = float(found[1]) * factor
    if isinstance(amount, bool) or not isinstance(amount, int | float):
        raise BudgetError(
            f"{amount!r} is not an amount of memory", remedy="write for example '2 GB'"
        )
    if not amount > 0 or math.isinf(amount):
        raise BudgetError(
            f"a memory of {amount}", remedy="give more than 0 bytes, or leave the limit out"
        )
    return float(amount)


@dataclass(frozen=True, slots=True)
class Budget:
    """CPU seconds per second (0.8: eighty percent of one core), and memory; None is no limit.

    >>> print(Budget.of(cpu=0.8, memory="2 GB"))
    0.8 CPU, 2 GB
    """

    cpu: float | None = None
    memory: float | None = None
    unit: Unit = "bytes"

    def __post_init__(self) -> None:
        if self.cpu is not None and not (self.cpu > 0 and math.isfinite(self.cpu)):
            raise BudgetError(
                f"a budget of {self.cpu} CPU",
                remedy="give seconds per second, more than 0: 0.8 is 80 % of one core",
            )
        if self.memory is not None:
            parse_bytes(self.memory)

    @classmethod
    def of(cls, cpu: float | None = None, memory: str | float | None = None) -> Budget:
        """Read a budget as people write it."""
        if cpu is not None and (isinstance(cpu, bool) or not isinstance(cpu, int | float)):
            raise BudgetError(f"a budget of {cpu!r} CPU", remedy="give a number such as 0.8")
        return cls(
            None if cpu is None else float(cpu), None if memory is None else parse_bytes(memory)
        )

    def memory_of(self, cost: Cost) -> float:
        """The memory of a plan in the unit of this budget."""
        return cost.bytes if self.unit == "bytes" else cost.tuples

    def holds_cpu(self, cost: Cost) -> bool:
        """Whether the CPU suffices."""
        return self.cpu is None or cost.cpu <= self.cpu

    def holds_memory(self, cost: Cost) -> bool:
        """Whether the memory suffices."""
        return self.memory is None or self.memory_of(cost) <= self.memory

    def holds(self, cost: Cost) -> bool:
        """Whether a plan of this cost is qualified."""
        return self.holds_cpu(cost) and self.holds_memory(cost)

    def excess(self, cost: Cost) -> float:
        """The largest factor by which a plan exceeds a limit; at most 1 if qualified."""
        cpu = 0.0 if self.cpu is None else cost.cpu / self.cpu
        memory = 0.0 if self.memory is None else self.memory_of(cost) / self.memory
        return max(cpu, memory)

    def binding(self, cost: Cost) -> Resource | None:
        """The limit that a plan is nearest to, or exceeds most."""
        if self.cpu is None and self.memory is None:
            return None
        cpu = 0.0 if self.cpu is None else cost.cpu / self.cpu
        return "cpu" if cpu == self.excess(cost) else "memory"

    def divided(self, parts: int) -> Budget:
        """Divide the budget equally among `processors`.

        >>> print(Budget(cpu=0.8, memory=2e9).divided(4))
        0.2 CPU, 500 MB
        """
        return Budget(
            None if self.cpu is None else self.cpu / parts,
            None if self.memory is None else self.memory / parts,
            self.unit,
        )

    def __str__(self) -> str:
        cpu = "any CPU" if self.cpu is None else f"{self.cpu:g} CPU"
        memory = "any memory" if self.memory is None else show_memory(self.memory, self.unit)
        return f"{cpu}, {memory}"


def show_memory(amount: float, unit: Unit = "bytes") -> str:
    """Write memory with three digits.

    >>> show_memory(2.5e9), show_memory(1234), show_memory(1200, "tuples")
    ('2.5 GB', '1.23 kB', '1200 tuples')
    """
    if unit == "tuples":
        return f"{amount:.4g} tuples"
    for size, name in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if amount >= size:
            return f"{amount / size:.3g} {name}"
    return f"{amount:.3g} B"
