"""What a campaign did, and what it found."""

from __future__ import annotations

from dataclasses import dataclass, field, fields


@dataclass(slots=True)
class Tally:
    """Sums over all rounds.

    >>> tally = Tally(queries=1, rows=10)
    >>> tally.add(Tally(queries=2, rows=5, crashes=1))
    >>> tally.text()
    '3 queries, 15 rows, 1 crashes'
    """

    queries: int = 0
    rows: int = 0
    results: int = 0
    late: int = 0
    unchecked: int = 0
    """Queries whose answer DuckDB did not find in time, so nobody knows whether it was right."""
    migrations: int = 0
    moves: int = 0
    """Moves of partition groups that were completed or given up; on Spark, that were begun."""
    crashes: int = 0
    rebuilds: int = 0
    full_disks: int = 0
    """How often nothing could be written for a while."""
    upgrades: int = 0
    """How often a query went on from its checkpoint with another question, or from a checkpoint of
    an earlier version of Plait."""
    rebalances: int = 0
    """Changes of the number of processors between two starts on Spark."""
    empty_batches: int = 0
    """Batches on Spark in which no input had a partition."""
    mail_faults: int = 0
    """Packets or files of mail between sites that were lost, repeated, delayed, damaged, or written
    by a clock that was wrong."""
    foreign_writes: int = 0
    """Entries that somebody else added to the log of a query's Delta table."""
    starts: int = 0
    """Of queries on Spark; they are started again after each death of a driver."""
    kills: dict[str, int] = field(default_factory=dict)
    """By the name of the point at which a process was killed."""
    victims: dict[str, int] = field(default_factory=dict)
    """The same kills, by what was killed."""

    def add(self, other: Tally) -> None:
        """Add a round."""
        for f in fields(self):
            mine, more = getattr(self, f.name), getattr(other, f.name)
            if isinstance(mine, dict):
                for point, n in more.items():
                    mine[point] = mine.get(point, 0) + n
            else:
                setattr(self, f.name, mine + more)

    def text(self) -> str:
        """One line."""
        counts = {f.name: getattr(self, f.name) for f in fields(self)} | {"victims": 0}
        counts["kills"] = sum(self.kills.values())
        return ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in counts.items() if n)
