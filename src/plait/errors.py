"""Every error Plait raises on purpose: what was wrong, where, and what to do.

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
    """The query asks for something that has no meaning."""


class UnknownStream(QueryError):
    """A name that is no stream of the query."""


class UnknownColumn(QueryError):
    """A name that is no column of its stream."""


class AmbiguousColumn(QueryError):
    """A bare column name that several streams have."""


class DuplicateName(QueryError):
    """Two streams, or two result columns, of the same name."""


class TypeMismatch(QueryError):
    """Values that cannot be compared or computed with each other."""


class TimeColumnError(QueryError):
    """A stream without a usable event-time column."""


class WindowError(QueryError):
    """A window or delay that is no positive length of time, or bounds that contradict."""


class UnboundedPair(QueryError):
    """Two streams whose tuples may be arbitrarily far apart: their state would grow for ever."""


class DisconnectedJoin(QueryError):
    """Streams that no equality predicate ties to the others."""


class UnsupportedSql(QueryError):
    """SQL outside the supported part, with the position in the text (1-based line and column)."""

    def __init__(self, message: str, *, line: int = 0, column: int = 0, remedy: str = "") -> None:
        where = f"line {line}, column {column}: " if line else ""
        super().__init__(where + message, remedy=remedy)
        self.line = line
        self.column = column


class PlanError(PlaitError):
    """A plan that does not run this query."""


class SiteError(PlanError):
    """Sites, links or streams that no plan can be made for."""


class UnknownSite(SiteError):
    """A name that is no site."""


class SiteWithoutStream(SiteError):
    """A site at which no stream arrives: it would have nothing to do."""


class LinkWithoutRate(SiteError):
    """Two sites between which nothing can be sent, because no transmission rate is known."""


class MigrationError(PlaitError):
    """A change of the plan that cannot be made, or not now; the query runs on as it was."""


class CheckpointMismatch(PlaitError):
    """A checkpoint that was written by another query, or in another format."""


class CheckpointDamaged(PlaitError):
    """A checkpoint with a file that is missing or is not as it was written."""


class MissingRequirement(PlaitError):
    """A package, Spark or Java that is missing or of a version that will not do."""


class StorageError(PlaitError):
    """A disk that is full, read-only or forbidden."""


class TableMismatch(PlaitError):
    """A Delta table that cannot get the results of this query: its schema or its rules differ."""


class StatisticsError(PlaitError):
    """A statistic that cannot be one: its name, its unit or its value is wrong."""


class BudgetError(PlaitError):
    """A budget that is no amount of CPU or memory."""


class PolicyError(PlaitError):
    """A policy for changing plans with a threshold that makes no sense."""


class NoQualifiedPlan(PlaitError):
    """No plan was found within the CPU and the memory there is."""


class MoveError(PlaitError):
    """A move of partition groups that cannot be made, or not now; they stay where they are."""


class TableChanged(MoveError):
    """Tasks of one batch that routed its rows by different tables; the batch is not committed."""


class TableTaken(MoveError):
    """A routing table that somebody else has written at the same time."""


class TransferDamaged(MoveError):
    """Partition groups on their way between processors that are missing or damaged."""


class MemoryExceeded(PlaitError):
    """A running plan that holds more than its memory limit: the state, the bytes, the limit."""

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
    """A source that cannot be read, or does not have the schema of its stream."""


class TooManyBadRows(SourceError):
    """More malformed rows than the limit allows."""


class OutputExists(PlaitError):
    """An output path that is already there."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A remedy that lists what exists, the nearest name first.

    >>> did_you_mean("tradez", ["quotes", "trades"])
    "did you mean 'trades'? known: quotes, trades"
    """
    import difflib

    names = list(known)
    near = difflib.get_close_matches(name, names, n=1)
    listed = f"known: {', '.join(names)}" if names else "there are none"
    return f"did you mean {near[0]!r}? {listed}" if near else listed
