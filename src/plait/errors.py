"""Every error that Plait raises on purpose: what is wrong, where, and what to do.

An error is a type, so that a program can tell it from the others, and a sentence that names the
culprit, so that a person can mend it. `remedy` is shown after the message and may be empty.
"""

from __future__ import annotations

from collections.abc import Iterable


class PlaitError(Exception):
    """Base of all errors raised by Plait.

    >>> print(PlaitError("no stream 'tradez'", remedy="did you mean 'trades'?"))
    no stream 'tradez'; did you mean 'trades'?
    """

    def __init__(self, message: str, *, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}; {self.remedy}" if self.remedy else self.message


class QueryError(PlaitError):
    """The query is not valid."""


class UnknownStream(QueryError):
    """The query has no stream of this name."""


class UnknownColumn(QueryError):
    """The stream has no column of this name."""


class AmbiguousColumn(QueryError):
    """Several streams have a column of this name."""


class DuplicateName(QueryError):
    """Two streams, or two result columns, have the same name."""


class TypeMismatch(QueryError):
    """Values cannot be compared or computed with each other."""


class TimeColumnError(QueryError):
    """A stream has no usable event-time column."""


class WindowError(QueryError):
    """A window or delay is not a positive duration, or bounds contradict each other."""


class UnboundedPair(QueryError):
    """Tuples of two streams may be arbitrarily far apart: their state would grow forever."""


class DisconnectedJoin(QueryError):
    """No equality joins some streams with the others."""


class UnsupportedSql(QueryError):
    """The SQL is not supported at this position (line and column from 1)."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, remedy: str = "") -> None:
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(where + message, remedy=remedy)
        self.line = line
        self.column = column


class PlanError(PlaitError):
    """The plan cannot run this query."""


class SiteError(PlanError):
    """No plan exists for these sites, links or streams."""


class UnknownSite(SiteError):
    """There is no site of this name."""


class SiteWithoutStream(SiteError):
    """No stream arrives at a site: it would have nothing to do."""


class LinkWithoutRate(SiteError):
    """Two sites cannot exchange data, because no transmission rate is known."""


class MigrationError(PlaitError):
    """A plan cannot be changed, or not now; the query runs on unchanged."""


class CheckpointMismatch(PlaitError):
    """The checkpoint was written by another query, or in another format."""


class CheckpointDamaged(PlaitError):
    """A file of the checkpoint is missing or damaged."""


class MissingRequirement(PlaitError):
    """A package, Spark or Java is missing or has an unsupported version."""


class StorageError(PlaitError):
    """The disk is full, read-only or not accessible."""


class TableMismatch(PlaitError):
    """A Delta table cannot take the results of this query: its schema or its rules differ."""


class StatisticsError(PlaitError):
    """The name, unit or value of a statistic is wrong."""


class BudgetError(PlaitError):
    """The budget is not an amount of CPU or memory."""


class PolicyError(PlaitError):
    """A threshold of a policy is not valid."""


class NoQualifiedPlan(PlaitError):
    """No plan fits the budget of CPU and memory."""


class MoveError(PlaitError):
    """Partition groups cannot be moved, or not now; they stay where they are."""


class TableChanged(MoveError):
    """Tasks of one batch routed rows by different tables; the batch is not committed."""


class TableTaken(MoveError):
    """Somebody else has written a routing table at the same time."""


class TransferDamaged(MoveError):
    """Partition groups in transit between processors are missing or damaged."""


class MemoryExceeded(PlaitError):
    """A running plan exceeds its memory limit: the state, the bytes, the limit."""

    def __init__(self, state: str, state_bytes: int, total_bytes: int, limit: int) -> None:
        super().__init__(
            f"the plan holds {total_bytes} bytes, more than its memory limit of {limit}; the "
            f"largest state is {state} with {state_bytes} bytes",
            remedy="choose a plan with fewer intermediate states, or raise the limit",
        )
        self.state = state
        self.state_bytes = state_bytes
        self.total_bytes = total_bytes
        self.limit = limit


class SourceError(PlaitError):
    """A source cannot be read, or does not have the schema of its stream."""


class TooManyBadRows(SourceError):
    """More malformed rows than the limit allows."""


class OutputExists(PlaitError):
    """The output path exists already."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Write a remedy that lists the known names, the nearest first.

    >>> did_you_mean("tradez", ["quotes", "trades"])
    "did you mean 'trades'? known: quotes, trades"
    """
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    listed = f"known: {', '.join(names)}" if names else "there are none"
    return f"did you mean {near[0]!r}? {listed}" if near else listed
